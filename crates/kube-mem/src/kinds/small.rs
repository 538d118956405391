//! Kinds that need only a few lines each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{pod_template, resources, workload};
use crate::cluster::Cluster;
use crate::complaint;
use crate::meta::{self, set_default};
use crate::registry::ResourceType;
use crate::schema::FieldError;

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// *Errors*: the decoder's complaint about the data of a secret that is not in base 64.
pub(super) fn readable(ty: &ResourceType, object: &Value) -> Result<(), String> {
    if !ty.is("", "secrets") {
        return Ok(());
    }
    for text in object["data"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, value)| value.as_str())
    {
        if STANDARD.decode(text).is_err() {
            let legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '/' | '=');
            let at = text.find(|char| !legal(char)).unwrap_or(text.len());
            return Err(format!("illegal base64 data at input byte {at}"));
        }
    }
    Ok(())
}

pub(super) fn default(ty: &ResourceType, object: &mut Value) {
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Service") => default_service(object),
        ("", "Secret") => default_secret(object),
        ("", "PersistentVolume") => default_volume(object),
        ("", "PersistentVolumeClaim") => {
            if let Some(spec) = object.get_mut("spec") {
                pod_template::default_claim_spec(spec);
            }
        }
        ("storage.k8s.io", "StorageClass") => {
            if let Some(fields) = object.as_object_mut() {
                set_default(fields, "reclaimPolicy", "Delete");
                set_default(fields, "volumeBindingMode", "Immediate");
            }
        }
        ("storage.k8s.io", "CSIDriver") => default_driver(meta::map_mut(object, "spec")),
        ("scheduling.k8s.io", "PriorityClass") => {
            if let Some(fields) = object.as_object_mut() {
                set_default(fields, "preemptionPolicy", "PreemptLowerPriority");
                set_default(fields, "value", 0);
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => default_binding(object),
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in object
                .get_mut("ports")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let Some(port) = port.as_object_mut() else { continue };
                set_default(port, "name", "");
                set_default(port, "protocol", "TCP");
            }
        }
        ("resource.k8s.io", "ResourceClaim") => default_requests(object.pointer_mut("/spec/devices/requests")),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            default_requests(object.pointer_mut("/spec/spec/devices/requests"));
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            set_default(meta::map_mut(object, "spec"), "policyTypes", json!(["Ingress"]));
        }
        _ => {}
    }
}

fn default_service(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set_default(spec, "type", "ClusterIP");
    set_default(spec, "sessionAffinity", "None");
    set_default(spec, "internalTrafficPolicy", "Cluster");
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] != "ExternalName" {
        set_default(spec, "ipFamilies", json!(["IPv4"]));
        set_default(spec, "ipFamilyPolicy", "SingleStack");
    }
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = port.as_object_mut() else { continue };
        set_default(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            if port.get("targetPort") == Some(&json!(0)) {
                port.remove("targetPort");
            }
            set_default(port, "targetPort", number);
        }
    }
}

/// Gives a new service an address. Addresses come in order; nothing listens there.
pub(super) fn prepare_service(cluster: &mut Cluster, object: &mut Value) {
    object["status"] = json!({ "loadBalancer": {} });
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default();
    if spec.get("type") == Some(&"ExternalName".into()) || !given.is_empty() {
        if !given.is_empty() {
            let given = given.to_owned();
            set_default(spec, "clusterIPs", json!([given]));
        }
        return;
    }
    // The revision only grows, so no two services of a server get the same address.
    let number = cluster.store.revision() % (254 * 256) + 256;
    let address = format!("10.96.{}.{}", number / 256, number % 256);
    spec.insert("clusterIP".to_owned(), address.clone().into());
    spec.insert("clusterIPs".to_owned(), json!([address]));
}

