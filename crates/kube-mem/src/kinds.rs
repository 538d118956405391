//! What is particular to a kind: defaults, admission, what an update may change, what is valid.
//!
//! The verbs call these functions in a fixed order and know no kind by name. Custom resources follow their schema;
//! built-in kinds have a file here where they need one.

mod definition;
mod event;
mod facts;
mod metadata;
mod namespace;
mod node;
mod pod;
mod pod_template;
mod resources;
mod scalar;
mod service;
mod shape;
mod small;
mod storage;
mod workload;

use std::sync::Arc;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::managed_fields;
use crate::meta;
use crate::registry::{Gvk, ResourceType};
use crate::schema::{FieldError, Reason, TypeSchema};
use crate::types;

pub(crate) use facts::{
    creates_on_update, deletes_gracefully, has_dependents, orphans_by_default, returns_deleted_object, storage_key,
    updates_unconditionally,
};

/// Drops what the kind does not have and gives the paths of what was dropped.
///
/// *Errors*: the decoder's complaint about a value of the wrong type.
pub(crate) fn fit(ty: &ResourceType, object: &mut Value) -> Result<Vec<String>, String> {
    match &ty.custom {
        Some(custom) => {
            let unknown = custom.schema.prune(object);
            // Any built-in kind will do: they all have the same metadata.
            let any = types::of(&Gvk::new("", "v1", "ConfigMap")).expect("config maps are built in");
            shape::fit_metadata(&any, &ty.kind, object).map(|()| unknown)
        }
        None => with_types(ty, |types| shape::fit(types, &ty.kind, object)),
    }
}

/// Fills in what the writer left open.
pub(crate) fn default(ty: &ResourceType, object: &mut Value) {
    if let Some(custom) = &ty.custom {
        custom.schema.default(object);
        return;
    }
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Pod") => pod::default(object),
        ("", "PodTemplate") => {
            if let Some(template) = object.get_mut("template") {
                pod_template::default(template);
            }
        }
        ("", "Node") => node::default(object),
        ("", "Namespace") => namespace::default(object),
        ("", "ReplicationController") | ("apps" | "batch", _) => workload::default(ty, object),
        ("apiextensions.k8s.io", _) => definition::default(object),
        _ => small::default(ty, object),
    }
}

