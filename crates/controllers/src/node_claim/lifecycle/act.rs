//! Takes the steps of a claim's life and writes down how far they came.

use api::{conditions::node_claim as condition, v1::NodeClaim};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::NodeKey;
use provider::ProviderError;
use tracing::{error, info};

use super::{
    initialization::{self, Initialization},
    launch,
    liveness::{self, Liveness, Overdue},
    notices,
    registration::{self, Registration},
};
use crate::{
    catalog,
    context::Ctx,
    error::{CloudError, StepError, chain},
    metrics::DisruptedWhy,
    node_claim::{Draft, remove},
    node_pool::registration_health,
    objects::{class_label, held, instance_of, is_held, label, pool_of},
    runtime::Action,
};

/// What became of the first step.
enum Launch {
    Done,
    /// To be tried again.
    Failed(CloudError),
    /// The claim is gone, or will be.
    Abandoned,
}

pub async fn bring_up(ctx: &Ctx, claim: &NodeClaim) -> Result<Action, StepError> {
    // Launching first and marking later could leave an instance that nobody owns.
    let claim = if is_held(claim) {
        claim.clone()
    } else {
        ctx.writer.update(claim, &held(claim)).await?
    };
    let mut draft = Draft::of(&claim, ctx.clock.now());
    hydrate(&mut draft);

    // What one step could not do does not undo what the others did: it is told after all has been written down.
    let mut failure: Option<StepError> = match launch(ctx, &mut draft).await? {
        Launch::Done => None,
        Launch::Failed(cause) => Some(cause.into()),
        Launch::Abandoned => return Ok(Action::AwaitChange),
    };
    let brought_up = async {
        let node = register(ctx, &mut draft).await?;
        initialize(ctx, &mut draft, node).await
    };
    if let Err(cause) = brought_up.await {
        failure.get_or_insert(cause);
    }

    let now = ctx.clock.now();
    let limits = liveness::Limits::of(&ctx.knobs);
    let liveness = liveness::decide(&draft.conditions, limits, now);
    if let Liveness::Overdue(overdue) = &liveness {
        give_up(ctx, &draft, overdue).await?;
        return Ok(Action::AwaitChange);
    }
    record(ctx, draft).await?;
    match (failure, liveness) {
        (Some(failure), _) => Err(failure),
        (None, Liveness::CheckAgain(wait)) => Ok(Action::After(wait.unsigned_abs())),
        (None, _) => Ok(Action::AwaitChange),
    }
}

/// A claim that a user made by hand may lack the label that tells its class.
fn hydrate(draft: &mut Draft) {
    let (key, class) = class_label(&draft.claim);
    draft
        .claim
        .metadata
        .labels
        .get_or_insert_default()
        .entry(key)
        .or_insert(class);
}

async fn launch(ctx: &Ctx, draft: &mut Draft) -> Result<Launch, StepError> {
    if draft.is_true(condition::LAUNCHED) {
        return Ok(Launch::Done);
    }
    let view = ctx.index.view();
    let key = NodeKey::Claim(draft.claim.name_any().into());
    let Some(planned) = view.snapshot.nodes.get(&key).and_then(|machine| machine.claim.as_ref()) else {
        // It went while we looked.
        return Ok(Launch::Abandoned);
    };
    let request = launch::request(planned);
    match ctx.cloud.launch(&request).await {
        Ok(launched) => {
            launch::record(draft, launched, ctx.clock.now());
            Ok(Launch::Done)
        }
        Err(refusal @ (ProviderError::InsufficientCapacity { .. } | ProviderError::NodeClassNotReady { .. })) => {
            let why = match refusal {
                ProviderError::InsufficientCapacity { .. } => DisruptedWhy::InsufficientCapacity,
                _ => DisruptedWhy::NodeClassNotReady,
            };
            error!(NodeClaim = %request.claim, error = %chain(&refusal), "failed launching nodeclaim");
            ctx.outbox.publish(notices::launch_refused(&draft.claim, &refusal));
            // The next round must know that this cannot be had before the pods ask again.
            if let Some(pool) = &request.pool {
                catalog::refresh(ctx, pool).await;
            }
            remove(ctx, &draft.claim, why).await?;
            Ok(Launch::Abandoned)
        }
        Err(cause) => {
            launch::record_failure(draft, &cause, ctx.clock.now());
            let action = "launch an instance";
            Ok(Launch::Failed(CloudError { action, cause }))
        }
    }
}

