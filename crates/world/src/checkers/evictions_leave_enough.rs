//! A disruption budget is never overdrawn by an eviction: after each one, as many healthy pods are left as the budget
//! asks for.
//!
//! A pod is evicted once. Asking again for one that is on its way out, because the answer was lost, takes nothing away;
//! by then the budget may well ask for more.

use std::collections::BTreeSet;

use super::{Checker, Moment, Verdict, deletions_are_gentle::evicted_pod};
use crate::{
    history::Deed,
    mirror::Key,
    workloads::{budget::covers, is_ready},
};

#[derive(Default)]
pub struct EvictionsLeaveEnough {
    /// The UIDs of pods whose eviction was granted.
    evicted: BTreeSet<String>,
}

impl Checker for EvictionsLeaveEnough {
    fn name(&self) -> &'static str {
        "evictions leave enough"
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Some((method, path, _)) = deed.granted() else {
            return Ok(());
        };
        let Some(pod) = evicted_pod(method, path).and_then(|key| moment.scene.pods.get(&key)) else {
            return Ok(());
        };
        if !self.evicted.insert(pod.metadata.uid.clone().unwrap_or_default()) {
            return Ok(());
        }
        for budget in moment.scene.budgets.all().iter().filter(|budget| covers(budget, &pod)) {
            let pods = moment.scene.pods.all();
            let healthy = pods.iter().filter(|other| {
                covers(budget, other) && other.metadata.deletion_timestamp.is_none() && is_ready(other)
            });
            let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
            let desired = budget
                .status
                .as_ref()
                .and_then(|status| status.desired_healthy)
                .unwrap_or_default();
            // A pod that was not healthy to begin with takes nothing away.
            if healthy < desired && is_ready(&pod) {
                return Err(format!(
                    "eviction of {} left {healthy} healthy pods where budget {} asks for {desired}",
                    Key::of(&pod.metadata),
                    Key::of(&budget.metadata)
                ));
            }
        }
        Ok(())
    }
}
