//! The marks on nodes that a command has: a taint that keeps new pods away, and a condition that says why.

use std::time::Duration;

use api::{conditions::node_claim as condition, labels, v1::NodeClaim};
use k8s_openapi::api::core::v1::{Node, Taint};
use model::{ClaimName, NodeKey, StateNode, budget::DisruptionReason};
use state::View;
use tokio::time::sleep;

use crate::{
    context::Ctx,
    node_claim::Draft,
    objects::{is_deleting, taints_of},
    runtime::Pace,
    writer::{ApiError, ApiFailure},
};

/// Waits between attempts to mark a machine. The watch tells of the other's write within the first of them.
const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(1));
const RETRIES: u32 = 5;

/// The claim of a machine that a command has.
pub fn claim_name(key: &NodeKey) -> Option<&ClaimName> {
    match key {
        NodeKey::Claim(name) => Some(name),
        NodeKey::Node(_) => None,
    }
}

/// Marks a machine, and tries again while others who write to it are faster: a kubelet's report must not end a command.
/// Says whether the machine is still there.
pub async fn mark(ctx: &Ctx, machine: &StateNode, reason: DisruptionReason) -> Result<bool, ApiError> {
    let mut failures = 0;
    loop {
        match mark_once(ctx, machine, reason).await {
            Err(cause) if cause.failure == ApiFailure::Conflict && failures < RETRIES => {
                sleep(PACE.after(failures)).await;
                failures += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Taint first: nothing new may come to a node that the claim already calls disrupted. Nothing is marked of a machine
/// that has gone meanwhile.
async fn mark_once(ctx: &Ctx, machine: &StateNode, reason: DisruptionReason) -> Result<bool, ApiError> {
    let view = ctx.index.view();
    let Some(node) = machine.node_name().and_then(|name| view.nodes.named(name.as_str())) else {
        return Ok(false);
    };
    ctx.writer.update(&**node, &tainted(node)).await?;
    // The claim may have changed since the decision; its newest state is what is marked.
    let view = ctx.index.view();
    let claim = claim_name(&machine.key).and_then(|name| view.claims.named(name.as_str()));
    let Some(claim) = claim.filter(|claim| !is_deleting(&***claim)) else {
        return Ok(false);
    };
    let now = ctx.clock.now();
    let mut draft = Draft::of(claim, now);
    draft
        .conditions
        .set_true_because(condition::DISRUPTION_REASON, reason.as_str(), reason.as_str(), now);
    draft.write(&ctx.writer).await.map(|_| true)
}

/// Takes the marks back.
pub async fn unmark(ctx: &Ctx, claim: &NodeClaim, node: &Node, left: Leftover) -> Result<(), ApiError> {
    if left.taint {
        ctx.writer.update(node, &untainted(node)).await?;
    }
    if left.reason {
        let mut draft = Draft::of(claim, ctx.clock.now());
        draft.conditions.clear(condition::DISRUPTION_REASON);
        draft.write(&ctx.writer).await?;
    }
    Ok(())
}

/// What is left of a command on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    pub taint: bool,
    pub reason: bool,
}

/// The two halves of a machine that has both.
pub fn halves<'a>(view: &'a View, machine: &StateNode) -> Option<(&'a NodeClaim, &'a Node)> {
    let claim = view.claims.named(machine.claim.as_ref()?.name.as_str())?;
    let node = view.nodes.named(machine.node_name()?.as_str())?;
    Some((claim, node))
}

/// The node, closed for new pods. A taint of ours with another effect gives way.
fn tainted(node: &Node) -> Node {
    let mut tainted = untainted(node);
    tainted
        .spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default()
        .push(Taint {
            key: labels::taints::DISRUPTED.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    tainted
}

fn untainted(node: &Node) -> Node {
    let mut untainted = node.clone();
    let taints: Vec<_> = taints_of(node)
        .iter()
        .filter(|taint| taint.key != labels::taints::DISRUPTED)
        .cloned()
        .collect();
    untainted.spec.get_or_insert_default().taints = (!taints.is_empty()).then_some(taints);
    untainted
}

pub fn is_tainted(node: &Node) -> bool {
    taints_of(node)
        .iter()
        .any(|taint| taint.key == labels::taints::DISRUPTED && taint.effect == "NoSchedule")
}
