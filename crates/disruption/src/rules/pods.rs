//! The pods' say: their own annotation, and the disruption budgets that cover them.
//!
//! Each pod is asked alone. Several pods behind one budget that allows one disruption pass here; the drain takes
//! them one by one.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Pod, Snapshot, StateNode, pod::DoNotDisrupt};

use super::Blocked;
use crate::guards::Guards;

pub(super) fn check<'a>(
    snapshot: &'a Snapshot,
    guards: &mut Guards<'a>,
    node: &'a StateNode,
    now: Timestamp,
) -> Result<(), Blocked> {
    // Of several protections the longest is the one that counts.
    let protected = snapshot.pods_of(node).filter(|pod| pod.is_protected(now));
    let longest = protected.max_by_key(|pod| (until(pod).unwrap_or(Timestamp::MAX), std::cmp::Reverse(&pod.key)));
    if let Some(pod) = longest {
        return Err(Blocked::PodProtected {
            pod: pod.key.clone(),
            until: until(pod),
        });
    }
    for pod in snapshot.pods_of(node).filter(|pod| pod.is_evictable(now)) {
        budgets_allow(guards, pod)?;
    }
    Ok(())
}

/// When a pod's protection ends, where that is known.
fn until(pod: &Pod) -> Option<Timestamp> {
    match pod.do_not_disrupt.as_ref()? {
        DoNotDisrupt::For(time) => pod.started?.checked_add(*time).ok(),
        DoNotDisrupt::Always | DoNotDisrupt::Invalid(_) => None,
    }
}

fn budgets_allow<'a>(guards: &mut Guards<'a>, pod: &'a Arc<Pod>) -> Result<(), Blocked> {
    let budget = match guards.covering(pod) {
        [] => return Ok(()),
        [budget] => *budget,
        several => {
            return Err(Blocked::SeveralBudgets {
                pod: pod.key.clone(),
                budgets: several.iter().map(|budget| budget.key.clone()).collect(),
            });
        }
    };
    if budget.disruptions_allowed > 0 || (budget.unhealthy_always_allowed && !pod.ready) {
        return Ok(());
    }
    Err(Blocked::Budget {
        pod: pod.key.clone(),
        budget: budget.key.clone(),
    })
}
