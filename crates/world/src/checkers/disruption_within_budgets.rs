//! No more nodes of a pool are marked for disruption at a time than its budgets allow. Nodes that are down or on their way
//! out for other reasons use the budgets up as well. Budgets that cannot be read allow nothing.

use std::collections::BTreeMap;

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    convert, labels,
    v1::NodeClaim,
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::budget::{self, DisruptionReason};

use super::{Checker, Moment, Verdict, disruption_reason};
use crate::{
    kubelet::{is_ready, ready_condition},
    mirror::{Key, Seen},
};

/// A decision may be this old when its marks are seen: it is validated, written, and told with delay.
const LATENCY: SignedDuration = SignedDuration::from_mins(2);

#[derive(Default)]
pub struct DisruptionWithinBudgets {
    /// How many nodes each pool had lately. A share of nodes is a share of those that were there at the decision.
    sizes: BTreeMap<String, Vec<(Timestamp, usize)>>,
}

impl Checker for DisruptionWithinBudgets {
    fn name(&self) -> &'static str {
        "no more nodes are disrupted than budgets allow"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let Some((old, claim)) = seen.claim_now() else {
            return Ok(());
        };
        let pool = claim.labels().get(labels::NODE_POOL).cloned().unwrap_or_default();
        let claims = moment.scene.node_claims.all();
        let counted: Vec<_> = claims.iter().filter(|claim| counts(claim, &pool)).collect();
        let sizes = self.sizes.entry(pool.clone()).or_default();
        sizes.retain(|(at, _)| moment.now.duration_since(*at) < LATENCY);
        sizes.push((moment.now, counted.len()));
        let fresh = old.is_none_or(|old| reason_of(old).is_none());
        let Some(reason) = reason_of(claim).filter(|_| fresh) else {
            return Ok(());
        };
        let most = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let Some(stored) = moment.scene.node_pools.get(&Key::cluster(&*pool)) else {
            return Ok(());
        };
        let budgets = convert::pool(&stored).value.disruption.budgets;
        // A window may have begun or ended between the decision and its marks.
        let times = [moment.now - LATENCY, moment.now];
        let allowed = times.map(|time| match &budgets {
            Ok(budgets) => budget::allowed(budgets, reason, time, most),
            Err(_) => 0,
        });
        let allowed = allowed.into_iter().max().unwrap_or_default();
        let marked = counted.iter().filter(|claim| reason_of(claim).is_some()).count();
        let down = counted
            .iter()
            .filter(|claim| reason_of(claim).is_none() && is_down(claim, moment))
            .count();
        if marked + down > allowed as usize {
            return Err(format!(
                "{marked} nodes of pool {pool} are marked for disruption and {down} are down, and its budgets allow {allowed} of {most}"
            ));
        }
        Ok(())
    }
}

/// Nodes that budgets are about: initialised, and not yet in the hands of the cloud.
fn counts(claim: &NodeClaim, pool: &str) -> bool {
    claim.labels().get(labels::NODE_POOL).is_some_and(|name| name == pool)
        && conditions::is_true(claim.conditions(), condition::INITIALIZED)
        && !conditions::is_true(claim.conditions(), condition::INSTANCE_TERMINATING)
}

/// On its way out, or not ready, and for so long that the decision knew.
fn is_down(claim: &NodeClaim, moment: &Moment<'_>) -> bool {
    let for_long = |since: Timestamp| moment.now.duration_since(since) > LATENCY;
    let deleting = claim.metadata.deletion_timestamp.as_ref();
    let name = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
    let node = name.and_then(|name| moment.scene.nodes.get(&Key::cluster(name)));
    let unready = node
        .as_ref()
        .filter(|node| !is_ready(node))
        .and_then(|node| ready_condition(node));
    let unready_since = unready.and_then(|condition| condition.last_transition_time.as_ref());
    deleting.is_some_and(|time| for_long(time.0)) || unready_since.is_some_and(|time| for_long(time.0))
}

fn reason_of(claim: &NodeClaim) -> Option<DisruptionReason> {
    disruption_reason(claim)?.parse().ok()
}
