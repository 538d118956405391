//! Carries a decision out: claims are created, machines nominated, refusals told.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::v1::NodeClaim;
use futures::{StreamExt, stream};
use jiff::SignedDuration;
use kube::ResourceExt;
use model::{InstanceTypeName, NodeName, PodKey, PoolName, Snapshot};
use scheduler::{Launch, Placement, PoolRefusal, Refusal};
use state::View;
use tracing::{error, info};

use super::{
    claim_object,
    creation::{self, Creation},
    decide::Decision,
    notices,
};
use crate::context::Ctx;

pub async fn act(ctx: &Ctx, view: &View, decision: Decision) {
    let now = ctx.clock.now();
    let window = SignedDuration::try_from(ctx.knobs.nomination()).unwrap_or(SignedDuration::MAX);
    ctx.index.nominate(
        decision.nominated(&view.snapshot),
        now.saturating_add(window).unwrap_or(jiff::Timestamp::MAX),
    );
    for placement in &decision.placements {
        tell_placed(ctx, &view.snapshot, placement);
    }
    for rule in &decision.broken {
        error!(%rule, "dropped a part of the plan that breaks a rule");
    }
    for pool in &decision.over_limit {
        error!(NodePool = %pool, error = "the pool uses more than its limits", "could not create nodeclaim");
    }
    for (pod, refusal) in decision.refused.iter().filter(|(_, refusal)| refusal.is_newsworthy()) {
        if let Some(pod) = view.snapshot.pods.get(pod).filter(|pod| !pod.is_virtual()) {
            error!(Pod = %pod.key, error = %refusal, "could not schedule pod");
            ctx.outbox.publish(notices::failed_scheduling(pod, refusal));
        }
    }
    for pool in without_types(&decision.refused) {
        if let Some(pool) = view.pools.named(pool.as_str()) {
            ctx.outbox.publish(notices::no_compatible_instance_types(pool));
        }
    }
    if decision.launches.is_empty() {
        return;
    }
    let pods: usize = decision.launches.iter().map(|launch| launch.pods.len()).sum();
    info!(pods, "found provisionable pod(s)");
    info!(
        nodeclaims = decision.launches.len(),
        pods, "computed new nodeclaim(s) to fit pod(s)"
    );

    let creations: Vec<_> = decision
        .launches
        .iter()
        .filter_map(|launch| creation(ctx, view, launch))
        .collect();
    stream::iter(creations)
        .for_each_concurrent(creation::PARALLEL, async |(launch, creation)| {
            // A refusal is in the log already; the pods are there for the next round.
            if let Ok(created) = creation.carry_out(ctx).await {
                tell_created(ctx, &view.snapshot, launch, &created, "provisioned");
            }
        })
        .await;
}

/// Creates the claim for a launch that another controller has decided on. `None` when the server will not have it or
/// cannot be brought to it in this time, and when the pool has gone.
pub(crate) async fn create(
    ctx: &Ctx,
    view: &View,
    launch: &Launch,
    why: &str,
    patience: Duration,
) -> Option<NodeClaim> {
    let (launch, creation) = creation(ctx, view, launch)?;
    let created = creation.carry_out_within(ctx, patience).await.ok()?;
    tell_created(ctx, &view.snapshot, launch, &created, why);
    Some(created)
}

/// Tells pods of a node that is there that they are expected on it.
pub(crate) fn tell_placed(ctx: &Ctx, snapshot: &Snapshot, placement: &Placement) {
    let machine = snapshot.nodes.get(&placement.node);
    let node = machine.and_then(|machine| machine.node_name()).map(NodeName::as_str);
    let claim = machine
        .and_then(|machine| machine.claim.as_ref())
        .map(|claim| claim.name.as_str());
    tell_nominated(ctx, snapshot, &placement.pods, claim, node);
}

/// Pools whose own requirements leave nothing to launch, whatever the pod.
fn without_types(refused: &BTreeMap<PodKey, Refusal>) -> BTreeSet<&PoolName> {
    let pools = refused.values().filter_map(Refusal::pools);
    let empty = pools.flatten().filter(|(_, why)| *why == PoolRefusal::NoInstanceTypes);
    empty.map(|(pool, _)| pool).collect()
}

fn tell_nominated(ctx: &Ctx, snapshot: &Snapshot, pods: &[PodKey], claim: Option<&str>, node: Option<&str>) {
    let real = pods.iter().filter_map(|key| snapshot.pods.get(key));
    for pod in real.filter(|pod| !pod.is_virtual()) {
        ctx.outbox.publish(notices::nominated(pod, claim, node));
    }
}

/// A launch on its way to become a claim. Nothing for a pool that went while the round ran.
fn creation<'a>(ctx: &Ctx, view: &View, launch: &'a Launch) -> Option<(&'a Launch, Creation)> {
    let current = ctx.index.view();
    let pool = current.pools.named(launch.pool.as_str())?;
    let planned = view.snapshot.pools.get(&launch.pool)?;
    let overlays = claim_object::overlays(launch, &view.snapshot);
    let claim = claim_object::of_launch(launch, planned, pool, overlays);
    Some((launch, Creation::of(ctx, claim)))
}

fn tell_created(ctx: &Ctx, snapshot: &Snapshot, launch: &Launch, created: &NodeClaim, why: &str) {
    let name = created.name_any();
    ctx.metrics
        .claims
        .created(why, launch.pool.as_str(), launch.min_values_relaxed);
    let types = launch
        .instance_types
        .iter()
        .take(5)
        .map(InstanceTypeName::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = launch.instance_types.len().saturating_sub(5);
    info!(NodePool = %launch.pool, NodeClaim = %name, requests = %launch.requests, instance_types = %types, more, "created nodeclaim");
    tell_nominated(ctx, snapshot, &launch.pods, Some(&name), None);
    if ctx.knobs.features.proactive_binding {
        let view = ctx.index.view();
        ctx.promises
            .put(name, &launch.pods, |claim| view.claims.named(claim).is_some());
    }
}
