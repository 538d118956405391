//! No more nodes of a pool are marked for disruption at a time than its budgets allow.

use std::collections::BTreeMap;

use api::{conditions, conditions::node_claim as condition, convert, labels, v1::NodeClaim};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::budget::{self, DisruptionReason};

use super::{Checker, Moment, Verdict};
use crate::mirror::{Change, Key, Seen};

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
        let Seen::NodeClaim(Change {
            old, new: Some(claim), ..
        }) = seen
        else {
            return Ok(());
        };
        let pool = claim.labels().get(labels::NODE_POOL).cloned().unwrap_or_default();
        let claims = moment.scene.node_claims.all();
        let counted: Vec<_> = claims.iter().filter(|claim| counts(claim, &pool)).collect();
        let sizes = self.sizes.entry(pool.clone()).or_default();
        sizes.retain(|(at, _)| moment.now.duration_since(*at) < LATENCY);
        sizes.push((moment.now, counted.len()));
        let fresh = old.as_ref().is_none_or(|old| reason_of(old).is_none());
        let Some(reason) = reason_of(claim).filter(|_| fresh) else {
            return Ok(());
        };
        let most = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let Some(stored) = moment.scene.node_pools.get(&Key::cluster(&*pool)) else {
            return Ok(());
        };
        let budgets = convert::pool(&stored).value.disruption.budgets.unwrap_or_default();
        let allowed = budget::allowed(&budgets, reason, moment.now, most);
        let marked = counted.iter().filter(|claim| reason_of(claim).is_some()).count();
        if marked > allowed as usize {
            return Err(format!(
                "{marked} nodes of pool {pool} are marked for disruption, and its budgets allow {allowed} of {most}"
            ));
        }
        Ok(())
    }
}

fn listed(claim: &NodeClaim) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

/// Nodes that budgets are about: initialised, and not yet in the hands of the cloud.
fn counts(claim: &NodeClaim, pool: &str) -> bool {
    claim.labels().get(labels::NODE_POOL).is_some_and(|name| name == pool)
        && conditions::is_true(listed(claim), condition::INITIALIZED)
        && !conditions::is_true(listed(claim), condition::INSTANCE_TERMINATING)
}

fn reason_of(claim: &NodeClaim) -> Option<DisruptionReason> {
    conditions::find(listed(claim), condition::DISRUPTION_REASON)?
        .reason
        .parse()
        .ok()
}
