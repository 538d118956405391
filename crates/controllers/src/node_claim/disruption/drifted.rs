//! What the cloud has said of an instance, and for how long that is believed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// An instance is asked about again after this time, or when its node class changes.
pub const RECHECK: Duration = Duration::from_secs(5 * 60);

/// An answer of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    asked: Timestamp,
    /// The version of the node class that the instance was compared with. Its generation would not do: images and hash
    /// change without it.
    class: Option<String>,
    answer: Option<String>,
}

impl Known {
    pub fn new(asked: Timestamp, class: Option<String>, answer: Option<String>) -> Self {
        Self { asked, class, answer }
    }

    /// The answer, while it holds.
    pub fn at(&self, now: Timestamp, class: Option<&str>) -> Option<Option<String>> {
        let age = now.duration_since(self.asked);
        let fresh = age < SignedDuration::try_from(RECHECK).unwrap_or(SignedDuration::MAX);
        (fresh && self.class.as_deref() == class).then(|| self.answer.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_five_minutes_and_for_one_state_of_the_class() {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let known = Known::new(at(0), Some("1".to_owned()), Some("AMIDrift".to_owned()));
        assert_eq!(known.at(at(299), Some("1")), Some(Some("AMIDrift".to_owned())));
        assert_eq!(known.at(at(300), Some("1")), None);
        assert_eq!(known.at(at(1), Some("2")), None);
    }
}
