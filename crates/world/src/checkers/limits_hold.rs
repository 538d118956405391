//! A pool never has more capacity than its limits allow, counting every claim that is not on its way out.
//!
//! What takes the place of other nodes is launched while these are still there, and they may stay when their command comes
//! to nothing (docs/disruption.md, No oscillation). For a claim that came while nodes were marked, those nodes do not count.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    v1::{NodeClaim, NodePool, Quantities},
};
use kube::ResourceExt;
use model::{Quantity, Resources};

use super::{Checker, Moment, Verdict};
use crate::mirror::{Change, Key, Seen};

#[derive(Default)]
pub struct LimitsHold {
    /// The claims that were marked for disruption when a claim came to be.
    instead_of: BTreeMap<String, BTreeSet<String>>,
}

impl Checker for LimitsHold {
    fn name(&self) -> &'static str {
        "limits hold"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let Seen::NodeClaim(Change {
            old, new: Some(claim), ..
        }) = seen
        else {
            return Ok(());
        };
        if old.is_none() {
            let claims = moment.scene.node_claims.all();
            let marked = claims.iter().filter(|claim| is_marked(claim));
            let marked = marked.map(|claim| claim.name_any()).collect();
            self.instead_of.insert(claim.name_any(), marked);
        }
        // Only growth can break a limit; a limit that a user lowers later is not broken by us.
        let before = old.as_ref().map(|old| capacity(old)).unwrap_or_default();
        if claim.metadata.deletion_timestamp.is_some() || capacity(claim) == before {
            return Ok(());
        }
        let pool = claim
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(api::labels::NODE_POOL));
        let pool = pool.and_then(|name| moment.scene.node_pools.get(&Key::cluster(&**name)));
        let replaced = self.instead_of.get(&claim.name_any()).cloned().unwrap_or_default();
        pool.map_or(Ok(()), |pool| is_within(&pool, &replaced, moment))
    }
}

fn is_marked(claim: &NodeClaim) -> bool {
    conditions::find(claim.conditions(), condition::DISRUPTION_REASON).is_some()
}

fn is_within(pool: &NodePool, replaced: &BTreeSet<String>, moment: &Moment<'_>) -> Verdict {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let claims = moment.scene.node_claims.all();
    let is_its = |claim: &NodeClaim| {
        claim.metadata.deletion_timestamp.is_none()
            && !replaced.contains(&claim.name_any())
            && claim
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(api::labels::NODE_POOL))
                .is_some_and(|its| its == name)
    };
    let mut used = Resources::default();
    for claim in claims.iter().filter(|claim| is_its(claim)) {
        used.add_assign(&capacity(claim));
    }
    for (resource, limit) in resources(pool.spec.limits.as_ref()).iter() {
        let used = used.get(resource.as_str());
        if used > limit {
            return Err(format!("pool {name} has {used} of {resource}, its limit is {limit}"));
        }
    }
    Ok(())
}

/// What a claim adds to its pool: one node, and what the cloud says that it has.
fn capacity(claim: &NodeClaim) -> Resources {
    let mut capacity = resources(claim.status.as_ref().and_then(|status| status.capacity.as_ref()));
    capacity.set("nodes".into(), Quantity::from_int(1));
    capacity
}

fn resources(quantities: Option<&Quantities>) -> Resources {
    let parsed = quantities
        .into_iter()
        .flatten()
        .filter_map(|(name, amount)| Some((name.as_str().into(), Quantity::parse(&amount.0).ok()?)));
    parsed.collect()
}
