//! Keeps one message that repeats itself from drowning the others.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::{Event, Metadata, Subscriber, callsite::Identifier};
use tracing_subscriber::layer::{Context, Filter};

/// So many lines of one kind pass in a second …
const FIRST: u64 = 100;
/// … and then one in so many.
const THEN_EVERY: u64 = 100;

/// Lets through the first lines of a kind in each second, and a few of the rest. Lines are of one kind when they come
/// from one place in the code, which is to say that they have one level and one message.
#[derive(Default)]
pub struct Sampling {
    seconds: Mutex<HashMap<Identifier, (i64, u64)>>,
}

impl Sampling {
    fn passes(&self, place: Identifier, second: i64) -> bool {
        let mut seconds = self.seconds.lock();
        let (at, count) = seconds.entry(place).or_insert((second, 0));
        if *at != second {
            (*at, *count) = (second, 0);
        }
        *count += 1;
        *count <= FIRST || (*count - FIRST).is_multiple_of(THEN_EVERY)
    }
}

impl<S: Subscriber> Filter<S> for Sampling {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.passes(event.metadata().callsite(), Timestamp::now().as_second())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite as _;

    use super::*;

    #[test]
    fn a_flood_is_thinned_and_a_new_second_begins_anew() {
        let place = tracing::callsite::DefaultCallsite::new(METADATA).metadata().callsite();
        let sampling = Sampling::default();
        let passed = |count: u64, second| (0..count).filter(|_| sampling.passes(place.clone(), second)).count();
        assert_eq!(passed(100, 1), 100);
        assert_eq!(passed(500, 1), 5);
        assert_eq!(passed(10, 2), 10);
    }

    static CALLSITE: tracing::callsite::DefaultCallsite = tracing::callsite::DefaultCallsite::new(METADATA);
    static METADATA: &Metadata<'static> = &tracing::metadata! {
        name: "test", target: "test", level: tracing::Level::INFO, fields: &[], callsite: &CALLSITE,
        kind: tracing::metadata::Kind::EVENT,
    };
}
