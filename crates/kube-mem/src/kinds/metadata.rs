//! What every object's metadata has to keep to.

use serde_json::{Value, json};

use crate::complaint;
use crate::meta::{self, FOREGROUND, ORPHAN};
use crate::names;
use crate::registry::ResourceType;
use crate::schema::FieldError;

const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn validate(ty: &ResourceType, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none()
        && let Some(problem) = names::object_name_problem(ty, meta::name(new))
    {
        errors.push(complaint::invalid("metadata.name", &json!(meta::name(new)), &problem));
    }
    let metadata = &new["metadata"];
    // Labels and annotations that did not change were checked when they were written.
    let unchanged = |field: &str| old.is_some_and(|old| old["metadata"][field] == metadata[field]);
    if !unchanged("labels") {
        labels(&metadata["labels"], "metadata.labels", &mut errors);
    }
    if !unchanged("annotations") {
        annotations(&metadata["annotations"], &mut errors);
    }
    if !unchanged("ownerReferences") {
        owners(meta::owner_references(new), &mut errors);
    }
    if !unchanged("finalizers") {
        finalizers(new, old, &mut errors);
    }
    errors
}

pub(super) fn labels(labels: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if let Some(problem) = names::label_key_problem(key) {
            errors.push(complaint::invalid(path, &json!(key), &problem));
        }
        match value.as_str() {
            Some(text) => {
                if let Some(problem) = names::label_value_problem(text) {
                    errors.push(complaint::invalid(path, value, &problem));
                }
            }
            None => errors.push(complaint::invalid(path, value, "must be a string")),
        }
    }
}

fn annotations(annotations: &Value, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // The name of an annotation is checked in lower case, so capitals pass.
        if let Some(problem) = names::label_key_problem(&key.to_lowercase()) {
            errors.push(complaint::invalid("metadata.annotations", &json!(key), &problem));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(complaint::too_long("metadata.annotations", MAX_ANNOTATION_BYTES));
    }
}

fn owners(owners: &[Value], errors: &mut Vec<FieldError>) {
    let mut controller: Option<&str> = None;
    for (index, owner) in owners.iter().enumerate() {
        let path = format!("metadata.ownerReferences[{index}]");
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        for (field, words) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "kind must not be empty"),
            ("name", "name must not be empty"),
            ("uid", "uid must not be empty"),
        ] {
            if text(field).is_empty() {
                errors.push(complaint::invalid(format!("{path}.{field}"), &json!(""), words));
            }
        }
        if owner["controller"] == true {
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    text("name")
                );
                errors.push(complaint::invalid("metadata.ownerReferences", &json!(owners), &detail));
            }
            controller = Some(text("name"));
        }
    }
}

fn finalizers(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let finalizers = meta::finalizers(new);
    for (index, finalizer) in finalizers.iter().enumerate() {
        let path = format!("metadata.finalizers[{index}]");
        if let Some(problem) = names::label_key_problem(finalizer) {
            errors.push(complaint::invalid("metadata.finalizers", &json!(finalizer), &problem));
        } else if !finalizer.contains('/') && ![ORPHAN, FOREGROUND, "kubernetes"].contains(finalizer) {
            // Custom resource definitions use a domain as the finalizer's whole name.
            if !finalizer.contains('.') {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                errors.push(complaint::invalid(path, &json!(finalizer), detail));
            }
        }
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(complaint::invalid("metadata.finalizers", &json!(finalizers), detail));
    }
    let Some(old) = old.filter(|old| meta::is_deleting(old)) else {
        return;
    };
    let known = meta::finalizers(old);
    let added: Vec<String> = finalizers
        .iter()
        .filter(|finalizer| !known.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(complaint::forbidden("metadata.finalizers", &detail));
    }
}
