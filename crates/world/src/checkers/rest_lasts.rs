//! Consolidation comes to rest when nothing changes from outside, and what has come to rest stays so.
//!
//! From outside means: not by the autoscaler and not in answer to it. Users change workloads, budgets and pools; machines
//! fail, are taken back or grow too old; prices move.

use std::sync::Arc;

use api::v1::NodeClaim;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{Checker, Moment, Verdict, disruption_reason};
use crate::{
    kubelet::{collector::is_terminal, is_ready},
    mirror::{Change, Seen, controller_of},
};

/// After this long without a change and without a command there is rest.
const REST: SignedDuration = SignedDuration::from_hours(1);
/// Many small steps, each with its wait for `consolidateAfter` and for budgets, are over by then.
const LONGEST: SignedDuration = SignedDuration::from_hours(3);

#[derive(Default)]
pub struct RestLasts {
    changed: Option<Timestamp>,
    moved: Option<Timestamp>,
    /// In which prices are what they are.
    period: Option<i64>,
}

impl Checker for RestLasts {
    fn name(&self) -> &'static str {
        "rest lasts"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let now = moment.now;
        let period = moment.cloud.market(now).map(|(_, period)| period);
        if self.changed.is_none() || comes_from_outside(seen) || period != self.period {
            self.changed = Some(now);
            self.period = period;
        }
        let Some((old, claim)) = seen.claim_now() else {
            return Ok(());
        };
        if !is_consolidated(claim) || old.is_some_and(is_consolidated) {
            return Ok(());
        }
        let since = |moment: Option<Timestamp>| moment.map_or(SignedDuration::MAX, |moment| now.duration_since(moment));
        let (unchanged, unmoved) = (since(self.changed), since(self.moved));
        self.moved = Some(now);
        if unchanged > LONGEST {
            return Err(format!(
                "nothing has changed for {unchanged:#}, and consolidation still goes on"
            ));
        }
        if unchanged.min(unmoved) > REST {
            return Err(format!(
                "there was rest for {:#}, and nothing has ended it",
                unchanged.min(unmoved)
            ));
        }
        Ok(())
    }
}

fn is_consolidated(claim: &NodeClaim) -> bool {
    matches!(disruption_reason(claim), Some("Underutilized" | "Empty"))
}

fn comes_from_outside(seen: &Seen) -> bool {
    match seen {
        Seen::Deployment(change) => is_rewritten(change),
        Seen::StatefulSet(change) => is_rewritten(change),
        Seen::DaemonSet(change) => is_rewritten(change),
        Seen::Job(change) => is_rewritten(change),
        Seen::PodDisruptionBudget(change) => is_rewritten(change),
        Seen::NodePool(change) => is_rewritten(change),
        // Pods come and go with their workloads, unless they are somebody's own or have done their work.
        Seen::Pod(change) => {
            let was = change.old.as_ref();
            let own = |pod: &Arc<_>| controller_of(Metadata::metadata(&**pod)).is_none();
            let ends = |pod: &Arc<_>| is_terminal(pod) && !was.is_some_and(|old| is_terminal(old));
            (was.is_none() || change.new.is_none()) && own(change.either()) || change.new.as_ref().is_some_and(ends)
        }
        Seen::Node(change) => {
            let ready = |node: &Option<Arc<_>>| node.as_ref().is_some_and(|node| is_ready(node));
            change.new.is_some() && ready(&change.old) && !ready(&change.new)
        }
        // A claim that goes without a command has failed, grown too old, or was taken back.
        Seen::NodeClaim(change) => {
            let leaves = |claim: &Option<Arc<NodeClaim>>| {
                claim
                    .as_ref()
                    .is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
            };
            change
                .new
                .as_ref()
                .is_some_and(|claim| disruption_reason(claim).is_none())
                && leaves(&change.new)
                && !leaves(&change.old)
        }
        Seen::Namespace(_) | Seen::ReplicaSet(_) => false,
    }
}

/// The specification of an object is new, or other than it was, or goes.
fn is_rewritten<K: kube::Resource>(change: &Change<K>) -> bool {
    let generation = |object: &Option<Arc<K>>| -> Option<Option<i64>> {
        let meta: &ObjectMeta = object.as_ref()?.meta();
        Some(meta.generation)
    };
    generation(&change.old) != generation(&change.new)
}
