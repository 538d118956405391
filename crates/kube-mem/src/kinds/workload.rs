//! Workloads: the controllers' templates, and the numbers that their controllers go by.

use serde_json::{Map, Value, json};

use super::{metadata, pod, pod_template};
use crate::complaint;
use crate::meta::{self, set_default};
use crate::registry::ResourceType;
use crate::schema::FieldError;
use crate::selector::LabelSelector;

pub(super) fn default(ty: &ResourceType, object: &mut Value) {
    if let Some(template) = object.pointer_mut("/spec/template") {
        pod_template::default(template);
    }
    let kind = ty.kind.as_str();
    if kind == "CronJob"
        && let Some(template) = object.pointer_mut("/spec/jobTemplate/spec/template")
    {
        pod_template::default(template);
    }
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    match kind {
        "Deployment" => {
            set_default(spec, "replicas", 1);
            set_default(spec, "revisionHistoryLimit", 10);
            set_default(spec, "progressDeadlineSeconds", 600);
            default_rollout(spec, "strategy", json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
        }
        "ReplicaSet" => set_default(spec, "replicas", 1),
        "ReplicationController" => {
            set_default(spec, "replicas", 1);
            if labels.is_object() {
                set_default(spec, "selector", labels);
            }
        }
        "StatefulSet" => default_stateful_set(spec),
        "DaemonSet" => {
            set_default(spec, "revisionHistoryLimit", 10);
            default_rollout(spec, "updateStrategy", json!({ "maxUnavailable": 1, "maxSurge": 0 }));
        }
        "Job" => default_job(spec),
        "CronJob" => {
            set_default(spec, "concurrencyPolicy", "Allow");
            set_default(spec, "suspend", false);
            set_default(spec, "successfulJobsHistoryLimit", 3);
            set_default(spec, "failedJobsHistoryLimit", 1);
        }
        _ => {}
    }
}

fn default_rollout(spec: &mut Map<String, Value>, field: &str, rolling: Value) {
    let strategy = spec.entry(field).or_insert_with(|| json!({}));
    if strategy.is_null() {
        *strategy = json!({});
    }
    let Some(strategy) = strategy.as_object_mut() else {
        return;
    };
    set_default(strategy, "type", "RollingUpdate");
    if strategy["type"] != "RollingUpdate" {
        return;
    }
    set_default(strategy, "rollingUpdate", json!({}));
    if let (Some(given), Some(defaults)) = (
        strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut),
        rolling.as_object(),
    ) {
        for (key, value) in defaults {
            set_default(given, key, value.clone());
        }
    }
}

fn default_stateful_set(spec: &mut Map<String, Value>) {
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "podManagementPolicy", "OrderedReady");
    default_rollout(spec, "updateStrategy", json!({ "partition": 0 }));
    set_default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    if let Some(policy) = spec
        .get_mut("persistentVolumeClaimRetentionPolicy")
        .and_then(Value::as_object_mut)
    {
        set_default(policy, "whenDeleted", "Retain");
        set_default(policy, "whenScaled", "Retain");
    }
    for claim in spec
        .get_mut("volumeClaimTemplates")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        claim["apiVersion"] = "v1".into();
        claim["kind"] = "PersistentVolumeClaim".into();
        claim["status"] = json!({ "phase": "Pending" });
        if let Some(spec) = claim.get_mut("spec") {
            pod_template::default_claim_spec(spec);
        }
    }
}

fn default_job(spec: &mut Map<String, Value>) {
    let missing = |spec: &Map<String, Value>, key: &str| spec.get(key).is_none_or(Value::is_null);
    if missing(spec, "completions") && missing(spec, "parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    set_default(spec, "parallelism", 1);
    set_default(spec, "backoffLimit", 6);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "podReplacementPolicy", "TerminatingOrFailed");
    set_default(spec, "manualSelector", false);
}

/// A job selects its pods by its own uid.
pub(super) fn prepare_job(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (meta::uid(object).to_owned(), meta::name(object).to_owned());
    let spec = meta::map_mut(object, "spec");
    spec.insert(
        "selector".to_owned(),
        json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } }),
    );
    let template = spec.entry("template").or_insert_with(|| json!({}));
    meta::metadata_mut(template);
    let labels = meta::map_mut(&mut template["metadata"], "labels");
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}controller-uid"), uid.clone().into());
        labels.insert(format!("{prefix}job-name"), name.clone().into());
    }
    // A job without labels of its own shares those of its pods.
    let labels = Value::Object(labels.clone());
    set_default(meta::metadata_mut(object), "labels", labels);
}

