//! Volumes, claims, classes and drivers.

use serde_json::{Map, Value, json};

use super::{pod_template, resources};
use crate::cluster::Cluster;
use crate::complaint;
use crate::meta::{self, set_default};
use crate::registry::ResourceType;
use crate::schema::FieldError;

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn default(ty: &ResourceType, object: &mut Value) {
    match ty.kind.as_str() {
        "PersistentVolume" => default_volume(object),
        "PersistentVolumeClaim" => {
            if let Some(spec) = object.get_mut("spec") {
                pod_template::default_claim_spec(spec);
            }
        }
        "StorageClass" => {
            if let Some(fields) = object.as_object_mut() {
                set_default(fields, "reclaimPolicy", "Delete");
                set_default(fields, "volumeBindingMode", "Immediate");
            }
        }
        "CSIDriver" => default_driver(meta::map_mut(object, "spec")),
        _ => {}
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

pub(super) fn validate_class(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if new["provisioner"].as_str().unwrap_or_default().is_empty() {
        errors.push(complaint::required("provisioner", ""));
    }
    let Some(old) = old else { return };
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        if new[field] != old[field] {
            let detail = format!("updates to {field} are forbidden.");
            errors.push(complaint::forbidden(field, &detail));
        }
    }
}

pub(super) fn validate_claim(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
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