/// Plain text is stored encoded; the field that carried it is for writing only.
fn default_secret(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    set_default(fields, "type", "Opaque");
    let Some(Value::Object(plain)) = fields.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    let data = fields.entry("data").or_insert_with(|| json!({}));
    if data.is_null() {
        *data = json!({});
    }
    for (key, text) in plain {
        data[key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

fn default_volume(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_default(spec, "volumeMode", "Filesystem");
    if let Some(capacity) = spec.get_mut("capacity") {
        resources::canonical_map(capacity);
    }
}

fn default_driver(spec: &mut Map<String, Value>) {
    set_default(spec, "attachRequired", true);
    set_default(spec, "podInfoOnMount", false);
    set_default(spec, "storageCapacity", false);
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    set_default(spec, "requiresRepublish", false);
    set_default(spec, "seLinuxMount", false);
}

/// A request for devices is for one device unless it says otherwise.
fn default_requests(requests: Option<&mut Value>) {
    for request in requests.and_then(Value::as_array_mut).into_iter().flatten() {
        let mut alternatives: Vec<&mut Value> = Vec::new();
        if let Some(fields) = request.as_object_mut() {
            for (key, value) in fields {
                match key.as_str() {
                    "exactly" => alternatives.push(value),
                    "firstAvailable" => alternatives.extend(value.as_array_mut().into_iter().flatten()),
                    _ => {}
                }
            }
        }
        for alternative in alternatives.into_iter().filter_map(Value::as_object_mut) {
            set_default(alternative, "allocationMode", "ExactCount");
            if alternative["allocationMode"] == "ExactCount" {
                set_default(alternative, "count", 1);
            }
        }
    }
}

fn default_binding(object: &mut Value) {
    if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut) {
        set_default(role, "apiGroup", "rbac.authorization.k8s.io");
    }
    for subject in object
        .get_mut("subjects")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(subject) = subject.as_object_mut() else {
            continue;
        };
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            set_default(subject, "apiGroup", "rbac.authorization.k8s.io");
        }
    }
}

/// A claim that names no class gets the default one, the newest if there are several.
pub(super) fn admit_claim(cluster: &Cluster, object: &mut Value) {
    let spec = &object["spec"];
    let annotation = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    if !spec["storageClassName"].is_null() || !annotation.is_null() {
        return;
    }
    let Some(classes) = cluster.store.collection("storageclasses.storage.k8s.io") else {
        return;
    };
    let default = classes
        .range("", None)
        .map(|(_, class)| &class.value)
        .filter(|class| class["metadata"]["annotations"][DEFAULT_CLASS] == "true")
        .max_by_key(|class| {
            (
                meta::text(class, "creationTimestamp").to_owned(),
                std::cmp::Reverse(meta::name(class)),
            )
        });
    if let Some(class) = default {
        let name = class["metadata"]["name"].clone();
        meta::map_mut(object, "spec").insert("storageClassName".to_owned(), name);
    }
}

/// The status that a new object of the kind starts with.
pub(super) fn prepare_create(ty: &ResourceType, object: &mut Value, now: &str) {
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "PersistentVolumeClaim") => object["status"] = json!({ "phase": "Pending" }),
        ("", "PersistentVolume") => {
            object["status"] = json!({ "phase": "Pending", "lastPhaseTransitionTime": now });
        }
        ("batch", "Job") => {
            object["status"] = json!({});
            workload::prepare_job(object);
        }
        ("policy", "PodDisruptionBudget") => {
            object["status"] =
                json!({ "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0 });
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => object["status"] = json!({ "replicas": 0 }),
        ("apps", "StatefulSet") => object["status"] = json!({ "replicas": 0, "availableReplicas": 0 }),
        ("apps", "DaemonSet") => {
            object["status"] = json!({
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            });
            workload::count_templates(object, None);
        }
        ("storage.k8s.io", "VolumeAttachment") => object["status"] = json!({ "attached": false }),
        ("apps", "Deployment") | ("batch", "CronJob") | ("resource.k8s.io", "ResourceClaim") => {
            object["status"] = json!({});
        }
        _ => {}
    }
}

pub(super) fn prepare_update(ty: &ResourceType, new: &mut Value, old: &Value) {
    if ty.is("apps", "daemonsets") {
        workload::count_templates(new, Some(old));
    }
    // A service keeps the address that it was given.
    if ty.is("", "services")
        && let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut)
    {
        for field in ["clusterIP", "clusterIPs"] {
            if let Some(address) = old["spec"].get(field) {
                set_default(spec, field, address.clone());
            }
        }
    }
}

