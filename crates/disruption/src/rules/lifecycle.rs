//! A node goes only from the middle of its life: it has come up, nobody is removing it, nobody is about to use it.

use jiff::Timestamp;
use model::StateNode;

use super::Blocked;

pub(super) fn check(node: &StateNode, now: Timestamp) -> Result<(), Blocked> {
    if node.node.is_none() {
        return Err(Blocked::NoNode);
    }
    if !node.is_initialized() {
        return Err(Blocked::NotInitialized);
    }
    if node.is_leaving() {
        return Err(Blocked::Leaving);
    }
    match node.nominated_until.filter(|_| node.is_nominated(now)) {
        Some(until) => Err(Blocked::Nominated(until)),
        None => Ok(()),
    }
}
