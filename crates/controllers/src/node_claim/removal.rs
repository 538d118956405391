//! Removing a claim for a reason, and counting it once.

use api::v1::NodeClaim;
use kube::ResourceExt;
use model::{NodeKey, pool::ConsolidationPolicy};

use crate::{
    context::Ctx,
    metrics::{ClaimDisrupted, DisruptedWhy, TerminationMode},
    objects::{is_deleting, label, pool_of},
    writer::ApiError,
};

/// Why a claim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    pub why: DisruptedWhy,
    /// Set where consolidation decided.
    pub policy: Option<ConsolidationPolicy>,
}

impl From<DisruptedWhy> for Removal {
    fn from(why: DisruptedWhy) -> Self {
        Self { why, policy: None }
    }
}

/// Deletes the claim and counts the decision, unless the claim is on its way out already.
pub async fn remove(ctx: &Ctx, claim: &NodeClaim, removal: impl Into<Removal>) -> Result<(), ApiError> {
    if is_deleting(claim) {
        return Ok(());
    }
    let removal = removal.into();
    let pods = pods_to_move(ctx, claim);
    ctx.writer.delete(claim).await?;
    let grace = claim
        .spec
        .termination_grace_period
        .as_ref()
        .and_then(|grace| grace.parse().ok());
    let labels = ClaimDisrupted {
        reason: removal.why,
        nodepool: pool_of(claim).to_owned(),
        capacity_type: label(claim, api::labels::CAPACITY_TYPE).to_owned(),
        consolidation_policy: removal.policy.map_or("", policy_label).to_owned(),
        termination_mode: TerminationMode::of(grace),
    };
    ctx.metrics.claims.disrupted(&labels, pods);
    Ok(())
}

fn pods_to_move(ctx: &Ctx, claim: &NodeClaim) -> usize {
    let view = ctx.index.view();
    let key = NodeKey::Claim(claim.name_any().into());
    let Some(machine) = view.snapshot.nodes.get(&key) else {
        return 0;
    };
    view.snapshot
        .pods_of(machine)
        .filter(|pod| pod.is_reschedulable())
        .count()
}

fn policy_label(policy: ConsolidationPolicy) -> &'static str {
    match policy {
        ConsolidationPolicy::WhenEmpty => "when_empty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "when_empty_or_underutilized",
        ConsolidationPolicy::Balanced => "balanced",
    }
}