pub(super) fn validate(ty: &ResourceType, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("policy", "PodDisruptionBudget") => budget(new, &mut errors),
        ("", "ConfigMap" | "Secret") => immutable_data(new, old, &mut errors),
        ("storage.k8s.io", "StorageClass") => {
            if new["provisioner"].as_str().unwrap_or_default().is_empty() {
                errors.push(complaint::required("provisioner", ""));
            }
            if let Some(old) = old {
                for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                    if new[field] != old[field] {
                        let detail = format!("updates to {field} are forbidden.");
                        errors.push(complaint::forbidden(field, &detail));
                    }
                }
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            if old.is_some_and(|old| old["value"] != new["value"]) {
                errors.push(complaint::forbidden("value", "may not be changed in an update."));
            }
            if old.is_none()
                && new["value"].as_i64().is_some_and(|value| value > 1_000_000_000)
                && !meta::name(new).starts_with("system-")
            {
                let detail = "maximum allowed value of a user defined priority is 1000000000";
                errors.push(complaint::forbidden("value", detail));
            }
        }
        ("", "PersistentVolumeClaim") => claim(new, old, &mut errors),
        ("", "Service") => {
            let spec = &new["spec"];
            let without = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
            if meta::list(&spec["ports"]).is_empty() && !without {
                errors.push(complaint::required("spec.ports", ""));
            }
        }
        ("" | "events.k8s.io", "Event") => event(ty, new, &mut errors),
        ("coordination.k8s.io", "Lease") => {
            let secs = &new["spec"]["leaseDurationSeconds"];
            if secs.as_i64().is_some_and(|secs| secs <= 0) {
                errors.push(complaint::invalid(
                    "spec.leaseDurationSeconds",
                    secs,
                    "must be greater than 0",
                ));
            }
        }
        _ => {}
    }
    errors
}

/// Events lie where the object is that they are about; those about the cluster lie in the default namespace.
fn event(ty: &ResourceType, new: &Value, errors: &mut Vec<FieldError>) {
    let about = new["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let namespace = meta::namespace(new);
    let expected = if about.is_empty() { "default" } else { about };
    if namespace != expected {
        let detail = "does not match event.namespace";
        errors.push(complaint::invalid("involvedObject.namespace", &json!(about), detail));
    }
    if ty.group.is_empty() {
        return;
    }
    let dated = !new["eventTime"].is_null();
    if !dated {
        errors.push(complaint::required("eventTime", ""));
    }
    for (field, shown) in [
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ] {
        if dated && new[field].as_str().unwrap_or_default().is_empty() {
            errors.push(complaint::required(shown, ""));
        }
    }
    let kind = new["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        let detail = format!("has invalid value: {kind}");
        errors.push(complaint::invalid("type", &json!(kind), &detail));
    }
}

fn budget(new: &Value, errors: &mut Vec<FieldError>) {
    let spec = &new["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(complaint::invalid("spec", spec, detail));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if spec[field].as_i64().is_some_and(|number| number < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(complaint::invalid(format!("spec.{field}"), &spec[field], detail));
        }
    }
    let policy = &spec["unhealthyPodEvictionPolicy"];
    if policy
        .as_str()
        .is_some_and(|policy| !["IfHealthyBudget", "AlwaysAllow"].contains(&policy))
    {
        let supported = ["AlwaysAllow", "IfHealthyBudget"];
        errors.push(complaint::not_supported(
            "spec.unhealthyPodEvictionPolicy",
            policy,
            &supported,
        ));
    }
}

fn immutable_data(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return;
    };
    for field in ["immutable", "data", "binaryData", "stringData"] {
        if new[field] != old[field] {
            errors.push(complaint::forbidden(
                field,
                "field is immutable when `immutable` is set",
            ));
        }
    }
}

fn claim(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = &new["spec"];
    if meta::list(&spec["accessModes"]).is_empty() {
        errors.push(complaint::required(
            "spec.accessModes",
            "at least 1 access mode is required",
        ));
    }
    if spec["resources"]["requests"]["storage"].is_null() {
        errors.push(complaint::required("spec.resources[storage]", ""));
    }
    let Some(old) = old else { return };
    let fixed = |spec: &Value| -> Map<String, Value> {
        let mut spec = spec.as_object().cloned().unwrap_or_default();
        spec.retain(|key, _| !["resources", "volumeAttributesClassName", "volumeName"].contains(&key.as_str()));
        // A claim without a class may still be given one.
        if old["spec"]["storageClassName"].is_null() {
            spec.remove("storageClassName");
        }
        spec
    };
    if fixed(spec) != fixed(&old["spec"]) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
             bound claims";
        errors.push(complaint::forbidden("spec", detail));
    }
}
