//! Custom resource definitions: accepted and established at once.

use serde_json::{Value, json};

use crate::complaint;
use crate::meta;
use crate::reactions::CLEANUP_FINALIZER;
use crate::registry::served_versions;
use crate::schema::FieldError;

pub(super) fn default(object: &mut Value) {
    let spec = meta::map_mut(object, "spec");
    meta::set_default(spec, "conversion", json!({ "strategy": "None" }));
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if names.get("singular").and_then(Value::as_str).is_none_or(str::is_empty) {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if names.get("listKind").and_then(Value::as_str).is_none_or(str::is_empty) {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}

pub(super) fn prepare_create(object: &mut Value, now: &str) {
    let stored: Vec<Value> = meta::list(&object["spec"]["versions"])
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
        })
    };
    object["status"] = json!({
        "acceptedNames": object["spec"]["names"],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
}

/// The definition stays until its objects are gone.
pub(super) fn hold_deleted(object: &mut Value) {
    let mut finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    meta::set_finalizers(object, &finalizers);
}

pub(super) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    for (field, value) in [
        ("spec.group", &group),
        ("spec.names.plural", &plural),
        ("spec.names.kind", &text(&spec["names"]["kind"])),
    ] {
        if value.is_empty() {
            errors.push(complaint::required(field, ""));
        }
    }
    let expected = format!("{plural}.{group}");
    if meta::name(new) != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(complaint::invalid("metadata.name", &new["metadata"]["name"], detail));
    }
    match spec["scope"].as_str() {
        Some("Namespaced" | "Cluster") => {}
        None | Some("") => errors.push(complaint::required("spec.scope", "")),
        Some(_) => {
            errors.push(complaint::not_supported(
                "spec.scope",
                &spec["scope"],
                &["Cluster", "Namespaced"],
            ));
        }
    }
    let versions = meta::list(&spec["versions"]);
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(complaint::invalid("spec.versions", &spec["versions"], detail));
    }
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(complaint::required(field, ""));
        }
    }
    if let Some(old) = old {
        for field in ["group", "scope"] {
            if spec[field] != old["spec"][field] {
                errors.push(complaint::invalid(
                    format!("spec.{field}"),
                    &spec[field],
                    "field is immutable",
                ));
            }
        }
    }
    if errors.is_empty()
        && let Err(cause) = served_versions(new)
    {
        errors.push(complaint::invalid("spec.versions", &Value::Null, &cause));
    }
    errors
}
