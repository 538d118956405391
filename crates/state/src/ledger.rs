//! Which version of an object counts, for one kind.
//!
//! A list tells everything up to its version; a watch tells the rest in order; our own writes arrive on the side, early
//! or late. Three rules make the outcome independent of the order in which they come:
//!
//! 1. A newer version of an object replaces an older one, never the other way round.
//! 2. What a list did not mention and is not newer than the list is gone, and stays gone.
//! 3. A UID that was deleted does not come back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many deletions are remembered between two lists. A straggler is an event or an answer that was on its way when
/// the deletion arrived; thousands of them at once would be more than any request timeout lets live.
const REMEMBERED_DELETIONS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub listed: bool,
    /// The version of the last list.
    floor: u64,
    deleted: BTreeMap<Arc<str>, u64>,
    oldest_deleted: BTreeSet<(u64, Arc<str>)>,
}

impl Ledger {
    pub fn is_deleted(&self, uid: &str) -> bool {
        self.deleted.contains_key(uid)
    }

    /// Whether an object that the index does not have may enter with this version.
    pub fn is_news(&self, uid: &str, version: u64) -> bool {
        version > self.floor && !self.is_deleted(uid)
    }

    pub fn bury(&mut self, uid: Arc<str>, version: u64) {
        if let Some(earlier) = self.deleted.insert(uid.clone(), version) {
            self.oldest_deleted.remove(&(earlier, uid.clone()));
        }
        self.oldest_deleted.insert((version, uid));
        while self.oldest_deleted.len() > REMEMBERED_DELETIONS {
            self.forget_oldest();
        }
    }

    /// Everything up to this version has been told; deletions before it need no memory.
    pub fn listed_at(&mut self, version: u64) {
        self.listed = true;
        self.floor = self.floor.max(version);
        while self
            .oldest_deleted
            .first()
            .is_some_and(|(buried, _)| *buried <= version)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, uid)) = self.oldest_deleted.pop_first() {
            self.deleted.remove(&uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_do_not_return_and_are_forgotten_only_behind_a_list() {
        let mut ledger = Ledger::default();
        ledger.bury("a".into(), 5);
        assert!(!ledger.is_news("a", 9));
        assert!(ledger.is_news("b", 1));
        ledger.listed_at(4);
        assert!(!ledger.is_news("a", 9));
        assert!(!ledger.is_news("b", 4), "the list would have mentioned it");
        ledger.listed_at(5);
        assert!(!ledger.is_deleted("a"));
        assert!(!ledger.is_news("a", 5));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut ledger = Ledger::default();
        for n in 0..=REMEMBERED_DELETIONS as u64 {
            ledger.bury(n.to_string().into(), n);
        }
        assert!(!ledger.is_deleted("0"));
        assert!(ledger.is_deleted("1"));
    }
}
