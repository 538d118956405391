//! Brings a command to its end: waits for its replacements, then deletes its nodes; or takes everything back.
//!
//! ```text
//!   every replacement initialised ──► claims deleted ──► done
//!        │ one is gone, or the deadline has passed
//!        └──► marks taken back, nodes stay; replacements that came up stay, too
//! ```

use std::{collections::BTreeSet, time::Duration};

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    v1::NodeClaim,
};
use futures::future::join_all;
use kube::ResourceExt;
use model::{ClaimName, NodeKey, budget::DisruptionReason};
use state::View;
use tokio::time::{Instant, sleep};
use tracing::{debug, error};

use super::{
    heal,
    log::log,
    mark::claim_name,
    notices,
    queue::{Started, Taken},
    start::decision,
};
use crate::{
    context::Ctx,
    error::chain,
    metrics::DisruptedWhy,
    node_claim::{Removal, remove},
    objects::is_deleting,
    runtime::Pace,
    writer::ApiError,
};

const POLL: Duration = Duration::from_secs(1);
const PACE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(10));

/// What has become of the replacements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// These are not ready yet.
    Waiting(Vec<ClaimName>),
    Ready,
    /// This one will never be.
    Lost(ClaimName),
}

pub async fn see_through(ctx: &Ctx, taken: &Taken, started: Started) {
    let mut ready = BTreeSet::new();
    let why = loop {
        let view = ctx.index.view();
        match progress(&view, &started.replacements, &mut ready) {
            Progress::Ready => return delete_all(ctx, taken, &started).await,
            Progress::Lost(claim) => break format!("replacement {claim} is gone"),
            Progress::Waiting(_) if Instant::now() >= started.deadline => {
                break "its replacements did not become ready in time".to_owned();
            }
            Progress::Waiting(waiting) => {
                for claim in waiting.iter().filter_map(|name| view.claims.named(name.as_str())) {
                    notices::waiting(ctx, claim, started.command.reason());
                }
                sleep(POLL).await;
            }
        }
    };
    roll_back(ctx, taken, &started, &ready, &why).await;
}

/// A replacement that was ready once is not asked again: its node may be busy with the pods that it was launched for.
pub fn progress(view: &View, replacements: &[ClaimName], ready: &mut BTreeSet<ClaimName>) -> Progress {
    let mut waiting = Vec::new();
    for name in replacements {
        if ready.contains(name) {
            continue;
        }
        match view.claims.named(name.as_str()) {
            Some(claim) if is_deleting(&**claim) => return Progress::Lost(name.clone()),
            Some(claim) if is_initialized(claim) => drop(ready.insert(name.clone())),
            Some(_) => waiting.push(name.clone()),
            None => return Progress::Lost(name.clone()),
        }
    }
    if waiting.is_empty() {
        Progress::Ready
    } else {
        Progress::Waiting(waiting)
    }
}

/// How many replacements a command has failed with.
fn unready(view: &View, replacements: &[ClaimName], ready: &BTreeSet<ClaimName>) -> usize {
    let is_ready = |name: &ClaimName| {
        let claim = view.claims.named(name.as_str());
        ready.contains(name) || claim.is_some_and(|claim| is_initialized(claim) && !is_deleting(&**claim))
    };
    replacements.iter().filter(|name| !is_ready(name)).count()
}

fn is_initialized(claim: &NodeClaim) -> bool {
    conditions::is_true(claim.conditions(), condition::INITIALIZED)
}

/// The nodes stay marked until they are gone; whoever asks meanwhile sees them leave. Those that cannot be deleted for long
/// are let go of, so that they neither stay marked for ever nor hold up the rest.
async fn delete_all(ctx: &Ctx, taken: &Taken, started: &Started) {
    let Started { command, line, .. } = started;
    let deadline = Instant::now().max(started.deadline);
    let deletions = command
        .nodes
        .iter()
        .map(|node| see_off(ctx, node, command.reason(), deadline));
    let deleted = join_all(deletions).await;
    let kept: Vec<NodeKey> = command
        .nodes
        .iter()
        .zip(deleted)
        .filter(|(_, deleted)| !deleted)
        .map(|(node, _)| node.clone())
        .collect();
    if kept.is_empty() {
        log!(debug, line, "command succeeded");
    } else {
        let why = "it could not be deleted in time";
        log!(error, line, error = why, "could not carry command out");
        // Its replacements are ready, so that none of them is there to be counted.
        ctx.metrics.disruption.queue_failures(&decision(command), 1);
        heal::give_back(ctx, &kept, why).await;
    }
    taken.release(&command.nodes);
}

/// Deletes a claim, however often it takes until the deadline. Says whether that was enough.
async fn see_off(ctx: &Ctx, node: &NodeKey, reason: DisruptionReason, deadline: Instant) -> bool {
    let mut failures = 0;
    while let Err(cause) = delete(ctx, node, reason).await {
        error!(NodeClaim = %node, error = %chain(&cause), "could not delete disrupted nodeclaim");
        if Instant::now() >= deadline {
            return false;
        }
        sleep(PACE.after(failures)).await;
        failures += 1;
    }
    true
}

