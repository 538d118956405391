//! Daemons, disruption budgets, and who stands for a group of pods.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{self as core, Container, Pod, PodSpec, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::ids::PodKey;
use model::snapshot::{Daemon, DisruptionBudget};
use model::workload::{Controlled, Service};

use super::selector::selector;
use super::{Parsed, fields, pod_shape};

/// The pod that a DaemonSet would put on a fresh node, made up from its template.
pub fn daemon(written: &DaemonSet) -> Parsed<Daemon> {
    let meta = &written.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let template = &written.spec.template;
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let mut spec = template.spec.clone().unwrap_or_default();
    // The server does this to real pods; nobody has done it to a template.
    for container in spec
        .containers
        .iter_mut()
        .chain(spec.init_containers.iter_mut().flatten())
    {
        copy_limits_to_requests(container);
    }
    daemon_of(namespace, fields::name(meta), labels, &spec)
}

/// As [`daemon`], from a pod that runs already: admission may have changed what it asks for.
///
/// The node affinity stays the template's, because the pod is pinned to its node.
pub fn daemon_like(written: &DaemonSet, pod: &Pod) -> Parsed<Daemon> {
    let meta = &written.metadata;
    let template = written.spec.template.spec.as_ref();
    let mut spec = pod.spec.clone().unwrap_or_default();
    let node_affinity = template
        .and_then(|template| template.affinity.as_ref())
        .and_then(|affinity| affinity.node_affinity.clone());
    spec.affinity.get_or_insert_default().node_affinity = node_affinity;
    daemon_of(
        meta.namespace.as_deref().unwrap_or_default(),
        fields::name(meta),
        pod.metadata.labels.as_ref(),
        &spec,
    )
}

fn daemon_of(
    namespace: &str,
    name: &str,
    labels: Option<&std::collections::BTreeMap<String, String>>,
    spec: &PodSpec,
) -> Parsed<Daemon> {
    let shape = pod_shape(namespace, labels, spec, None);
    Parsed {
        value: Daemon {
            key: PodKey::new(namespace, name),
            shape: Arc::new(shape.value),
        },
        errors: shape.errors,
    }
}

fn copy_limits_to_requests(container: &mut Container) {
    let Some(resources) = &mut container.resources else {
        return;
    };
    let Some(limits) = resources.limits.clone() else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// How many pods of a selection may be missing.
pub fn disruption_budget(written: &PodDisruptionBudget) -> Parsed<DisruptionBudget> {
    let mut errors = Vec::new();
    let meta = &written.metadata;
    let spec = written.spec.clone().unwrap_or_default();
    let status = written.status.as_ref();
    let nothing_may_go = match &spec.max_unavailable {
        Some(IntOrString::Int(most)) => *most == 0,
        Some(IntOrString::String(most)) => most == "0%",
        None => false,
    };
    let all_must_stay = matches!(&spec.min_available, Some(IntOrString::String(least)) if least == "100%");
    let value = DisruptionBudget {
        key: PodKey::new(meta.namespace.as_deref().unwrap_or_default(), fields::name(meta)),
        selector: selector("spec.selector", spec.selector.as_ref(), &mut errors),
        disruptions_allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or_default(),
        fully_blocking: nothing_may_go || all_must_stay,
        unhealthy_always_allowed: spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
    };
    Parsed { value, errors }
}

/// The pods that a service leads to.
pub fn service(written: &core::Service) -> Service {
    let meta = &written.metadata;
    let selector = written.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    Service {
        key: PodKey::new(meta.namespace.as_deref().unwrap_or_default(), fields::name(meta)),
        selector: selector.map(|selector| fields::labels(Some(selector))),
    }
}

/// The pods of a ReplicaSet.
pub fn replica_set(written: &ReplicaSet) -> Parsed<Controlled> {
    controlled(&written.spec.selector)
}

/// The pods of a StatefulSet.
pub fn stateful_set(written: &StatefulSet) -> Parsed<Controlled> {
    controlled(&written.spec.selector)
}

/// The pods of a ReplicationController.
pub fn replication_controller(written: &ReplicationController) -> Controlled {
    let selector = written.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    Controlled::Labels(fields::labels(selector))
}

fn controlled(written: &LabelSelector) -> Parsed<Controlled> {
    let mut errors = Vec::new();
    let value = Controlled::Selector(selector("spec.selector", Some(written), &mut errors));
    Parsed { value, errors }
}
