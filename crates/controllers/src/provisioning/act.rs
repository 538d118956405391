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
use scheduler::{Launch, PoolRefusal, Refusal};
use state::View;
use tokio::time::sleep;
use tracing::{error, info};

use super::{claim_object, decide::Decision, names, notices};
use crate::{
    context::Ctx,
    error::chain,
    runtime::Pace,
    writer::{ApiError, ApiFailure},
};

/// How many claims are created at once.
const PARALLEL_CREATES: usize = 50;
/// Waits between attempts to create one claim.
const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(5));

pub async fn act(ctx: &Ctx, view: &View, decision: Decision) {
    let now = ctx.clock.now();
    let window = SignedDuration::try_from(ctx.knobs.nomination()).unwrap_or(SignedDuration::MAX);
    ctx.index.nominate(
        decision.nominated(),
        now.saturating_add(window).unwrap_or(jiff::Timestamp::MAX),
    );
    for placement in &decision.placements {
        let machine = view.snapshot.nodes.get(&placement.node);
        let node = machine.and_then(|machine| machine.node_name()).map(NodeName::as_str);
        let claim = machine
            .and_then(|machine| machine.claim.as_ref())
            .map(|claim| claim.name.as_str());
        tell_nominated(ctx, &view.snapshot, &placement.pods, claim, node);
    }
    for rule in &decision.broken {
        error!(%rule, "dropped a part of the plan that breaks a rule");
    }
    for pool in &decision.over_limit {
        error!(NodePool = %pool, error = "the pool uses more than its limits", "could not create nodeclaim");
    }
    for (pod, refusal) in decision.refused.iter().filter(|(_, refusal)| refusal.is_newsworthy()) {
        if let Some(pod) = view.snapshot.pods.get(pod) {
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
        .filter_map(|launch| Creation::of(ctx, view, launch))
        .collect();
    stream::iter(creations)
        .for_each_concurrent(PARALLEL_CREATES, |creation| creation.carry_out(ctx, &view.snapshot))
        .await;
}

/// Pools whose own requirements leave nothing to launch, whatever the pod.
fn without_types(refused: &BTreeMap<PodKey, Refusal>) -> BTreeSet<&PoolName> {
    let pools = refused.values().filter_map(Refusal::pools);
    let empty = pools.flatten().filter(|(_, why)| *why == PoolRefusal::NoInstanceTypes);
    empty.map(|(pool, _)| pool).collect()
}

fn tell_nominated(ctx: &Ctx, snapshot: &Snapshot, pods: &[PodKey], claim: Option<&str>, node: Option<&str>) {
    for pod in pods.iter().filter_map(|key| snapshot.pods.get(key)) {
        ctx.outbox.publish(notices::nominated(pod, claim, node));
    }
}

/// A claim to be created, under a name that is ours from the first attempt to the last.
struct Creation<'a> {
    launch: &'a Launch,
    claim: NodeClaim,
}

impl<'a> Creation<'a> {
    /// `None` for a pool that went while the round ran.
    fn of(ctx: &Ctx, view: &View, launch: &'a Launch) -> Option<Self> {
        let current = ctx.index.view();
        let pool = current.pools.named(launch.pool.as_str())?;
        let planned = view.snapshot.pools.get(&launch.pool)?;
        let claim = claim_object::claim(launch, planned, pool);
        let mut creation = Self { launch, claim };
        creation.rename(ctx);
        Some(creation)
    }

    fn rename(&mut self, ctx: &Ctx) {
        let view = ctx.index.view();
        let prefix = self.claim.metadata.generate_name.clone().unwrap_or_default();
        let mut random = ctx.random.lock();
        let name = names::fresh(&prefix, &mut *random, |name| view.claims.named(name).is_some());
        self.claim.metadata.name = Some(name);
    }

    /// Tries until the server has said yes or no. Giving up on a creation with an unknown outcome would let the next
    /// round order the same again.
    async fn carry_out(mut self, ctx: &Ctx, snapshot: &Snapshot) {
        let mut failures = 0;
        let mut maybe_created = false;
        loop {
            match self.attempt(ctx, maybe_created).await {
                Ok(created) => return self.tell(ctx, snapshot, &created),
                Err(Attempt::NameTaken) => self.rename(ctx),
                Err(Attempt::Refused(cause)) => {
                    error!(NodePool = %self.launch.pool, error = %chain(&cause), "could not create nodeclaim");
                    return;
                }
                Err(Attempt::Failed(cause)) => {
                    maybe_created |= matches!(cause.failure, ApiFailure::Unknown | ApiFailure::Internal);
                    error!(NodePool = %self.launch.pool, error = %chain(&cause), "creating nodeclaim again");
                    sleep(PACE.after(failures)).await;
                    failures += 1;
                }
            }
        }
    }

    async fn attempt(&self, ctx: &Ctx, maybe_created: bool) -> Result<NodeClaim, Attempt> {
        let cause = match ctx.writer.create(&self.claim).await {
            Ok(created) => return Ok(created),
            Err(cause) => cause,
        };
        match cause.failure {
            ApiFailure::AlreadyExists if maybe_created => {
                let name = self.claim.name_any();
                let found: Option<NodeClaim> = ctx.writer.get(&name).await.map_err(Attempt::Failed)?;
                match found.filter(|found| self.is_ours(found)) {
                    Some(ours) => {
                        ctx.index.apply(ours.clone());
                        Ok(ours)
                    }
                    None => Err(Attempt::NameTaken),
                }
            }
            ApiFailure::AlreadyExists => Err(Attempt::NameTaken),
            ApiFailure::Rejected | ApiFailure::NotFound => Err(Attempt::Refused(cause)),
            ApiFailure::Conflict | ApiFailure::Throttled | ApiFailure::Internal | ApiFailure::Unknown => {
                Err(Attempt::Failed(cause))
            }
        }
    }

    /// The object of an earlier attempt whose answer was lost. Two claims that ask for the same under one name are as
    /// good as one.
    fn is_ours(&self, found: &NodeClaim) -> bool {
        found.metadata.owner_references == self.claim.metadata.owner_references
            && found.spec.requirements == self.claim.spec.requirements
            && found.spec.resources == self.claim.spec.resources
    }

    fn tell(&self, ctx: &Ctx, snapshot: &Snapshot, created: &NodeClaim) {
        let launch = self.launch;
        let name = created.name_any();
        ctx.metrics
            .claims
            .created("provisioned", launch.pool.as_str(), launch.min_values_relaxed);
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
    }
}

/// How an attempt failed.
enum Attempt {
    NameTaken,
    /// The server will not have it.
    Refused(ApiError),
    Failed(ApiError),
}
