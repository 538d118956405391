//! Takes the steps of a claim's life and writes down how far they came.

use api::{conditions::node_claim as condition, v1::NodeClaim};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use model::NodeKey;
use provider::ProviderError;
use tracing::{error, info};

use super::{
    adoption, devices, hooks,
    initialization::{self, Initialization},
    launch,
    liveness::{self, Liveness, Overdue},
    notices, pre_registration,
    registration::{self, Registration},
};
use crate::{
    catalog,
    context::Ctx,
    error::{CloudError, StepError, chain},
    metrics::DisruptedWhy,
    node_claim::{Draft, remove},
    node_pool::registration_health,
    objects::{adopted_by, class_label, held, instance_of, is_held, is_ready, label, pool_of},
    runtime::Action,
};

/// What became of the second step.
#[derive(Default)]
struct Registered {
    /// The node as it is now, where there is one.
    node: Option<Node>,
    /// When the provider wants to be asked again.
    again: Option<SignedDuration>,
}

/// What became of the first step.
pub(super) enum Launch {
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
    let mut ask_again = None;
    let brought_up = async {
        let Registered { node, again } = register(ctx, &mut draft).await?;
        ask_again = again;
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
    let is_new = draft.reaches(condition::LAUNCHED);
    let claim = record(ctx, draft).await?;
    // Only now that it is written down: pods of a machine that nobody knows would be lost.
    if is_new && ctx.knobs.features.pre_registration {
        pre_registration::announce(ctx, &claim).await;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let deadline = match liveness {
        Liveness::CheckAgain(wait) => Some(wait),
        Liveness::Alive | Liveness::Overdue(_) => None,
    };
    let next = deadline.into_iter().chain(ask_again).min();
    Ok(next.map_or(Action::AwaitChange, |wait| Action::After(wait.unsigned_abs())))
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
    if let Some(instance) = adopted_by(&draft.claim) {
        return adoption::adopt(ctx, &view, draft, &instance).await;
    }
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

async fn register(ctx: &Ctx, draft: &mut Draft) -> Result<Registered, StepError> {
    let view = ctx.index.view();
    let instance = instance_of(&draft.claim).map(str::to_owned).unwrap_or_default();
    let nodes = view.nodes_of(&instance);
    let found = registration::decide(draft, &nodes);
    let now = ctx.clock.now();
    registration::note(draft, &found, now);
    let (node, unmarked) = match found {
        Registration::Waiting | Registration::NoNode | Registration::SeveralNodes => return Ok(Registered::default()),
        Registration::Done(node) => {
            let hydrated = registration::hydrated(&draft.claim, &node);
            let node = ctx.writer.update(&node, &hydrated).await?;
            return Ok(node.into());
        }
        Registration::Join { node, unmarked } => (node, unmarked),
    };
    // A node that ran before its claim was made had nobody to wait for.
    if unmarked && adopted_by(&draft.claim).is_none() {
        error!(NodeClaim = %draft.claim.name_any(), Node = %node.name_any(), "node joined without the unregistered taint");
        ctx.outbox.publish(notices::unregistered_taint_missing(&draft.claim));
    }
    let question = hooks::question(&draft.claim, &instance, &node.name_any());
    let verdict = hooks::ask(ctx.cloud.registration_hooks(), &question).await;
    let given = verdict
        .labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    draft.claim.metadata.labels.get_or_insert_default().extend(given);
    if !verdict.pending.is_empty() {
        registration::note_pending(draft, &verdict.pending, now);
        let synced = registration::synced(&draft.claim, &node);
        ctx.writer.update(&node, &synced).await?;
        return match verdict.failure {
            Some(failure) => Err(failure.into()),
            None => Ok(Registered {
                node: None,
                again: verdict.again,
            }),
        };
    }
    let wanted = registration::joined(&draft.claim, &node);
    let node = ctx.writer.update(&node, &wanted).await?;
    draft.conditions.set_true(condition::REGISTERED, now);
    draft.status().node_name = Some(node.name_any());
    Ok(node.into())
}

impl From<Node> for Registered {
    fn from(node: Node) -> Self {
        Self {
            node: Some(node),
            again: None,
        }
    }
}

async fn initialize(ctx: &Ctx, draft: &mut Draft, mut node: Option<Node>) -> Result<(), StepError> {
    if let Some(ready) = node.as_ref().filter(|node| is_ready(node)) {
        node = Some(ctx.writer.update(ready, &pre_registration::opened(ready)).await?);
    }
    let unpublished = unpublished_driver(ctx, draft, node.as_ref());
    let found = initialization::decide(draft, node.as_ref(), unpublished);
    let now = ctx.clock.now();
    // Nothing is known to be wrong with a node that has just joined; the first check of its figures comes once it is
    // initialized. Said here, in a write that is due anyway.
    if node.is_some() && draft.conditions.get(condition::CONSISTENT_STATE_FOUND).is_none() {
        draft.conditions.set_true(condition::CONSISTENT_STATE_FOUND, now);
    }
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

/// Nobody waits for devices where they are not looked at.
fn unpublished_driver(ctx: &Ctx, draft: &Draft, node: Option<&Node>) -> Option<String> {
    let node = node.filter(|_| !ctx.knobs.solver.ignore_dra && !draft.is_true(condition::INITIALIZED))?;
    let view = ctx.index.view();
    devices::unpublished_driver(&draft.claim, &node.name_any(), view.snapshot.resource_slices.values())
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
async fn record(ctx: &Ctx, draft: Draft) -> Result<NodeClaim, StepError> {
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
    Ok(claim)
}

/// How long until a moment, and never less than a moment.
pub(super) fn wait_until(due: jiff::Timestamp, now: jiff::Timestamp) -> SignedDuration {
    due.duration_since(now).max(SignedDuration::from_millis(1))
}
