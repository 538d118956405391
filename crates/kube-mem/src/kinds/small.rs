//! Kinds that need only a few lines each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{event, service, storage, workload};
use crate::complaint;
use crate::meta::{self, set_default};
use crate::registry::ResourceType;
use crate::schema::{FieldError, Reason};

pub(super) fn default(ty: &ResourceType, object: &mut Value) {
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Service") => service::default(object),
        ("", "Secret") => default_secret(object),
        ("", "PersistentVolume" | "PersistentVolumeClaim") | ("storage.k8s.io", _) => storage::default(ty, object),
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
    if ty.is("", "services") {
        service::prepare_update(new, old);
    }
}

pub(super) fn validate(ty: &ResourceType, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("policy", "PodDisruptionBudget") => budget(new, &mut errors),
        ("", "ConfigMap" | "Secret") => {
            data_keys(new, &mut errors);
            if old.is_some_and(|old| old["type"] != new["type"]) {
                errors.push(complaint::invalid("type", &new["type"], "field is immutable"));
            }
            immutable_data(new, old, &mut errors);
        }
        ("storage.k8s.io", "StorageClass") => storage::validate_class(new, old, &mut errors),
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
        ("", "PersistentVolumeClaim") => storage::validate_claim(new, old, &mut errors),
        ("", "Service") => service::validate(new, &mut errors),
        ("" | "events.k8s.io", "Event") => event::validate(ty, new, &mut errors),
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

/// A budget's spec as the real server shows it: by the names of its own fields, in their order.
fn as_go_struct(spec: &Value) -> String {
    let fields = [
        "minAvailable",
        "selector",
        "maxUnavailable",
        "unhealthyPodEvictionPolicy",
    ]
    .map(|name| {
        let go_name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        format!("{go_name:?}:{}", spec[name])
    });
    format!("{{{}}}", fields.join(","))
}

/// A count, or a share of all.
fn int_or_percent(field: &str, value: &Value, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                              '93%', regex used for validation is '[0-9]+%')";
                errors.push(complaint::invalid(field, value, detail));
            } else if digits.parse::<u64>().is_ok_and(|share| share > 100) {
                errors.push(complaint::invalid(field, value, "must not be greater than 100%"));
            }
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            errors.push(complaint::invalid(field, value, "must be greater than or equal to 0"));
        }
        _ => {}
    }
}

fn budget(new: &Value, errors: &mut Vec<FieldError>) {
    let spec = &new["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = format!("Invalid value: {}: {detail}", as_go_struct(spec));
        errors.push(FieldError {
            field: "spec".into(),
            reason: Reason::Invalid,
            message: shown,
        });
    }
    for field in ["minAvailable", "maxUnavailable"] {
        int_or_percent(&format!("spec.{field}"), &spec[field], errors);
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

/// Keys become names of files, and some kinds of secrets have keys that they need.
fn data_keys(object: &Value, errors: &mut Vec<FieldError>) {
    let is_legal = |key: &str| {
        !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    for field in ["data", "binaryData"] {
        for key in object[field].as_object().into_iter().flat_map(Map::keys) {
            if !is_legal(key) {
                let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
                              'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                              '[-._a-zA-Z0-9]+')";
                errors.push(complaint::invalid(format!("{field}[{key}]"), &json!(key), detail));
            }
        }
    }
    if object["kind"] == "Secret" && object["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"] {
            if object["data"].get(key).is_none() {
                errors.push(complaint::required(format!("data[{key}]"), ""));
            }
        }
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