/// Changes and refusals that depend on the rest of the cluster.
pub(crate) fn admit(cluster: &Cluster, ty: &ResourceType, object: &mut Value) -> Result<(), Failure> {
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Pod") => pod::admit(cluster, ty, object),
        ("", "PersistentVolumeClaim") => {
            storage::admit_claim(cluster, object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Sets what only the server may set on a new object.
pub(crate) fn prepare_create(cluster: &mut Cluster, ty: &ResourceType, object: &mut Value) {
    if facts::has_generation(ty) {
        meta::metadata_mut(object).insert("generation".to_owned(), 1.into());
    }
    if facts::resets_status(ty)
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Pod") => pod::prepare_create(object, &cluster.stamp()),
        ("", "Namespace") => namespace::prepare_create(object),
        ("", "Service") => service::prepare_create(cluster, object),
        ("apiextensions.k8s.io", _) => definition::prepare_create(object, &cluster.stamp()),
        _ => small::prepare_create(ty, object, &cluster.stamp()),
    }
}

/// Takes from the old object what this way of updating may not change, and counts the generation.
pub(crate) fn prepare_update(ty: &ResourceType, subresource: Option<&str>, new: &mut Value, old: &Value) {
    match (subresource, &ty.custom) {
        (Some("status"), Some(_)) => *new = with_status(old, new),
        (Some("status"), None) => {
            keep_all_but(new, old, &["metadata", "status"]);
            if ty.is("apps", "deployments") {
                let labels = old["metadata"].get("labels").cloned();
                meta::set_or_remove(meta::metadata_mut(new), "labels", labels);
            }
            if ty.kind == "Pod" {
                pod::prepare_status(new, old);
            }
        }
        (Some(part @ ("resize" | "ephemeralcontainers")), _) => pod::prepare_part(part, new, old),
        (Some("finalize"), _) => {
            let finalizers = new["spec"].get("finalizers").cloned();
            *new = old.clone();
            meta::set_or_remove(meta::map_mut(new, "spec"), "finalizers", finalizers);
        }
        _ if facts::has_status(ty) => {
            set_field(new, "status", old.get("status").cloned());
            if ty.kind == "Namespace" {
                // Only the finalize subresource lets go of a namespace.
                let finalizers = old["spec"].get("finalizers").cloned();
                meta::set_or_remove(meta::map_mut(new, "spec"), "finalizers", finalizers);
            }
            if ty.is("", "pods") {
                pod::prepare_update(new);
            }
        }
        _ => {}
    }
    small::prepare_update(ty, new, old);
    if facts::has_generation(ty) && subresource != Some("status") {
        bump_generation(new, old);
    }
}

/// Takes every field from the old object but those named. Most are the same already, and comparing is cheaper than
/// copying.
fn keep_all_but(new: &mut Value, old: &Value, changeable: &[&str]) {
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else {
        return;
    };
    new.retain(|key, _| old.contains_key(key) || changeable.contains(&key.as_str()));
    for (key, value) in old.iter().filter(|(key, _)| !changeable.contains(&key.as_str())) {
        if new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// The status of a custom resource is all that its status subresource changes.
fn with_status(old: &Value, new: &Value) -> Value {
    let mut merged = old.clone();
    set_field(&mut merged, "status", new.get("status").cloned());
    let managed = new["metadata"].get("managedFields").cloned();
    meta::set_or_remove(meta::metadata_mut(&mut merged), "managedFields", managed);
    merged
}

fn set_field(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        meta::set_or_remove(fields, key, value);
    }
}

/// One more than before if anything changed that is wanted rather than observed.
fn bump_generation(new: &mut Value, old: &Value) {
    let (Some(fields), Some(old_fields)) = (new.as_object(), old.as_object()) else {
        return;
    };
    let observed = |key: &String| matches!(key.as_str(), "metadata" | "status");
    let wanted = |key: &String| !observed(key);
    let changed = fields
        .keys()
        .filter(|key| wanted(key))
        .any(|key| fields.get(key) != old_fields.get(key))
        || old_fields
            .keys()
            .filter(|key| wanted(key))
            .any(|key| !fields.contains_key(key));
    if changed {
        meta::metadata_mut(new).insert("generation".to_owned(), (meta::generation(old) + 1).into());
    }
}

/// Everything that is wrong with an object; `old` is there on an update.
pub(crate) fn validate(
    ty: &ResourceType,
    new: &Value,
    old: Option<&Value>,
    subresource: Option<&str>,
) -> Vec<FieldError> {
    let mut errors = metadata::validate(ty, new, old);
    if let Some(custom) = &ty.custom {
        return match subresource {
            Some("status") => custom.schema.validate_status(errors, new, old),
            _ => custom.schema.validate_after(errors, new, old),
        };
    }
    // The real server checks no more of a new budget than its spec, and that it has a name only if that is right.
    if ty.is("policy", "poddisruptionbudgets") && old.is_none() {
        let spec = small::validate(ty, new, old);
        errors.retain(|error| error.reason == Reason::Required && spec.is_empty());
    }
    match (ty.group.as_str(), ty.kind.as_str(), subresource) {
        ("", "Pod", None) => errors.extend(pod::validate(new, old)),
        ("", "Node", None) => errors.extend(node::validate(new, old)),
        ("apps" | "batch", _, None) => errors.extend(workload::validate(ty, new, old)),
        ("apiextensions.k8s.io", _, None) => errors.extend(definition::validate(new, old)),
        (_, _, None) => errors.extend(small::validate(ty, new, old)),
        _ => {}
    }
    errors
}

/// Enters a write in the managed fields.
pub(crate) fn record_fields(
    ty: &ResourceType,
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
    subresource: Option<&str>,
    now: &str,
) {
    with_types(ty, |types| {
        managed_fields::record_update(old, new, manager, subresource, now, types);
    });
}

/// Hands over what merging needs to know about a type.
pub(crate) fn with_types<R>(ty: &ResourceType, then: impl FnOnce(&TypeSchema) -> R) -> R {
    match &ty.custom {
        Some(custom) => then(custom.schema.types()),
        None => {
            let types = ty
                .types
                .get_or_init(|| types::of(&ty.gvk()).unwrap_or_else(|| Arc::new(TypeSchema::deduced())));
            then(types)
        }
    }
}

/// *Errors*: 403 for the namespaces that a cluster cannot do without.
pub(crate) fn admit_delete(ty: &ResourceType, name: &str) -> Result<(), Failure> {
    if ty.is("", "namespaces") && ["default", "kube-system", "kube-public"].contains(&name) {
        return Err(Failure::forbidden(
            &ty.group_resource(),
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

/// Marks that some kinds get when their deletion begins.
pub(crate) fn hold_deleted(ty: &ResourceType, object: &mut Value) {
    if ty.is("", "namespaces") {
        meta::map_mut(object, "status").insert("phase".to_owned(), "Terminating".into());
    }
    if ty.is("apiextensions.k8s.io", "customresourcedefinitions") && !meta::is_deleting(object) {
        definition::hold_deleted(object);
    }
}
