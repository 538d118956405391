//! The defaults of a pod's spec, in a pod or in a template.

use serde_json::{Map, Value, json};

use super::resources;
use crate::meta::{self, set_default};

/// Completes a template; its metadata stays as it is.
pub(super) fn default(template: &mut Value) {
    if let Some(spec) = template.get_mut("spec") {
        default_spec(spec);
    }
}

pub(super) fn default_spec(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    set_default(fields, "dnsPolicy", "ClusterFirst");
    set_default(fields, "restartPolicy", "Always");
    set_default(fields, "schedulerName", "default-scheduler");
    set_default(fields, "securityContext", json!({}));
    set_default(fields, "terminationGracePeriodSeconds", 30);
    mirror_service_account(fields);
    let host_network = fields.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(container, host_network);
        }
    }
    for volume in fields
        .get_mut("volumes")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        default_volume(volume);
    }
    if let Some(overhead) = fields.get_mut("overhead") {
        resources::canonical_map(overhead);
    }
    if let Some(own) = fields.get_mut("resources") {
        resources::canonical_requirements(own);
    }
}

/// The old name of the field follows the new one.
pub(super) fn mirror_service_account(spec: &mut Map<String, Value>) {
    let name = |key: &str| {
        spec.get(key)
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    if let Some(account) = name("serviceAccountName").or_else(|| name("serviceAccount")) {
        spec.insert("serviceAccountName".to_owned(), account.clone().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
}

fn default_container(container: &mut Value, host_network: bool) {
    let Some(fields) = container.as_object_mut() else {
        return;
    };
    let image = fields.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    set_default(fields, "imagePullPolicy", policy);
    set_default(fields, "resources", json!({}));
    set_default(fields, "terminationMessagePath", "/dev/termination-log");
    set_default(fields, "terminationMessagePolicy", "File");
    if let Some(own) = fields.get_mut("resources") {
        resources::canonical_requirements(own);
    }
    for port in fields
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(port) = port.as_object_mut() else { continue };
        set_default(port, "protocol", "TCP");
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            set_default(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = fields.get_mut(probe).and_then(Value::as_object_mut) {
            default_probe(probe);
        }
    }
    for variable in fields
        .get_mut("env")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(reference) = variable
            .pointer_mut("/valueFrom/fieldRef")
            .and_then(Value::as_object_mut)
        {
            set_default(reference, "apiVersion", "v1");
        }
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    set_default(probe, "timeoutSeconds", 1);
    set_default(probe, "periodSeconds", 10);
    set_default(probe, "successThreshold", 1);
    set_default(probe, "failureThreshold", 3);
    if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
        set_default(get, "path", "/");
        set_default(get, "scheme", "HTTP");
    }
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        set_default(grpc, "service", "");
    }
}

/// An image without a tag, or with the tag `latest`. A digest pins it.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn default_volume(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else { return };
    if fields.len() == 1 && fields.contains_key("name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields.get_mut(source).and_then(Value::as_object_mut) {
            set_default(source, "defaultMode", 420);
        }
    }
    if let Some(path) = fields.get_mut("hostPath").and_then(Value::as_object_mut) {
        set_default(path, "type", "");
    }
    if let Some(spec) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        default_claim_spec(spec);
    }
}

/// The spec of a volume claim, by itself or in a template.
pub(super) fn default_claim_spec(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    set_default(fields, "volumeMode", "Filesystem");
    if let Some(own) = fields.get_mut("resources") {
        resources::canonical_requirements(own);
    }
}

/// Containers of a spec with their paths, the ones that run first first.
pub(super) fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        meta::list(&spec[list])
            .iter()
            .enumerate()
            .map(move |(index, container)| (format!("{list}[{index}]"), container))
    })
}
