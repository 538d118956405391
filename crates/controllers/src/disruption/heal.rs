//! Takes back what a command left behind that no longer exists: a crash or a failure between marking and deleting.

use api::{
    conditions::{self, node_claim as condition},
    v1::NodeClaim,
};
use k8s_openapi::api::core::v1::Node;
use model::StateNode;
use state::View;

use super::act::{is_tainted, untainted};
use crate::{context::Ctx, error::StepError, node_claim::Draft, objects::is_deleting};

/// What is left of a command on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    pub taint: bool,
    pub reason: bool,
}

pub async fn heal(ctx: &Ctx, view: &View) -> Result<(), StepError> {
    for machine in view.snapshot.nodes.values() {
        let Some((claim, node)) = halves(view, machine) else {
            continue;
        };
        let left = leftover(machine, claim, node);
        if left.taint {
            ctx.writer.update(node, &untainted(node)).await?;
        }
        if left.reason {
            let mut draft = Draft::of(claim, ctx.clock.now());
            draft.conditions.clear(condition::DISRUPTION_REASON);
            draft.write(&ctx.writer).await?;
        }
    }
    Ok(())
}

fn halves<'a>(view: &'a View, machine: &StateNode) -> Option<(&'a NodeClaim, &'a Node)> {
    let claim = view.claims.named(machine.claim.as_ref()?.name.as_str())?;
    let node = view.nodes.named(machine.node_name()?.as_str())?;
    Some((claim, node))
}

/// A machine on its way out keeps its marks; so does a node that is being deleted, which the termination owns.
pub fn leftover(machine: &StateNode, claim: &NodeClaim, node: &Node) -> Leftover {
    if machine.is_leaving() {
        return Leftover::default();
    }
    let listed = claim
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    Leftover {
        taint: is_tainted(node) && !is_deleting(node),
        reason: machine.is_initialized() && conditions::find(listed, condition::DISRUPTION_REASON).is_some(),
    }
}
