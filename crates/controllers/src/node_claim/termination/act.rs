//! Takes one step of a claim's end.

use std::time::Duration;

use api::{conditions::node_claim as condition, labels, v1::NodeClaim};
use futures::future::try_join_all;
use kube::ResourceExt;
use provider::Termination;
use tracing::info;

use super::{decide::Step, notices, observe::View};
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    node_claim::Draft,
    objects::{about_claim, label, pool_of, released},
    runtime::Action,
};

/// How often a terminating instance is asked after.
const INSTANCE_POLL: Duration = Duration::from_secs(5);

pub async fn act(ctx: &Ctx, claim: &NodeClaim, view: View, step: Step) -> Result<Action, StepError> {
    match step {
        // A deletion raises the generation, and conditions that were reached follow it in the writes that are to come:
        // while the node drains, its termination writes them.
        Step::Hold | Step::AwaitNodes => Ok(Action::AwaitChange),
        Step::SetDeadline(due) => {
            let mut annotated = claim.clone();
            let annotations = annotated.metadata.annotations.get_or_insert_default();
            annotations.insert(
                labels::annotations::TERMINATION_TIMESTAMP.to_owned(),
                notices::stamp(due),
            );
            ctx.writer.update(claim, &annotated).await?;
            info!(NodeClaim = %claim.name_any(), due = %notices::stamp(due), "annotated nodeclaim");
            ctx.outbox
                .publish(notices::grace_period_expiring(about_claim(claim), due));
            Ok(Action::After(Duration::ZERO))
        }
        Step::DeleteNodes(nodes) => {
            try_join_all(nodes.iter().map(|node| ctx.writer.delete(&**node))).await?;
            Ok(Action::AwaitChange)
        }
        Step::Terminate(id) => {
            let now = ctx.clock.now();
            let termination = ctx.cloud.terminate(&id).await.map_err(|cause| CloudError {
                action: "terminate an instance",
                cause,
            })?;
            if termination == Termination::Requested {
                let mut draft = Draft::of(claim, now);
                draft.conditions.set_true(condition::INSTANCE_TERMINATING, now);
                draft.write(&ctx.writer).await?;
                return Ok(Action::After(INSTANCE_POLL));
            }
            release(ctx, claim, &view).await?;
            let took = view
                .deleted_at
                .map(|since| ctx.clock.now().duration_since(since))
                .unwrap_or_default();
            ctx.metrics.claims.instance_terminated(pool_of(claim), took);
            Ok(Action::AwaitChange)
        }
        Step::Release => {
            release(ctx, claim, &view).await?;
            Ok(Action::AwaitChange)
        }
    }
}

async fn release(ctx: &Ctx, claim: &NodeClaim, view: &View) -> Result<(), StepError> {
    ctx.writer.update(claim, &released(claim)).await?;
    let took = view
        .deleted_at
        .map(|since| ctx.clock.now().duration_since(since))
        .unwrap_or_default();
    let (capacity_type, zone) = (label(claim, labels::CAPACITY_TYPE), label(claim, labels::ZONE));
    ctx.metrics.claims.terminated(pool_of(claim), capacity_type, zone, took);
    info!(NodeClaim = %claim.name_any(), "deleted nodeclaim");
    Ok(())
}
