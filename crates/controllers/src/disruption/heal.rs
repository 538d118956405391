//! Takes back what a command left behind that no longer exists: a crash or a failure between marking and deleting.

use std::collections::BTreeSet;

use api::{
    conditions::{self, HasConditions, node_claim as condition},
    v1::NodeClaim,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use model::{NodeKey, StateNode};
use state::View;
use tracing::debug;

use super::{
    mark::{Leftover, halves, is_tainted, unmark},
    notices,
};
use crate::{
    context::Ctx,
    error::{Classify, StepError, chain},
    objects::is_deleting,
    writer::ApiError,
};

/// How many nodes are looked after at once: a crash may leave many behind, and a server may be slow.
const AT_ONCE: usize = 50;

/// `taken` are nodes that commands have. One that cannot be written does not keep the others waiting.
pub async fn heal(ctx: &Ctx, view: &View, taken: &BTreeSet<NodeKey>) -> Result<(), StepError> {
    let free = view.snapshot.nodes.keys().filter(|key| !taken.contains(key));
    let marked: Vec<&NodeKey> = free.filter(|key| is_marked(view, key)).collect();
    let failures = clear_all(ctx, view, &marked).await.into_iter().filter_map(Result::err);
    // Where somebody was faster the next look helps; whatever else went wrong says more.
    let worst = failures.min_by_key(Classify::is_expected);
    worst.map_or(Ok(()), |failure| Err(failure.into()))
}

/// Takes the marks off nodes that stay after all, and tells them why. Marks that cannot be taken off now are taken off by
/// the next pass.
pub async fn give_back(ctx: &Ctx, nodes: &[NodeKey], why: &str) {
    ctx.index.unmark_for_deletion(nodes);
    let view = ctx.index.view();
    let all: Vec<&NodeKey> = nodes.iter().collect();
    for (node, cleared) in nodes.iter().zip(clear_all(ctx, &view, &all).await) {
        if let Err(cause) = cleared {
            debug!(NodeClaim = %node, error = %chain(&cause), "the marks of a failed command are left to the next pass");
        }
        notices::failed(ctx, &view, node, why);
    }
}

/// One answer for each of the machines.
async fn clear_all(ctx: &Ctx, view: &View, nodes: &[&NodeKey]) -> Vec<Result<(), ApiError>> {
    let mut cleared = Vec::new();
    for some in nodes.chunks(AT_ONCE) {
        cleared.extend(join_all(some.iter().map(|key| clear(ctx, view, key))).await);
    }
    cleared
}

/// Takes back what a command has left on one machine.
async fn clear(ctx: &Ctx, view: &View, key: &NodeKey) -> Result<(), ApiError> {
    match found(view, key) {
        Some((claim, node, left)) => unmark(ctx, claim, node, left).await,
        None => Ok(()),
    }
}

fn is_marked(view: &View, key: &NodeKey) -> bool {
    found(view, key).is_some_and(|(_, _, left)| left != Leftover::default())
}

/// What is left on a machine that has both halves.
fn found<'a>(view: &'a View, key: &NodeKey) -> Option<(&'a NodeClaim, &'a Node, Leftover)> {
    let machine = view.snapshot.nodes.get(key)?;
    let (claim, node) = halves(view, machine)?;
    Some((claim, node, leftover(machine, claim, node)))
}

/// A machine on its way out keeps its marks; so does a node that is being deleted, which the termination owns.
fn leftover(machine: &StateNode, claim: &NodeClaim, node: &Node) -> Leftover {
    if machine.is_leaving() {
        return Leftover::default();
    }
    Leftover {
        taint: is_tainted(node) && !is_deleting(node),
        reason: machine.is_initialized()
            && conditions::find(claim.conditions(), condition::DISRUPTION_REASON).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use state::{Index, Served};

    use super::*;

    fn leftovers(deleting: bool, marked: bool) -> Leftover {
        let index = Index::new(Arc::default(), Served::new([("g".to_owned(), "K".to_owned())]));
        let born = "2026-01-01T00:00:00Z";
        let condition = json!({"type": "DisruptionReason", "status": "True", "reason": "Empty", "message": "", "lastTransitionTime": born});
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "c", "resourceVersion": "1", "creationTimestamp": born},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
            "status": {"providerID": "kwok://c", "conditions": [condition]},
        }))
        .expect("the literal is a claim");
        let node: Node = serde_json::from_value(json!({
            "metadata": {
                "name": "n", "uid": "n", "resourceVersion": "2", "creationTimestamp": born,
                "deletionTimestamp": deleting.then_some(born),
                "labels": {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
            },
            "spec": {"providerID": "kwok://c", "taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
        }))
        .expect("the literal is a node");
        index.apply(claim);
        index.apply(node);
        let key = model::NodeKey::Claim("c".into());
        if marked {
            index.mark_for_deletion([&key]);
        }
        let view = index.view();
        let machine = &view.snapshot.nodes[&key];
        let (claim, node) = halves(&view, machine).expect("both are there");
        leftover(machine, claim, node)
    }

    /// DI-Q9.
    #[test]
    fn marks_without_a_command_are_taken_back() {
        let (taint, reason) = (true, true);
        assert_eq!(leftovers(false, false), Leftover { taint, reason });
        assert_eq!(leftovers(false, true), Leftover::default(), "a command has it");
        assert_eq!(
            leftovers(true, false),
            Leftover { taint: false, reason },
            "the termination owns the taint"
        );
    }
}
