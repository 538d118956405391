//! Pods.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Pod as Written, PodCondition, PodSpec};
use model::Pod;
use model::ids::PodKey;
use model::pod::{DoNotDisrupt, PodOwner, PodPhase};
use model::workload::{ControllerKey, ControllerKind};

use super::{Parsed, fields, pod_claims, pod_shape};
use crate::duration;
use crate::field_error::FieldError;
use crate::labels::annotations::DO_NOT_DISRUPT;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A pod as decisions see it.
pub fn pod(written: &Written) -> Parsed<Pod> {
    let meta = &written.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let nothing = PodSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&nothing);
    let status = written.status.as_ref();
    let owner = owner(written);

    let mut shape = pod_shape(namespace, meta.labels.as_ref(), spec, status);
    if owner == PodOwner::DaemonSet {
        // The DaemonSet controller pins its pods to a node by field; that is no demand on a new one.
        shape.errors.retain(|error| !error.field.ends_with(".matchFields"));
    }
    // Nobody can tell what such a pod would accept, so no node is launched for it.
    let unreadable = !shape.errors.is_empty();
    let mut errors = shape.errors;

    let scheduled = condition(written, "PodScheduled");
    let judged = scheduled.and_then(|condition| condition.reason.as_deref());
    let unschedulable = judged == Some("Unschedulable");
    let node = fields::non_empty(spec.node_name.as_ref());
    let held_back = scheduled.is_some() && !unschedulable && node.is_none();

    let value = Pod {
        key: PodKey::new(namespace, fields::name(meta)),
        uid: fields::uid(meta).into(),
        shape: Arc::new(shape.value),
        owner,
        controller: controller(namespace, written),
        phase: phase(status.and_then(|status| status.phase.as_deref())),
        ready: condition(written, "Ready").is_some_and(|condition| condition.status == "True"),
        node: node.map(Into::into),
        nominated_node: status
            .and_then(|status| fields::non_empty(status.nominated_node_name.as_ref()))
            .map(Into::into),
        created: fields::created(meta),
        started: status.and_then(|status| fields::time(status.start_time.as_ref())),
        deletion: fields::time(meta.deletion_timestamp.as_ref()),
        unschedulable: unschedulable && !unreadable,
        scheduling_gated: held_back || (unreadable && node.is_none()),
        do_not_disrupt: annotation(written, DO_NOT_DISRUPT).map(do_not_disrupt),
        deletion_cost: deletion_cost(written, &mut errors),
        generated_claims: pod_claims::generated_claims(status),
    };
    Parsed { value, errors }
}

fn condition<'a>(pod: &'a Written, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn annotation<'a>(pod: &'a Written, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn phase(phase: Option<&str>) -> PodPhase {
    match phase {
        None | Some("" | "Pending") => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) => PodPhase::Unknown,
    }
}

/// Looks at every owner reference, not only at the controller's, as upstream does.
fn owner(pod: &Written) -> PodOwner {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let owned_by = |version: &str, kind: &str| {
        owners
            .iter()
            .any(|owner| owner.api_version == version && owner.kind == kind)
    };
    if owned_by("apps/v1", "DaemonSet") {
        PodOwner::DaemonSet
    } else if owned_by("v1", "Node") {
        PodOwner::Node
    } else if owned_by("apps/v1", "StatefulSet") {
        PodOwner::StatefulSet
    } else if owners.is_empty() {
        PodOwner::Nobody
    } else {
        PodOwner::Other
    }
}

/// The owner that is marked as the controller, where its selector tells which pods belong together.
fn controller(namespace: &str, pod: &Written) -> Option<ControllerKey> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    let kind = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ReplicationController") => ControllerKind::ReplicationController,
        ("apps/v1", "ReplicaSet") => ControllerKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => ControllerKind::StatefulSet,
        _ => return None,
    };
    Some(ControllerKey {
        kind,
        key: PodKey::new(namespace, &owner.name),
    })
}

fn do_not_disrupt(text: &str) -> DoNotDisrupt {
    if text == "true" {
        return DoNotDisrupt::Always;
    }
    match duration::parse(text) {
        Ok(time) if time > SignedDuration::ZERO => DoNotDisrupt::For(time),
        _ => DoNotDisrupt::Invalid(text.to_owned()),
    }
}

fn deletion_cost(pod: &Written, errors: &mut Vec<FieldError>) -> f64 {
    let Some(text) = annotation(pod, DELETION_COST) else {
        return 0.0;
    };
    match text.parse::<f64>() {
        Ok(cost) if cost.is_finite() => cost,
        _ => {
            let field = format!("metadata.annotations[{DELETION_COST}]");
            errors.push(FieldError::new(field, format_args!("{text:?} is not a number")));
            0.0
        }
    }
}
