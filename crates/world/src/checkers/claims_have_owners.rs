//! No claim of a pool without that pool as its owner. A claim that names no pool is one that a user made.

use api::v1::NodeClaim;

use super::{Checker, Moment, Verdict};
use crate::mirror::{Change, Key, Seen};

pub struct ClaimsHaveOwners;

impl Checker for ClaimsHaveOwners {
    fn name(&self) -> &'static str {
        "claims have owners"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        match seen {
            Seen::NodeClaim(
                change @ Change {
                    old: None,
                    new: Some(claim),
                    ..
                },
            ) => owner_is_there(change, claim, moment),
            _ => Ok(()),
        }
    }
}

fn owner_is_there(change: &Change<NodeClaim>, claim: &NodeClaim, moment: &Moment<'_>) -> Verdict {
    let owners = claim.metadata.owner_references.iter().flatten();
    let pools: Vec<_> = owners.filter(|owner| owner.kind == "NodePool").collect();
    let labelled = claim
        .metadata
        .labels
        .iter()
        .flatten()
        .any(|(key, _)| key == api::labels::NODE_POOL);
    if pools.is_empty() && !labelled {
        return Ok(());
    }
    let [owner] = pools.as_slice() else {
        return Err(format!("claim {} has {} owner pools", change.key, pools.len()));
    };
    let label = claim
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(api::labels::NODE_POOL));
    if label != Some(&owner.name) {
        return Err(format!(
            "claim {} is owned by {} and labelled {label:?}",
            change.key, owner.name
        ));
    }
    match moment.scene.node_pools.get(&Key::cluster(&*owner.name)) {
        Some(pool) if pool.metadata.uid.as_ref() == Some(&owner.uid) => Ok(()),
        _ => Err(format!(
            "claim {} is owned by a pool that does not exist: {}",
            change.key, owner.name
        )),
    }
}
