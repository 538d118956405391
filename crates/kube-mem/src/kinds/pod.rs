//! Pods: defaults, admission, quality of service, and the few fields that may change.

mod immutable;
mod validate;

use serde_json::{Map, Value, json};

use super::pod_template;
use super::resources;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::meta::{self, set_default};
use crate::registry::ResourceType;

pub(super) use validate::{validate, validate_spec};

pub(super) fn default(object: &mut Value) {
    if !object["spec"].is_object() {
        return;
    }
    requests_from_limits(&mut object["spec"]);
    pod_template::default_spec(&mut object["spec"]);
    set_default(meta::map_mut(object, "spec"), "enableServiceLinks", true);
}

/// What is limited and not requested is requested as much as it is limited.
fn requests_from_limits(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else { return };
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(limits) = container["resources"]["limits"].as_object().cloned() else {
                continue;
            };
            let requests = meta::map_mut(&mut container["resources"], "requests");
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
    }
}

/// Priority, runtime class, service account and the tolerations that every pod gets.
pub(super) fn admit(cluster: &Cluster, ty: &ResourceType, object: &mut Value) -> Result<(), Failure> {
    let refuse = |cause: &str| Err(Failure::forbidden(&ty.group_resource(), meta::name(object), cause));
    let class_name = object["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let class = if class_name.is_empty() {
        default_priority_class(cluster)
    } else {
        match cluster.store.get("priorityclasses.scheduling.k8s.io", class_name) {
            Some(class) => Some(class.value.clone()),
            None => return refuse(&format!("no PriorityClass with name {class_name} was found")),
        }
    };
    let runtime_class = object["spec"]["runtimeClassName"].as_str().unwrap_or_default();
    let overhead = if runtime_class.is_empty() {
        None
    } else {
        match cluster.store.get("runtimeclasses.node.k8s.io", runtime_class) {
            Some(class) => class.value["overhead"].get("podFixed").cloned(),
            None => return refuse(&format!("pod rejected: RuntimeClass {runtime_class:?} not found")),
        }
    };
    let spec = meta::map_mut(object, "spec");
    set_priority(spec, class.as_ref());
    if let Some(overhead) = overhead {
        set_default(spec, "overhead", overhead);
    }
    if spec
        .get("serviceAccountName")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        spec.insert("serviceAccountName".to_owned(), "default".into());
    }
    pod_template::mirror_service_account(spec);
    tolerate_lost_nodes(spec);
    Ok(())
}

fn default_priority_class(cluster: &Cluster) -> Option<Value> {
    let classes = cluster.store.collection("priorityclasses.scheduling.k8s.io")?;
    classes
        .range("", None)
        .map(|(_, class)| &class.value)
        .filter(|class| class["globalDefault"] == true)
        // Of several defaults the smallest counts, as in the real server.
        .min_by_key(|class| class["value"].as_i64())
        .cloned()
}

fn set_priority(spec: &mut Map<String, Value>, class: Option<&Value>) {
    let (priority, policy) = match class {
        Some(class) => {
            spec.insert("priorityClassName".to_owned(), class["metadata"]["name"].clone());
            (
                class["value"].clone(),
                class["preemptionPolicy"]
                    .as_str()
                    .unwrap_or("PreemptLowerPriority")
                    .to_owned(),
            )
        }
        None => (json!(0), "PreemptLowerPriority".to_owned()),
    };
    spec.insert("priority".to_owned(), priority);
    set_default(spec, "preemptionPolicy", policy);
}

/// A pod stays five minutes on a node that stopped answering, unless it says otherwise.
fn tolerate_lost_nodes(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(tolerations) = tolerations.as_array_mut() else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let text = |field: &str| toleration[field].as_str().unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

pub(super) fn prepare_create(object: &mut Value, now: &str) {
    // A negative grace has always meant the shortest one.
    let grace = &mut object["spec"]["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|seconds| seconds < 0) {
        *grace = 1.into();
    }
    let mut status = json!({ "phase": "Pending", "qosClass": quality_of_service(&object["spec"]) });
    if !meta::list(&object["spec"]["schedulingGates"]).is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        }]);
    }
    object["status"] = status;
}

/// The tolerations that every pod gets come back if an update takes them away.
pub(super) fn prepare_update(new: &mut Value) {
    tolerate_lost_nodes(meta::map_mut(new, "spec"));
}

/// Two subresources change one part of the spec each, and nothing else of the object but its metadata.
pub(super) fn prepare_part(part: &str, new: &mut Value, old: &Value) {
    let mut spec = old["spec"].clone();
    if part == "ephemeralcontainers" {
        if let Some(spec) = spec.as_object_mut() {
            meta::set_or_remove(
                spec,
                "ephemeralContainers",
                new["spec"].get("ephemeralContainers").cloned(),
            );
        }
    } else {
        let resources = meta::list(&new["spec"]["containers"])
            .iter()
            .map(|container| container["resources"].clone());
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for (container, resources) in containers.into_iter().flatten().zip(resources) {
            container["resources"] = resources;
        }
    }
    new["spec"] = spec;
    new["status"] = old["status"].clone();
}

/// The status subresource does not touch owners, nor the quality of service.
pub(super) fn prepare_status(new: &mut Value, old: &Value) {
    let owners = old["metadata"].get("ownerReferences").cloned();
    meta::set_or_remove(meta::metadata_mut(new), "ownerReferences", owners);
    if let Some(class) = old["status"].get("qosClass").cloned() {
        set_default(meta::map_mut(new, "status"), "qosClass", class);
    }
}

/// Guaranteed if every container has equal requests and limits for processor and memory, best effort if none has any.
fn quality_of_service(spec: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for (_, container) in pod_template::containers(spec) {
        let resources = &container["resources"];
        for name in ["cpu", "memory"] {
            let (request, limit) = (&resources["requests"][name], &resources["limits"][name]);
            any |= !resources::is_zero(request) || !resources::is_zero(limit);
            guaranteed &= !resources::is_zero(limit) && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
