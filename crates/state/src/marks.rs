//! What we know of a machine and nobody else does: pods are on their way to it, or a decision has taken it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{NodeKey, StateNode};

#[derive(Debug, Default)]
pub(crate) struct Marks {
    nominated: BTreeMap<NodeKey, Timestamp>,
    deleted: std::collections::BTreeSet<NodeKey>,
}

impl Marks {
    /// A later nomination extends an earlier one; an earlier one changes nothing.
    pub fn nominate(&mut self, key: &NodeKey, until: Timestamp) {
        let end = self.nominated.entry(key.clone()).or_insert(until);
        *end = until.max(*end);
    }

    pub fn mark_for_deletion(&mut self, key: &NodeKey) {
        self.deleted.insert(key.clone());
    }

    pub fn unmark_for_deletion(&mut self, key: &NodeKey) {
        self.deleted.remove(key);
    }

    pub fn forget(&mut self, key: &NodeKey) {
        self.nominated.remove(key);
        self.deleted.remove(key);
    }

    pub fn put_on(&self, machine: &mut StateNode) {
        machine.nominated_until = self.nominated.get(&machine.key).copied();
        machine.marked_for_deletion = self.deleted.contains(&machine.key);
    }
}