/// How often the template of a daemon set changed is still told in an annotation, as in the kind's first version.
pub(super) fn count_templates(new: &mut Value, old: Option<&Value>) {
    const ANNOTATION: &str = "deprecated.daemonset.template.generation";
    let count = match old {
        None => 1,
        Some(old) => {
            let before = old["metadata"]["annotations"][ANNOTATION]
                .as_str()
                .and_then(|text| text.parse::<i64>().ok());
            before.unwrap_or(0) + i64::from(new["spec"]["template"] != old["spec"]["template"])
        }
    };
    meta::metadata_mut(new);
    meta::map_mut(&mut new["metadata"], "annotations").insert(ANNOTATION.to_owned(), count.to_string().into());
}

pub(super) fn validate(ty: &ResourceType, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    let kind = ty.kind.as_str();
    if !matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job") {
        return errors;
    }
    for field in [
        "replicas",
        "parallelism",
        "completions",
        "backoffLimit",
        "minReadySeconds",
        "revisionHistoryLimit",
    ] {
        if spec[field].as_i64().is_some_and(|number| number < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(complaint::invalid(format!("spec.{field}"), &spec[field], detail));
        }
    }
    // Daemon sets are the oldest of the kinds and are checked in another order.
    let changes = |errors: &mut Vec<FieldError>| {
        if let Some(old) = old {
            immutable(kind, spec, &old["spec"], errors);
        }
    };
    if kind == "DaemonSet" {
        changes(&mut errors);
    }
    let template = &spec["template"];
    if kind != "Job" {
        selector(kind, spec, &mut errors);
    }
    metadata::labels(&template["metadata"]["labels"], LABELS, &mut errors);
    let template_changed = old.is_none_or(|old| old["spec"]["template"] != *template);
    if template_changed {
        pod::validate_spec(&template["spec"], "spec.template.spec", &mut errors);
        restart_policy(kind, &template["spec"], &mut errors);
    }
    rolling_update(&spec["strategy"]["rollingUpdate"], &mut errors);
    if kind != "DaemonSet" {
        changes(&mut errors);
    }
    errors
}

/// A rollout that may neither add nor remove a pod never ends.
fn rolling_update(rollout: &Value, errors: &mut Vec<FieldError>) {
    let is_zero = |value: &Value| *value == 0 || *value == "0%";
    if is_zero(&rollout["maxUnavailable"]) && is_zero(&rollout["maxSurge"]) {
        errors.push(complaint::invalid(
            "spec.strategy.rollingUpdate.maxUnavailable",
            &rollout["maxUnavailable"],
            "may not be 0 when `maxSurge` is 0",
        ));
    }
}

const LABELS: &str = "spec.template.metadata.labels";

fn selector(kind: &str, spec: &Value, errors: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    if selector.is_null() && kind != "DaemonSet" {
        errors.push(complaint::required("spec.selector", ""));
    }
    let parsed = LabelSelector::from_object(selector);
    if parsed.is_everything() {
        let word = match kind {
            "StatefulSet" => "statefulset",
            "DaemonSet" => "daemonset",
            _ => "deployment",
        };
        let detail = format!("empty selector is invalid for {word}");
        errors.push(complaint::invalid("spec.selector", selector, &detail));
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !parsed.matches(labels) {
        errors.push(complaint::invalid(
            LABELS,
            labels,
            "`selector` does not match template `labels`",
        ));
    }
}

fn restart_policy(kind: &str, spec: &Value, errors: &mut Vec<FieldError>) {
    let (field, policy) = ("spec.template.spec.restartPolicy", &spec["restartPolicy"]);
    match (kind, policy.as_str()) {
        ("Job", Some("OnFailure" | "Never")) | (_, None) => {}
        ("Job", Some("Always")) => {
            errors.push(complaint::required(field, "valid values: \"OnFailure\", \"Never\""));
        }
        ("Job", Some(_)) => errors.push(complaint::not_supported(field, policy, &["OnFailure", "Never"])),
        (_, Some("Always")) => {}
        (_, Some(_)) => errors.push(complaint::not_supported(field, policy, &["Always"])),
    }
}

/// What identifies the pods of a workload stays.
fn immutable(kind: &str, new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if kind == "StatefulSet" {
        let mutable = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        let fixed = |spec: &Value| -> Map<String, Value> {
            let mut spec = spec.as_object().cloned().unwrap_or_default();
            spec.retain(|key, _| !mutable.contains(&key.as_str()));
            spec
        };
        if fixed(new) != fixed(old) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
                 are forbidden";
            errors.push(complaint::forbidden("spec", detail));
        }
        return;
    }
    let fields: &[&str] = if kind == "Job" {
        &["completions", "completionMode", "selector", "template"]
    } else {
        &["selector"]
    };
    for field in fields {
        // The template of a suspended job may still be directed to other nodes.
        if *field == "template" && old["suspend"] == true {
            continue;
        }
        if new[field] != old[field] {
            errors.push(complaint::invalid(
                format!("spec.{field}"),
                &new[field],
                "field is immutable",
            ));
        }
    }
}
