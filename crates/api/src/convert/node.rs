//! Nodes.

use k8s_openapi::api::core::v1::Node;
use model::NodeFacts;

use super::{Parsed, fields};

/// The node's half of a machine.
pub fn node(written: &Node) -> Parsed<NodeFacts> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let spec = written.spec.as_ref();
    let status = written.status.as_ref();
    let conditions = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let value = NodeFacts {
        name: fields::name(meta).into(),
        provider_id: spec
            .and_then(|spec| fields::non_empty(spec.provider_id.as_ref()))
            .map(Into::into),
        labels: fields::labels(meta.labels.as_ref()),
        annotations: fields::labels(meta.annotations.as_ref()),
        taints: fields::taints("spec.taints", spec.and_then(|spec| spec.taints.as_ref()), &mut errors),
        unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
        capacity: fields::resources(
            "status.capacity",
            status.and_then(|status| status.capacity.as_ref()),
            &mut errors,
        ),
        allocatable: fields::resources(
            "status.allocatable",
            status.and_then(|status| status.allocatable.as_ref()),
            &mut errors,
        ),
        ready: conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        created: fields::created(meta),
        deleting: fields::time(meta.deletion_timestamp.as_ref()),
    };
    Parsed { value, errors }
}
