//! The pods' say: their own annotation, and the disruption budgets that cover them.
//!
//! Each pod is asked alone. Several pods behind one budget that allows one disruption pass here; the drain takes
//! them one by one.

use jiff::Timestamp;
use model::{Pod, Snapshot, StateNode};

use super::Blocked;

pub(super) fn check(snapshot: &Snapshot, node: &StateNode, now: Timestamp) -> Result<(), Blocked> {
    for pod in snapshot.pods_of(node) {
        if pod.is_protected(now) {
            return Err(Blocked::PodProtected(pod.key.clone()));
        }
    }
    for pod in snapshot.pods_of(node).filter(|pod| pod.is_evictable(now)) {
        budgets_allow(snapshot, pod)?;
    }
    Ok(())
}

fn budgets_allow(snapshot: &Snapshot, pod: &Pod) -> Result<(), Blocked> {
    let mut covering = snapshot.budgets.values().filter(|budget| budget.covers(pod));
    let Some(budget) = covering.next() else { return Ok(()) };
    if covering.next().is_some() {
        return Err(Blocked::SeveralBudgets(pod.key.clone()));
    }
    if budget.disruptions_allowed > 0 || (budget.unhealthy_always_allowed && !pod.ready) {
        return Ok(());
    }
    Err(Blocked::Budget {
        pod: pod.key.clone(),
        budget: budget.key.clone(),
    })
}
