//! Lets an ill node go, or says why not.

use std::time::Duration;

use api::{labels::annotations::TERMINATION_TIMESTAMP, v1::NodeClaim};
use jiff::Timestamp;
use kube::ResourceExt;
use tracing::info;

use super::{decide::Step, notices, observe::View};
use crate::{
    context::Ctx,
    error::StepError,
    metrics::DisruptedWhy,
    node_claim::{remove, termination::stamp},
    objects::{label, pool_of},
    runtime::Action,
};

/// When a blocked repair is looked at again.
const BLOCKED_POLL: Duration = Duration::from_secs(5 * 60);

pub async fn act(ctx: &Ctx, view: &View, step: Step) -> Result<Action, StepError> {
    match step {
        Step::Leave => Ok(Action::AwaitChange),
        Step::Tolerate(left) => Ok(Action::After(left.unsigned_abs())),
        Step::Block => {
            let index = ctx.index.view();
            let pool = view.ward.pool.as_deref().and_then(|pool| index.pools.named(pool));
            for notice in notices::blocked(view, pool.map(|pool| &**pool)) {
                ctx.outbox.publish(notice);
            }
            Ok(Action::After(BLOCKED_POLL))
        }
        Step::Repair => repair(ctx, view).await,
    }
}

/// The deadline comes first: once the claim is deleted its drain must know that nobody is waited for. Pods of a node
/// that does not work have nothing to gain from a grace period.
async fn repair(ctx: &Ctx, view: &View) -> Result<Action, StepError> {
    let hurried = hurried(&view.claim, ctx.clock.now());
    let claim = ctx.writer.update(&*view.claim, &hurried).await?;
    remove(ctx, &claim, DisruptedWhy::Unhealthy).await?;
    let image = claim.status.as_ref().and_then(|status| status.image_id.as_deref());
    ctx.metrics.claims.unhealthy(
        &view.illness.condition,
        pool_of(&claim),
        label(&claim, api::labels::CAPACITY_TYPE),
        image.unwrap_or_default(),
    );
    info!(
        NodeClaim = %claim.name_any(),
        Node = %view.node.name_any(),
        condition = %view.illness.condition,
        status = %view.illness.status,
        "deleting unhealthy node"
    );
    Ok(Action::AwaitChange)
}

/// The claim with a deadline that has passed. One that has passed already is kept.
fn hurried(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut hurried = claim.clone();
    let annotations = hurried.metadata.annotations.get_or_insert_default();
    let set = annotations
        .get(TERMINATION_TIMESTAMP)
        .and_then(|text| text.parse::<Timestamp>().ok());
    if set.is_none_or(|due| due > now) {
        annotations.insert(TERMINATION_TIMESTAMP.to_owned(), stamp(now));
    }
    hurried
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LC-H1, LC-H4: set to now, brought forward, kept when past; what the claim grants its pods does not matter (LC-H5).
    #[test]
    fn a_deadline_is_only_ever_brought_forward() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let deadline = |before: Option<&str>| {
            let mut claim = NodeClaim::default();
            claim.spec.termination_grace_period = serde_json::from_str("\"24h\"").expect("a duration");
            if let Some(before) = before {
                let annotations = claim.metadata.annotations.get_or_insert_default();
                annotations.insert(TERMINATION_TIMESTAMP.to_owned(), before.to_owned());
            }
            hurried(&claim, now).annotations()[TERMINATION_TIMESTAMP].clone()
        };
        assert_eq!(deadline(None), "2026-01-01T12:00:00Z");
        assert_eq!(deadline(Some("2026-01-02T00:00:00Z")), "2026-01-01T12:00:00Z");
        assert_eq!(deadline(Some("2026-01-01T11:00:00Z")), "2026-01-01T11:00:00Z");
        assert_eq!(deadline(Some("whenever")), "2026-01-01T12:00:00Z");
    }
}
