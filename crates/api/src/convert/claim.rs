//! Node claims.

use jiff::SignedDuration;
use model::node::NodeClassRef;
use model::{Claim, ClaimPhase};

use super::requirement::requirements;
use super::{Parsed, fields};
use crate::conditions::{self, HasConditions, node_claim};
use crate::duration::{DurationError, DurationOrNever};
use crate::field_error::FieldError;
use crate::labels;
use crate::v1::{NodeClaim, NodeClassReference};

/// The claim's half of a machine.
pub fn claim(written: &NodeClaim) -> Parsed<Claim> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let spec = &written.spec;
    let status = written.status.clone().unwrap_or_default();
    let true_condition = |type_: &str| {
        conditions::find(written.conditions(), type_).filter(|condition| condition.status == conditions::TRUE)
    };
    let labels = fields::labels(meta.labels.as_ref());
    let requests = spec
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    let expire_after = spec.expire_after.as_ref().map(DurationOrNever::parse);
    let grace = spec
        .termination_grace_period
        .as_ref()
        .map(|text| text.parse().map(Some));
    let value = Claim {
        name: fields::name(meta).into(),
        uid: fields::uid(meta),
        pool: labels.get(labels::NODE_POOL).map(|pool| pool.as_str().into()),
        class: class(&spec.node_class_ref),
        phase: phase(written),
        annotations: fields::labels(meta.annotations.as_ref()),
        requirements: requirements("spec.requirements", &spec.requirements, &mut errors),
        requests: fields::resources("spec.resources.requests", requests, &mut errors),
        taints: fields::taints("spec.taints", spec.taints.as_ref(), &mut errors),
        startup_taints: fields::taints("spec.startupTaints", spec.startup_taints.as_ref(), &mut errors),
        provider_id: fields::non_empty(status.provider_id.as_ref()).map(Into::into),
        node: fields::non_empty(status.node_name.as_ref()).map(Into::into),
        capacity: fields::resources("status.capacity", status.capacity.as_ref(), &mut errors),
        allocatable: fields::resources("status.allocatable", status.allocatable.as_ref(), &mut errors),
        created: fields::created(meta),
        deleting: fields::time(meta.deletion_timestamp.as_ref()),
        expire_after: length("spec.expireAfter", expire_after, &mut errors),
        termination_grace: length("spec.terminationGracePeriod", grace, &mut errors),
        instance_terminating: true_condition(node_claim::INSTANCE_TERMINATING).is_some(),
        consolidatable: true_condition(node_claim::CONSOLIDATABLE).is_some(),
        drifted: true_condition(node_claim::DRIFTED).map(|condition| condition.reason.clone()),
        drifted_at: true_condition(node_claim::DRIFTED).map(|condition| condition.last_transition_time.0),
        initialized_at: true_condition(node_claim::INITIALIZED).map(|condition| condition.last_transition_time.0),
        last_pod_event: fields::time(status.last_pod_event_time.as_ref()),
        labels,
    };
    Parsed { value, errors }
}

/// How far a claim has come. Each step is recorded as a condition, and none is taken before the one below it.
pub fn phase(claim: &NodeClaim) -> ClaimPhase {
    let reached = |type_| conditions::is_true(claim.conditions(), type_);
    if reached(node_claim::INITIALIZED) {
        ClaimPhase::Initialized
    } else if reached(node_claim::REGISTERED) {
        ClaimPhase::Registered
    } else if reached(node_claim::LAUNCHED) {
        ClaimPhase::Launched
    } else {
        ClaimPhase::Pending
    }
}

pub fn class(reference: &NodeClassReference) -> NodeClassRef {
    NodeClassRef {
        group: reference.group.clone(),
        kind: reference.kind.clone(),
        name: reference.name.clone(),
    }
}

/// A duration, or `None` when it is absent, `Never` or unreadable.
pub fn length(
    path: &str,
    parsed: Option<Result<Option<SignedDuration>, DurationError>>,
    errors: &mut Vec<FieldError>,
) -> Option<SignedDuration> {
    match parsed? {
        Ok(length) => length,
        Err(error) => {
            errors.push(FieldError::new(path, error));
            None
        }
    }
}
