//! Carries a command out: marks its nodes, then deletes their claims.

use std::{collections::BTreeSet, time::Duration};

use api::{conditions::node_claim as condition, labels, v1::NodeClaim};
use disruption::Command;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Taint};
use model::{NodeKey, NodeName, StateNode, budget::DisruptionReason, pool::ConsolidationPolicy};
use state::View;
use tokio::time::{Instant, sleep};
use tracing::{error, info};

use super::{EMPTY, notices};
use crate::{
    context::Ctx,
    error::{StepError, chain},
    metrics::{Decision, DisruptedWhy},
    node_claim::{Draft, Removal, remove},
    objects::taints_of,
    runtime::Pace,
    writer::ApiError,
};

/// How long a claim is tried to be deleted.
const DEADLINE: Duration = Duration::from_secs(10 * 60);
const PACE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(10));

/// A pure deletion goes on with the nodes that could be marked; the taints of the others are taken off by the next
/// pass.
pub async fn carry_out(ctx: &Ctx, view: &View, command: &Command) -> Result<(), StepError> {
    let machines: Vec<_> = command
        .nodes
        .iter()
        .filter_map(|key| view.snapshot.nodes.get(key))
        .collect();
    log(view, command, &machines);
    let marked = join_all(machines.iter().map(|machine| mark(ctx, view, machine, command.reason))).await;
    let mut going = Vec::new();
    let mut failure = None;
    for (machine, result) in machines.into_iter().zip(marked) {
        match result {
            Ok(claim) => going.push((machine, claim)),
            Err(cause) => {
                error!(NodeClaim = %machine.key, error = %chain(&cause), "could not mark node for disruption");
                failure = Some(cause);
            }
        }
    }
    if let (true, Some(cause)) = (going.is_empty(), failure) {
        return Err(cause.into());
    }
    let keys: Vec<&NodeKey> = going.iter().map(|(machine, _)| &machine.key).collect();
    ctx.index.mark_for_deletion(keys);
    count(ctx, command, &going);
    let removals = going
        .iter()
        .map(|(machine, claim)| see_off(ctx, view, machine, claim, command.reason));
    join_all(removals).await;
    Ok(())
}

/// Deletes a claim, however often it takes. One that cannot be deleted for long is let go of, so that it neither stays
/// marked for ever nor holds up the rest.
async fn see_off(ctx: &Ctx, view: &View, machine: &StateNode, claim: &NodeClaim, reason: DisruptionReason) {
    let deadline = Instant::now() + DEADLINE;
    let mut failures = 0;
    while let Err(cause) = delete(ctx, view, machine, claim, reason).await {
        error!(NodeClaim = %machine.key, error = %chain(&cause), "could not delete disrupted nodeclaim");
        if Instant::now() >= deadline {
            ctx.index.unmark_for_deletion([&machine.key]);
            return;
        }
        sleep(PACE.after(failures)).await;
        failures += 1;
    }
}

/// Taint first: nothing new may come to a node that the claim already calls disrupted.
async fn mark(ctx: &Ctx, view: &View, machine: &StateNode, reason: DisruptionReason) -> Result<NodeClaim, ApiError> {
    if let Some(node) = machine.node_name().and_then(|name| view.nodes.named(name.as_str())) {
        ctx.writer.update(&**node, &tainted(node)).await?;
    }
    // The claim may have changed since the decision; its newest state is what is marked.
    let NodeKey::Claim(name) = &machine.key else {
        unreachable!("a candidate has a claim");
    };
    let current = ctx.index.view();
    let claim = current
        .claims
        .named(name.as_str())
        .or_else(|| view.claims.named(name.as_str()));
    let claim = claim.expect("a candidate has a claim");
    let now = ctx.clock.now();
    let mut draft = Draft::of(claim, now);
    draft
        .conditions
        .set_true_because(condition::DISRUPTION_REASON, reason.as_str(), reason.as_str(), now);
    draft.write(&ctx.writer).await
}

async fn delete(
    ctx: &Ctx,
    view: &View,
    machine: &StateNode,
    claim: &NodeClaim,
    reason: DisruptionReason,
) -> Result<(), StepError> {
    let policy = machine
        .pool()
        .and_then(|pool| view.snapshot.pools.get(&pool).map(|pool| pool.disruption.policy));
    let why = match reason {
        DisruptionReason::Empty => DisruptedWhy::Empty,
        DisruptionReason::Drifted => DisruptedWhy::Drifted,
        DisruptionReason::Underutilized => DisruptedWhy::Underutilized,
    };
    let policy: Option<ConsolidationPolicy> = policy.filter(|_| reason != DisruptionReason::Drifted);
    remove(ctx, claim, Removal { why, policy }).await?;
    let node = machine.node_name().and_then(|name| view.nodes.named(name.as_str()));
    notices::terminating(ctx, claim, node.map(|node| &**node), reason);
    Ok(())
}

fn count(ctx: &Ctx, command: &Command, going: &[(&std::sync::Arc<StateNode>, NodeClaim)]) {
    let decision = Decision {
        decision: if command.replacements.is_empty() {
            "delete"
        } else {
            "replace"
        },
        reason: command.reason.as_str().to_lowercase(),
        consolidation_type: EMPTY,
    };
    let pools: BTreeSet<String> = going
        .iter()
        .filter_map(|(machine, _)| machine.pool())
        .map(|pool| pool.to_string())
        .collect();
    ctx.metrics
        .disruption
        .decided(&decision, pools.iter().map(String::as_str));
}

fn log(view: &View, command: &Command, machines: &[&std::sync::Arc<StateNode>]) {
    let nodes = machines
        .iter()
        .filter_map(|machine| machine.node_name())
        .map(NodeName::as_str);
    let nodes = nodes.collect::<Vec<_>>().join(", ");
    let pods: usize = machines
        .iter()
        .map(|machine| {
            view.snapshot
                .pods_of(machine)
                .filter(|pod| pod.is_reschedulable())
                .count()
        })
        .sum();
    let savings: f64 = machines
        .iter()
        .filter_map(|machine| view.snapshot.price_of(machine))
        .sum();
    info!(
        command = %format!("{}: delete nodes [{nodes}] (savings: ${savings:.2})", command.reason),
        decision = "delete",
        disrupted_node_count = machines.len(),
        replacement_node_count = command.replacements.len(),
        pod_count = pods,
        "disrupting node(s)"
    );
}

/// The node, closed for new pods. A taint of ours with another effect gives way.
pub fn tainted(node: &Node) -> Node {
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

pub fn untainted(node: &Node) -> Node {
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
