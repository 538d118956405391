//! What the workload controllers ask of pods, and how they make them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use crate::{
    component::Ctx,
    kubelet::collector::is_terminal,
    mirror::{Group, Mirrored, controller_of},
};

/// Counts towards the size of its workload.
pub fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !is_terminal(pod)
}

/// Condition Ready is True.
pub fn is_ready(pod: &Pod) -> bool {
    ready_since(pod).is_some()
}

/// Has been ready for long enough to be counted on.
pub fn is_available(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> bool {
    ready_since(pod).is_some_and(|since| since + min_ready <= now)
}

/// When the pod will be available, if it is ready and not available yet.
pub fn available_at(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    ready_since(pod).map(|since| since + min_ready).filter(|due| *due > now)
}

fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    Some(
        ready
            .last_transition_time
            .as_ref()
            .map_or(Timestamp::MIN, |time| time.0),
    )
}

/// The pods that an owner controls, in the order of their names.
pub fn owned_by(ctx: &Ctx, owner: &ObjectMeta) -> Vec<Arc<Pod>> {
    ctx.mirror
        .pods
        .group(&Group::Controller(owner.uid.clone().unwrap_or_default()))
}

/// The reference that makes `owner` the controller of what it creates.
pub fn controller_reference<K: Mirrored>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A pod of the template. It is named by the server unless the caller names it.
pub fn pod_of<K: Mirrored>(owner: &K, template: &PodTemplateSpec) -> Pod {
    let from = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        generate_name: owner.meta().name.as_ref().map(|name| format!("{name}-")),
        namespace: owner.meta().namespace.clone(),
        labels: from.labels,
        annotations: from.annotations,
        finalizers: from.finalizers,
        owner_references: Some(vec![controller_reference(owner)]),
        ..ObjectMeta::default()
    };
    Pod {
        metadata,
        spec: template.spec.clone(),
        status: None,
    }
}

/// Which pods go first when there are too many: those that do the least work, then those that were marked as cheap,
/// then those that share a node with most of their kind, then the youngest.
pub fn deletion_order(pods: &mut [Arc<Pod>]) {
    let mut on_node: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    for pod in pods.iter() {
        *on_node.entry(node(pod)).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.clone())
            .unwrap_or_default();
        let place = node(pod);
        (
            place.is_some(),
            phase != "Pending",
            is_ready(pod),
            deletion_cost(pod),
            std::cmp::Reverse(on_node.get(&place).copied().unwrap_or_default()),
            std::cmp::Reverse(pod.metadata.creation_timestamp.clone()),
            pod.metadata.name.clone(),
        )
    });
}

fn deletion_cost(pod: &Pod) -> i64 {
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// The UID of the workload that controls a pod, if it is of this kind.
pub fn controller_name<'a>(meta: &'a ObjectMeta, kind: &str) -> Option<&'a str> {
    controller_of(meta)
        .filter(|owner| owner.kind == kind)
        .map(|owner| owner.name.as_str())
}
