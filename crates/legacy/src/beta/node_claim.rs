//! NodeClaim between v1beta1 and v1.

use api::duration::DurationOrNever;
use api::v1;
use serde_json::{Map, Value};

use super::node_pool::{put_kubelet, put_reference, reference_up, requirements_down, take_kubelet, take_reference};
use super::types::NodeClaimSpec;
use super::{V1BETA1, annotations};
use crate::manifest::take_annotation;
use crate::notes::Notes;

/// The claim in v1. Its time to expire is that of its pool.
pub fn up(
    spec: NodeClaimSpec,
    expire_after: Option<DurationOrNever>,
    metadata: &mut Map<String, Value>,
) -> v1::NodeClaimSpec {
    let reference = spec.node_class_ref.unwrap_or_default();
    put_reference(metadata, &reference);
    put_kubelet(metadata, spec.kubelet.as_ref());
    v1::NodeClaimSpec {
        taints: spec.taints,
        startup_taints: spec.startup_taints,
        requirements: spec.requirements,
        resources: spec.resources,
        node_class_ref: reference_up(&reference),
        termination_grace_period: None,
        expire_after,
    }
}

/// The claim in v1beta1, where its pool knows when it expires.
pub fn down(
    spec: v1::NodeClaimSpec,
    metadata: &mut Map<String, Value>,
    force: bool,
    notes: &mut Notes,
) -> NodeClaimSpec {
    if spec.termination_grace_period.is_some() {
        notes.lose("spec.terminationGracePeriod", V1BETA1, force);
    }
    take_annotation(metadata, annotations::STORED_VERSION_MIGRATED);
    NodeClaimSpec {
        taints: spec.taints,
        startup_taints: spec.startup_taints,
        requirements: requirements_down(spec.requirements, "spec.requirements", force, notes),
        resources: spec.resources,
        kubelet: take_kubelet(metadata),
        node_class_ref: Some(take_reference(metadata, &spec.node_class_ref)),
    }
}