/// Returns the node as it is after registration.
async fn register(ctx: &Ctx, draft: &mut Draft) -> Result<Option<Node>, StepError> {
    let view = ctx.index.view();
    let nodes = instance_of(&draft.claim)
        .map(|instance| view.nodes_of(instance))
        .unwrap_or_default();
    let found = registration::decide(draft, &nodes);
    let now = ctx.clock.now();
    registration::note(draft, &found, now);
    let (node, unmarked) = match found {
        Registration::Waiting | Registration::NoNode | Registration::SeveralNodes => return Ok(None),
        Registration::Done(node) => {
            let hydrated = registration::hydrated(&draft.claim, &node);
            return Ok(Some(ctx.writer.update(&node, &hydrated).await?));
        }
        Registration::Join { node, unmarked } => (node, unmarked),
    };
    if unmarked {
        error!(NodeClaim = %draft.claim.name_any(), Node = %node.name_any(), "node joined without the unregistered taint");
        ctx.outbox.publish(notices::unregistered_taint_missing(&draft.claim));
    }
    let wanted = registration::joined(&draft.claim, &node);
    let node = ctx.writer.update(&node, &wanted).await?;
    draft.conditions.set_true(condition::REGISTERED, now);
    draft.status().node_name = Some(node.name_any());
    Ok(Some(node))
}

async fn initialize(ctx: &Ctx, draft: &mut Draft, node: Option<Node>) -> Result<(), StepError> {
    let found = initialization::decide(draft, node.as_ref());
    let now = ctx.clock.now();
    match (found, node) {
        (Initialization::Ready, Some(node)) => {
            ctx.writer.update(&node, &initialization::labelled(&node)).await?;
            draft.conditions.set_true(condition::INITIALIZED, now);
        }
        (Initialization::Waiting(lack), _) => {
            draft
                .conditions
                .set_unknown(condition::INITIALIZED, lack.reason(), &lack.to_string(), now);
        }
        (Initialization::Done | Initialization::NotRegistered | Initialization::Ready, _) => {}
    }
    Ok(())
}

async fn give_up(ctx: &Ctx, draft: &Draft, overdue: &Overdue) -> Result<(), StepError> {
    let (why, message) = match overdue {
        Overdue::Launch => (DisruptedWhy::LaunchTimeout, "launch timed out"),
        Overdue::Registration => (DisruptedWhy::RegistrationTimeout, "registration timed out"),
    };
    let launched = draft.conditions.get(condition::LAUNCHED);
    registration_health::failed(ctx, &draft.claim, launched);
    error!(NodeClaim = %draft.claim.name_any(), reason = why.as_str(), error = message, "deleting nodeclaim");
    remove(ctx, &draft.claim, why).await?;
    Ok(())
}

/// Writes the draft, then tells what was reached: a counter that ran ahead of the write would count twice.
async fn record(ctx: &Ctx, draft: Draft) -> Result<(), StepError> {
    let reached = [condition::LAUNCHED, condition::REGISTERED, condition::INITIALIZED].map(|name| draft.reaches(name));
    if reached[1] {
        registration_health::succeeded(ctx, &draft.claim);
    }
    let claim = draft.write(&ctx.writer).await?;
    let name = claim.name_any();
    let pool = pool_of(&claim);
    let (shape, zone) = (
        label(&claim, api::labels::INSTANCE_TYPE),
        label(&claim, api::labels::ZONE),
    );
    let capacity = label(&claim, api::labels::CAPACITY_TYPE);
    let instance = instance_of(&claim).unwrap_or_default();
    let node = claim
        .status
        .as_ref()
        .and_then(|status| status.node_name.as_deref())
        .unwrap_or_default();
    if reached[0] {
        info!(NodeClaim = %name, provider_id = instance, instance_type = shape, zone, capacity_type = capacity, "launched nodeclaim");
    }
    if reached[1] {
        ctx.metrics.claims.node_created(pool, zone);
        info!(NodeClaim = %name, Node = node, provider_id = instance, "registered nodeclaim");
    }
    if reached[2] {
        info!(NodeClaim = %name, Node = node, provider_id = instance, "initialized nodeclaim");
    }
    Ok(())
}

/// How long until a moment, and never less than a moment.
pub(super) fn wait_until(due: jiff::Timestamp, now: jiff::Timestamp) -> SignedDuration {
    due.duration_since(now).max(SignedDuration::from_millis(1))
}