async fn delete(ctx: &Ctx, node: &NodeKey, reason: DisruptionReason) -> Result<(), ApiError> {
    let view = ctx.index.view();
    let claim = claim_name(node).and_then(|name| view.claims.named(name.as_str()));
    let Some(claim) = claim.filter(|claim| !is_deleting(&***claim)) else {
        return Ok(());
    };
    let machine = view.snapshot.nodes.get(node);
    let pool = machine.and_then(|machine| machine.pool());
    let policy = pool.and_then(|pool| view.snapshot.pools.get(&pool).map(|pool| pool.disruption.policy));
    let why = match reason {
        DisruptionReason::Empty => DisruptedWhy::Empty,
        DisruptionReason::Drifted => DisruptedWhy::Drifted,
        DisruptionReason::Underutilized => DisruptedWhy::Underutilized,
    };
    let policy = policy.filter(|_| reason != DisruptionReason::Drifted);
    remove(ctx, claim, Removal { why, policy }).await?;
    let name = machine.and_then(|machine| machine.node_name());
    let node = name.and_then(|name| view.nodes.named(name.as_str()));
    notices::terminating(ctx, claim, node.map(|node| &**node), reason);
    Ok(())
}

/// Counted are the replacements that were not ready, as upstream does.
async fn roll_back(ctx: &Ctx, taken: &Taken, started: &Started, ready: &BTreeSet<ClaimName>, why: &str) {
    let Started { command, line, .. } = started;
    log!(error, line, error = why, "could not carry command out");
    let failed = unready(&ctx.index.view(), &started.replacements, ready);
    ctx.metrics.disruption.queue_failures(&decision(command), failed);
    heal::give_back(ctx, &command.nodes, why).await;
    // Only now, so that no new command marks a node while its old marks are being taken off.
    taken.release(&command.nodes);
    let view = ctx.index.view();
    for claim in &started.replacements {
        if let Some(claim) = view.claims.named(claim.as_str()) {
            debug!(NodeClaim = %claim.name_any(), "a replacement of a failed command stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use state::{Index, Served};

    use super::*;

    fn index(claims: &[(&str, bool, bool)]) -> Index {
        let index = Index::new(Arc::default(), Served::new([("g".to_owned(), "K".to_owned())]));
        let born = "2026-01-01T00:00:00Z";
        for (number, (name, initialized, deleting)) in claims.iter().enumerate() {
            let condition = json!({"type": "Initialized", "status": if *initialized { "True" } else { "Unknown" }, "reason": "Initialized", "message": "", "lastTransitionTime": born});
            let claim: NodeClaim = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {
                    "name": name, "uid": name, "resourceVersion": (number + 1).to_string(), "creationTimestamp": born,
                    "deletionTimestamp": deleting.then_some(born),
                },
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
                "status": {"conditions": [condition]},
            }))
            .expect("the literal is a claim");
            index.apply(claim);
        }
        index
    }

    fn asked(claims: &[(&str, bool, bool)], replacements: &[&str], ready: &[&str]) -> Progress {
        let names: Vec<ClaimName> = replacements.iter().map(|name| (*name).into()).collect();
        let mut ready = ready.iter().map(|name| (*name).into()).collect();
        progress(&index(claims).view(), &names, &mut ready)
    }

    /// DI-Q1, DI-Q2, DI-Q3, DI-Q5, DI-Q6.
    #[test]
    fn a_command_waits_for_all_of_its_replacements_and_for_none_that_is_gone() {
        let waiting = |names: &[&str]| Progress::Waiting(names.iter().map(|name| (*name).into()).collect());
        assert_eq!(asked(&[], &[], &[]), Progress::Ready);
        assert_eq!(asked(&[("a", false, false)], &["a"], &[]), waiting(&["a"]));
        assert_eq!(
            asked(&[("a", true, false), ("b", false, false)], &["a", "b"], &[]),
            waiting(&["b"])
        );
        assert_eq!(
            asked(&[("a", true, false), ("b", true, false)], &["a", "b"], &[]),
            Progress::Ready
        );
        assert_eq!(
            asked(&[("a", true, false)], &["a", "b"], &[]),
            Progress::Lost("b".into())
        );
        assert_eq!(asked(&[("a", false, true)], &["a"], &[]), Progress::Lost("a".into()));
        assert_eq!(
            asked(&[], &["a"], &["a"]),
            Progress::Ready,
            "what was ready once is not asked again"
        );
    }

    /// DI-Q12.
    #[test]
    fn a_command_fails_with_the_replacements_that_were_not_ready() {
        let claims = [("a", true, false), ("b", false, false), ("c", true, true)];
        let names = ["a", "b", "c", "gone", "seen"].map(ClaimName::from);
        let ready = BTreeSet::from([ClaimName::from("seen")]);
        assert_eq!(unready(&index(&claims).view(), &names, &ready), 3, "b, c and gone");
    }
}
