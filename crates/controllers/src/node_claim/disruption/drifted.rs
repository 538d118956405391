//! What the cloud has said of an instance, and for how long that is believed.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use model::ClaimName;

/// An instance is asked about again after this time, or when its node class changes.
pub const RECHECK: Duration = Duration::from_secs(5 * 60);

/// What was for sale a moment ago counts as sold for so long, whatever the catalog says: one bad answer of the cloud must
/// not make a fleet drift.
const SOLD_FOR: SignedDuration = SignedDuration::from_mins(30);

/// What is remembered of claims that exist.
#[derive(Debug, Default)]
pub struct Memory {
    known: BTreeMap<ClaimName, Known>,
    /// When what a claim is was last found in the catalog.
    sold: BTreeMap<ClaimName, Timestamp>,
}

impl Memory {
    pub fn answer(&self, claim: &ClaimName, now: Timestamp, class: Option<&str>) -> Option<Option<String>> {
        self.known.get(claim)?.at(now, class)
    }

    pub fn learn(&mut self, claim: &ClaimName, known: Known) {
        self.known.insert(claim.clone(), known);
    }

    pub fn saw_for_sale(&mut self, claim: &ClaimName, now: Timestamp) {
        self.sold.insert(claim.clone(), now);
    }

    pub fn was_for_sale(&self, claim: &ClaimName, now: Timestamp) -> bool {
        let seen = self.sold.get(claim);
        seen.is_some_and(|seen| now.duration_since(*seen) < SOLD_FOR)
    }

    pub fn forget(&mut self, claim: &ClaimName) {
        self.known.remove(claim);
        self.sold.remove(claim);
    }
}

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

    /// DI-H3: what a catalog lacks for a moment is still sold.
    #[test]
    fn what_was_for_sale_is_believed_to_be_for_half_an_hour() {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let claim = ClaimName::from("c");
        let mut memory = Memory::default();
        assert!(
            !memory.was_for_sale(&claim, at(0)),
            "a claim that was never seen for sale"
        );
        memory.saw_for_sale(&claim, at(0));
        assert!(memory.was_for_sale(&claim, at(1_799)));
        assert!(!memory.was_for_sale(&claim, at(1_800)));
        memory.saw_for_sale(&claim, at(1_800));
        memory.forget(&claim);
        assert!(!memory.was_for_sale(&claim, at(1_801)));
    }

    #[test]
    fn an_answer_holds_for_five_minutes_and_for_one_state_of_the_class() {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let known = Known::new(at(0), Some("1".to_owned()), Some("AMIDrift".to_owned()));
        assert_eq!(known.at(at(299), Some("1")), Some(Some("AMIDrift".to_owned())));
        assert_eq!(known.at(at(300), Some("1")), None);
        assert_eq!(known.at(at(1), Some("2")), None);
    }
}
