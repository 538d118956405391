//! What the end of a claim depends on.

use std::sync::Arc;

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    labels,
    v1::NodeClaim,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::ProviderId;

use crate::{
    context::Ctx,
    objects::{deleted_at, instance_of, is_held},
};

#[derive(Clone, Debug)]
pub struct View {
    pub held: bool,
    pub deleted_at: Option<Timestamp>,
    /// How long its pods may take, if the claim says so.
    pub grace: Option<SignedDuration>,
    pub has_deadline: bool,
    pub registered: bool,
    pub instance: Option<ProviderId>,
    pub nodes: Vec<Arc<Node>>,
}

pub fn observe(ctx: &Ctx, claim: &NodeClaim) -> View {
    let view = ctx.index.view();
    let instance = instance_of(claim);
    View {
        held: is_held(claim),
        deleted_at: deleted_at(claim),
        grace: claim
            .spec
            .termination_grace_period
            .as_ref()
            .and_then(|grace| grace.parse().ok()),
        has_deadline: claim
            .annotations()
            .contains_key(labels::annotations::TERMINATION_TIMESTAMP),
        registered: conditions::is_true(claim.conditions(), condition::REGISTERED),
        nodes: instance
            .map(|id| view.nodes_of(id).into_iter().cloned().collect())
            .unwrap_or_default(),
        instance: instance.map(ProviderId::from),
    }
}
