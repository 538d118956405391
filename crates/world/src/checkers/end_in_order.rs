//! A machine ends in order (lifecycle.md 18.2 to 18.4): its node is on its way out before the instance is, the instance
//! is gone before the claim or the node may go, and the hard deadline never moves back.

use std::collections::BTreeMap;

use api::{
    conditions::{HasConditions, is_true, node_claim},
    labels::{annotations, finalizers},
    v1::NodeClaim,
};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use model::ProviderId;
use provider_sim::MachineState;

use super::{Checker, Moment, Verdict};
use crate::{
    history::Deed,
    mirror::{Change, Seen},
};

#[derive(Default)]
pub struct EndInOrder {
    /// The deadline of each claim, by UID.
    deadlines: BTreeMap<String, Timestamp>,
}

impl Checker for EndInOrder {
    fn name(&self) -> &'static str {
        "machines end in order"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        match seen {
            Seen::NodeClaim(Change { new: Some(claim), .. }) => {
                launched_has_an_id(claim)?;
                self.deadline_is_kept(claim)
            }
            Seen::NodeClaim(Change {
                old: Some(claim),
                new: None,
                ..
            }) => {
                let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
                instance_is_gone(id, &format!("claim {}", seen.key()), moment)
            }
            // A node that never got the finalizer was never ours to look after.
            Seen::Node(Change {
                old: Some(node),
                new: None,
                ..
            }) if had_finalizer(&node.metadata) => {
                let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
                // A node that no claim names goes without its instance (lifecycle.md 6.7).
                if !is_claimed(id, moment) {
                    return Ok(());
                }
                instance_is_gone(id, &format!("node {}", seen.key()), moment)
            }
            _ => Ok(()),
        }
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Deed::Terminate { id } = deed else { return Ok(()) };
        let claims = moment.scene.node_claims.all();
        let is_its = |claim: &&std::sync::Arc<NodeClaim>| {
            claim
                .status
                .as_ref()
                .is_some_and(|status| status.provider_id.as_deref() == Some(id.as_str()))
        };
        let Some(claim) = claims.iter().find(is_its) else {
            return Ok(());
        };
        let nodes = moment.scene.nodes.all();
        let stands = |node: &&std::sync::Arc<Node>| {
            let its_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            its_id == Some(id.as_str()) && node.metadata.deletion_timestamp.is_none()
        };
        let registered = is_true(claim.conditions(), node_claim::REGISTERED);
        match nodes.iter().find(stands).filter(|_| registered) {
            None => Ok(()),
            Some(node) => Err(format!(
                "{id} is asked to end while its node {} is not being deleted",
                node.metadata.name.as_deref().unwrap_or_default()
            )),
        }
    }
}

impl EndInOrder {
    fn deadline_is_kept(&mut self, claim: &NodeClaim) -> Verdict {
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let written = claim
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(annotations::TERMINATION_TIMESTAMP));
        let now = written.and_then(|text| text.parse::<Timestamp>().ok());
        match (self.deadlines.get(&uid), now) {
            (Some(before), None) => Err(format!("the deadline {before} of claim {} is gone", name(claim))),
            (Some(before), Some(now)) if now > *before => Err(format!(
                "the deadline of claim {} moved back from {before} to {now}",
                name(claim)
            )),
            (_, Some(now)) => {
                self.deadlines.insert(uid, now);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

fn name(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

fn had_finalizer(meta: &ObjectMeta) -> bool {
    meta.labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(api::labels::REGISTERED))
        || meta
            .finalizers
            .iter()
            .flatten()
            .any(|finalizer| finalizer == finalizers::TERMINATION)
}

fn launched_has_an_id(claim: &NodeClaim) -> Verdict {
    let launched = is_true(claim.conditions(), node_claim::LAUNCHED);
    let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
    if launched && id.is_none_or(str::is_empty) {
        return Err(format!("claim {} is launched and has no provider id", name(claim)));
    }
    Ok(())
}

fn is_claimed(id: Option<&str>, moment: &Moment<'_>) -> bool {
    let claims = moment.scene.node_claims.all();
    let named = |claim: &NodeClaim| {
        claim
            .status
            .as_ref()
            .is_some_and(|status| status.provider_id.as_deref() == id)
    };
    claims.iter().any(|claim| named(claim))
}

fn instance_is_gone(id: Option<&str>, whose: &str, moment: &Moment<'_>) -> Verdict {
    let machine = id.and_then(|id| moment.cloud.machine(&ProviderId::from(id)));
    match machine.map(|machine| machine.state(moment.now)) {
        None | Some(MachineState::Gone) => Ok(()),
        Some(state) => Err(format!("{whose} is gone while its instance is {state:?}")),
    }
}
