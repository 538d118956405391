//! Events for the people who watch the cluster.
//!
//! A controller hands a [`Notice`] over and goes on; a task of its own writes it. Repeats within a notice's window are
//! dropped, and so is what the cluster does not accept: an event is a courtesy, not a record.

mod bucket;
mod notice;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use clock::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tracing::debug;

use crate::{error::chain, writer::Writer};
use bucket::Bucket;
pub(crate) use notice::cut;
pub use notice::{About, Notice, Severity};

/// How many notices may wait to be written. More than that in one moment would tell nobody anything.
const WAITING: usize = 1_000;

/// Where controllers drop their notices.
#[derive(Clone)]
pub struct Outbox {
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<(Notice, Timestamp)>,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// Until when a notice with this key is a repeat.
    said: BTreeMap<String, Timestamp>,
    buckets: BTreeMap<Cow<'static, str>, Bucket>,
    forget_at: usize,
}

/// The other end: writes what was dropped.
pub struct Postman {
    writer: Writer,
    notices: mpsc::Receiver<(Notice, Timestamp)>,
    written: u64,
}

impl Outbox {
    pub fn new(writer: Writer, clock: Arc<dyn Clock>) -> (Self, Postman) {
        let (sender, notices) = mpsc::channel(WAITING);
        let outbox = Self {
            clock,
            sender,
            memory: Arc::default(),
        };
        let postman = Postman {
            writer,
            notices,
            written: 0,
        };
        (outbox, postman)
    }

    pub fn publish(&self, notice: Notice) {
        let now = self.clock.now();
        if self.memory.lock().is_news(&notice, now) {
            // A full box loses the newest notice.
            let _ = self.sender.try_send((notice, now));
        }
    }
}

impl Memory {
    fn is_news(&mut self, notice: &Notice, now: Timestamp) -> bool {
        let key = notice.key();
        if self.said.get(&key).is_some_and(|until| now < *until) {
            return false;
        }
        if let Some(rate) = notice.rate {
            let bucket = self
                .buckets
                .entry(notice.reason.clone())
                .or_insert_with(|| Bucket::full(rate, now));
            if !bucket.take(now) {
                return false;
            }
        }
        self.said.insert(key, now + notice.window);
        if self.said.len() > self.forget_at.max(1_024) {
            self.said.retain(|_, until| now < *until);
            self.forget_at = self.said.len() * 2;
        }
        true
    }
}

impl Postman {
    /// Runs until it is dropped.
    pub async fn run(mut self) {
        while let Some((notice, at)) = self.notices.recv().await {
            self.written += 1;
            let event = notice.into_event(at, self.written);
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            if let Err(error) = self.writer.post(&namespace, &event).await {
                debug!(error = %chain(&error), "event not recorded");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn notice(name: &str) -> Notice {
        Notice::warning("Test", About::node(name, "uid"), "message".to_owned())
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    /// LC-M10: duplicates, another entity, a window of its own.
    #[test]
    fn repeats_are_dropped_for_as_long_as_the_window_lasts() {
        let mut memory = Memory::default();
        assert!(memory.is_news(&notice("a"), at(0)));
        assert!(!memory.is_news(&notice("a"), at(119)));
        assert!(memory.is_news(&notice("b"), at(119)));
        assert!(memory.is_news(&notice("a"), at(120)));
        let short = notice("c").every(SignedDuration::from_secs(5));
        assert!(memory.is_news(&short, at(0)));
        assert!(memory.is_news(&short, at(5)));
    }

    /// LC-M10: burst, then smoothed.
    #[test]
    fn a_rate_lets_a_burst_through_and_smooths_the_rest() {
        let mut memory = Memory::default();
        let passed = |memory: &mut Memory, from: u32, secs: i64| {
            let names = (from..from + 20).map(|n| notice(&n.to_string()).at_most(5, 10));
            names.filter(|notice| memory.is_news(notice, at(secs))).count()
        };
        assert_eq!(passed(&mut memory, 0, 0), 10);
        assert_eq!(passed(&mut memory, 100, 1), 5);
    }
}
