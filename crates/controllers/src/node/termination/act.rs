//! Takes one step of a node's end, and writes down on the claim how far it has come.

use std::time::Duration;

use api::{conditions::node_claim as condition, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use model::ProviderId;
use provider::Termination;
use tracing::info;

use super::{
    decide::{Step, Volumes},
    notices,
    observe::{Owner, View},
};
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    node::eviction::Evictions,
    node_claim::{Draft, termination::grace_period_expiring},
    objects::{about_node, created_at, deleted_at, instance_under, label, pool_of, released},
    runtime::Action,
};

pub const EXCLUDE_FROM_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// How often pods and volumes are looked at when nothing is heard of them. Every change of a pod, an attachment or the
/// node brings a pass of its own; this is for an eviction that was granted and then not carried out, and for an
/// instance that goes while its node is silent.
const QUIET_POLL: Duration = Duration::from_secs(10);
const INSTANCE_POLL: Duration = Duration::from_secs(5);

pub async fn act(ctx: &Ctx, evictions: &Evictions, view: &View, step: Step) -> Result<Action, StepError> {
    if let Some(due) = view.deadline {
        ctx.outbox.publish(grace_period_expiring(about_node(&view.node), due));
    }
    if let (Some(owner), Some(value)) = (&view.owner, &view.unreadable_deadline) {
        ctx.outbox.publish(notices::unreadable_deadline(&owner.claim, value));
    }
    match step {
        Step::DeleteClaim => {
            if let Some(owner) = &view.owner {
                ctx.writer.delete(&*owner.claim).await?;
            }
            Ok(Action::After(Duration::ZERO))
        }
        Step::Mark => {
            ctx.writer.update(&*view.node, &marked(&view.node)).await?;
            info!(Node = %view.node.name_any(), "tainted node");
            Ok(Action::After(Duration::ZERO))
        }
        Step::Drain(drain) => {
            let node = view.node.name_any();
            for pod in drain.force.iter().chain(&drain.evict) {
                evictions.add(pod, view.deadline, &node);
            }
            ctx.outbox.publish(notices::pods_waiting(&view.node, drain.waiting));
            note(ctx, view, Noted::Draining).await?;
            Ok(Action::After(until(drain.changes, ctx.clock.now())))
        }
        Step::Linger(left) => {
            note(ctx, view, Noted::Draining).await?;
            Ok(Action::After(left.unsigned_abs()))
        }
        Step::AwaitVolumes(attached) => {
            ctx.outbox.publish(notices::awaiting_volumes(&view.node, &attached));
            note(ctx, view, Noted::AwaitingVolumes).await?;
            Ok(Action::After(until(view.deadline, ctx.clock.now())))
        }
        Step::Terminate(volumes) => terminate(ctx, view, volumes).await,
        Step::Release => release(ctx, view).await,
    }
}

/// The wait until a moment, if that comes before the next look.
fn until(moment: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = moment
        .map(|moment| moment.duration_since(now))
        .filter(SignedDuration::is_positive);
    left.map_or(QUIET_POLL, |left| {
        left.unsigned_abs().clamp(Duration::from_millis(1), QUIET_POLL)
    })
}

async fn terminate(ctx: &Ctx, view: &View, volumes: Volumes) -> Result<Action, StepError> {
    let gone = match instance_under(&view.node) {
        None => Termination::Gone,
        Some(id) => {
            // Written before the call: whoever sees the machine from now on must not count on it.
            note(ctx, view, Noted::Terminating(volumes)).await?;
            let action = "terminate an instance";
            ctx.cloud
                .terminate(&ProviderId::from(id))
                .await
                .map_err(|cause| CloudError { action, cause })?
        }
    };
    match gone {
        Termination::Requested => Ok(Action::After(INSTANCE_POLL)),
        Termination::Gone => release(ctx, view).await,
    }
}

async fn release(ctx: &Ctx, view: &View) -> Result<Action, StepError> {
    let node = &view.node;
    ctx.writer.update(&**node, &released(&**node)).await?;
    let lived = created_at(&**node).map(|born| ctx.clock.now().duration_since(born).unsigned_abs());
    ctx.metrics.claims.node_terminated(
        pool_of(&**node),
        label(&**node, labels::ZONE),
        lived.unwrap_or_default(),
    );
    if let Some(since) = deleted_at(&**node) {
        let now = ctx.clock.now();
        let took = now.duration_since(since);
        ctx.metrics.claims.node_termination_took(pool_of(&**node), took, now);
    }
    info!(Node = %node.name_any(), "deleted node");
    Ok(Action::AwaitChange)
}

/// The same node, closed for pods and load balancers. Another effect of our taint gives way.
fn marked(node: &Node) -> Node {
    let mut marked = node.clone();
    let taints = marked.spec.get_or_insert_default().taints.get_or_insert_default();
    taints.retain(|taint| taint.key != labels::taints::DISRUPTED);
    taints.push(Taint {
        key: labels::taints::DISRUPTED.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    });
    let labels = marked.metadata.labels.get_or_insert_default();
    labels.insert(EXCLUDE_FROM_BALANCERS.to_owned(), "karpenter".to_owned());
    marked
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    Draining,
    AwaitingVolumes,
    Terminating(Volumes),
}

/// One patch for all that this pass found out.
async fn note(ctx: &Ctx, view: &View, noted: Noted) -> Result<(), StepError> {
    let Some(Owner { claim, .. }) = &view.owner else {
        return Ok(());
    };
    let now = ctx.clock.now();
    let mut draft = Draft::of(claim, now);
    let conditions = &mut draft.conditions;
    match noted {
        Noted::Draining if !conditions.is_true(condition::DRAINED) => {
            conditions.set_unknown(condition::DRAINED, "Draining", "pods are leaving the node", now);
        }
        Noted::Draining => {}
        Noted::AwaitingVolumes => {
            conditions.set_true(condition::DRAINED, now);
            let (reason, message) = ("AwaitingVolumeDetachment", "volumes are being detached from the node");
            conditions.set_unknown(condition::VOLUMES_DETACHED, reason, message, now);
        }
        Noted::Terminating(volumes) => {
            conditions.set_true(condition::DRAINED, now);
            match volumes {
                Volumes::Detached => conditions.set_true(condition::VOLUMES_DETACHED, now),
                Volumes::GivenUp => {
                    let (reason, message) = (
                        "TerminationGracePeriodElapsed",
                        "volumes were still attached at the deadline",
                    );
                    conditions.set_false(condition::VOLUMES_DETACHED, reason, message, now)
                }
            };
            conditions.set_true(condition::INSTANCE_TERMINATING, now);
        }
    }
    let drained = draft.reaches(condition::DRAINED);
    draft.write(&ctx.writer).await?;
    if drained {
        ctx.metrics.claims.node_drained(pool_of(&**claim));
    }
    Ok(())
}
