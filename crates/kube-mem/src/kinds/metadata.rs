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
    if old.is_none() {
        let name = meta::name(new);
        if name.is_empty() {
            errors.push(complaint::required("metadata.name", "name or generateName is required"));
        } else {
            let problems = names::object_name_problems(ty, name);
            invalid_each("metadata.name", &json!(name), &problems, &mut errors);
        }
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
        finalizers(ty, new, old, &mut errors);
    }
    if let Some(old) = old {
        immutable(metadata, &old["metadata"], &mut errors);
        // The real server checks the metadata of an update once for all kinds and once for each, and says it twice.
        errors.extend(errors.clone());
    }
    errors
}

/// One error for each thing that is wrong with a value.
pub(super) fn invalid_each(field: &str, value: &Value, problems: &[String], errors: &mut Vec<FieldError>) {
    errors.extend(problems.iter().map(|problem| complaint::invalid(field, value, problem)));
}

/// Identities that only a patch can try to change; a whole object that differs is another object.
fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for field in ["name", "namespace", "uid"] {
        if new[field] != old[field] {
            errors.push(complaint::invalid(
                format!("metadata.{field}"),
                &new[field],
                "field is immutable",
            ));
        }
    }
}

pub(super) fn labels(labels: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        invalid_each(path, &json!(key), &names::label_key_problems(key), errors);
        match value.as_str() {
            Some(text) => invalid_each(path, value, &names::label_value_problems(text), errors),
            None => errors.push(complaint::invalid(path, value, "must be a string")),
        }
    }
}

fn annotations(annotations: &Value, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // The name of an annotation is checked in lower case, so capitals pass.
        let problems = names::label_key_problems(&key.to_lowercase());
        invalid_each("metadata.annotations", &json!(key), &problems, errors);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(complaint::too_long("metadata.annotations", MAX_ANNOTATION_BYTES));
    }
}

fn owners(owners: &[Value], errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        for (field, words) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                errors.push(complaint::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    &json!(""),
                    words,
                ));
            }
        }
        if owner["controller"] == true {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {name}"
                );
                errors.push(complaint::invalid("metadata.ownerReferences", &json!(owners), &detail));
            }
            controller = Some(name);
        }
    }
}

fn finalizers(ty: &ResourceType, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let finalizers = meta::finalizers(new);
    for (index, finalizer) in finalizers.iter().enumerate() {
        let path = format!("metadata.finalizers[{index}]");
        let problems = names::label_key_problems(finalizer);
        invalid_each("metadata.finalizers", &json!(finalizer), &problems, errors);
        if problems.is_empty() && !finalizer.contains('/') && ![ORPHAN, FOREGROUND, "kubernetes"].contains(finalizer) {
            // Custom resource definitions use a domain as the finalizer's whole name, and not every group checks names.
            let is_checked = ty.custom.is_none() && !["coordination.k8s.io", "policy"].contains(&ty.group.as_str());
            if !finalizer.contains('.') && is_checked {
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
