//! Ends a node claim: first its node, then its instance, then itself.
//!
//! ```text
//!  deadline ──► node deleted (and drained by node.termination) ──► instance gone ──► finalizer off
//! ```
//!
//! Runs inside the lifecycle controller, so that one claim is never brought up and taken down at once.

mod act;
mod decide;
mod notices;
mod observe;

use api::v1::NodeClaim;

use crate::{context::Ctx, error::StepError, runtime::Action};
pub(crate) use notices::{grace_period_expiring, stamp};

/// Safe to cancel and to repeat: every step is read off the objects and the cloud again.
pub async fn reconcile(ctx: &Ctx, claim: &NodeClaim) -> Result<Action, StepError> {
    let view = observe::observe(ctx, claim);
    let step = decide::decide(&view);
    act::act(ctx, claim, view, step).await
}
