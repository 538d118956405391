//! Nodes: quantities in canonical form, taints that make sense, and identities that stay.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::metadata::invalid_each;
use super::resources;
use crate::complaint;
use crate::meta;
use crate::names;
use crate::schema::{FieldError, Reason};

pub(super) fn default(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["capacity", "allocatable"] {
        if let Some(quantities) = status.get_mut(field) {
            resources::canonical_map(quantities);
        }
    }
    // What is not said to be reserved is there for pods.
    if let Some(capacity) = status.get("capacity").and_then(Value::as_object).cloned() {
        let allocatable = status.entry("allocatable").or_insert_with(|| json!({}));
        if let Some(allocatable) = allocatable.as_object_mut() {
            for (name, quantity) in capacity {
                allocatable.entry(name).or_insert(quantity);
            }
        }
    }
}

pub(super) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let unchanged = old.is_some_and(|old| old["spec"]["taints"] == new["spec"]["taints"]);
    if !unchanged {
        taints(meta::list(&new["spec"]["taints"]), &mut errors);
    }
    if let Some(old) = old {
        let text = |object: &Value, field: &str| object["spec"][field].as_str().unwrap_or_default().to_owned();
        if !text(old, "providerID").is_empty() && text(old, "providerID") != text(new, "providerID") {
            let detail = "node updates may not change providerID except from \"\" to valid";
            errors.push(complaint::forbidden("spec.providerID", detail));
        }
        let cidrs = |object: &Value| object["spec"]["podCIDRs"].clone();
        if !meta::list(&cidrs(old)).is_empty() && cidrs(old) != cidrs(new) {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(complaint::forbidden("spec.podCIDRs", detail));
        }
    }
    errors
}

fn taints(taints: &[Value], errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        // The real server says "metadata" here although the taints are in the spec.
        let path = format!("metadata.taints[{index}]");
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        let (key, value) = (text("key"), text("value"));
        invalid_each(
            &format!("{path}.key"),
            &json!(key),
            &names::label_key_problems(key),
            errors,
        );
        invalid_each(
            &format!("{path}.value"),
            &json!(value),
            &names::label_value_problems(value),
            errors,
        );
        match text("effect") {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(complaint::required(format!("{path}.effect"), "")),
            _ => {
                let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                errors.push(complaint::not_supported(
                    format!("{path}.effect"),
                    &taint["effect"],
                    &supported,
                ));
            }
        }
        if !seen.insert((text("key").to_owned(), text("effect").to_owned())) {
            // Shown with the names that the fields have inside the real server.
            let shown = format!(
                "{{\"Key\":{key:?},\"Value\":{value:?},\"Effect\":{:?},\"TimeAdded\":null}}",
                text("effect")
            );
            errors.push(FieldError {
                field: path,
                reason: Reason::Duplicate,
                message: format!("Duplicate value: {shown}: taints must be unique by key and effect pair"),
            });
        }
    }
}
