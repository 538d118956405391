//! The spec of a pod is fixed when it is created, but for a few fields.

use serde_json::{Value, json};

use crate::complaint;
use crate::meta;
use crate::schema::FieldError;

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn validate(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if new == old {
        return;
    }
    for list in ["containers", "initContainers"] {
        if meta::list(&new[list]).len() != meta::list(&old[list]).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(complaint::forbidden(format!("spec.{list}"), detail));
            return;
        }
    }
    deadline(new, old, errors);
    tolerations(new, old, errors);
    gates(new, old, errors);
    let mut rest = new.clone();
    for list in ["containers", "initContainers"] {
        let olds = meta::list(&old[list]);
        for (container, old) in rest
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .zip(olds)
        {
            container["image"] = old["image"].clone();
        }
    }
    take_over(
        &mut rest,
        old,
        &["activeDeadlineSeconds", "schedulingGates", "tolerations"],
    );
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    if grace(old).is_some_and(|secs| secs < 0) && grace(&rest) == Some(1) {
        take_over(&mut rest, old, &["terminationGracePeriodSeconds"]);
    }
    if !meta::list(&old["schedulingGates"]).is_empty() {
        gated(&mut rest, old, errors);
    }
    if rest != *old {
        errors.push(complaint::forbidden("spec", FIXED));
    }
}

fn take_over(spec: &mut Value, old: &Value, fields: &[&str]) {
    let Some(spec) = spec.as_object_mut() else { return };
    for field in fields {
        meta::set_or_remove(spec, field, old.get(*field).cloned());
    }
}

fn deadline(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let field = "spec.activeDeadlineSeconds";
    match (
        new["activeDeadlineSeconds"].as_i64(),
        old["activeDeadlineSeconds"].as_i64(),
    ) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.push(complaint::invalid(
                field,
                &json!(new),
                "must be between 0 and 2147483647, inclusive",
            ));
        }
        (Some(new), Some(old)) if old < new => {
            errors.push(complaint::invalid(
                field,
                &json!(new),
                "must be less than or equal to previous value",
            ));
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(complaint::invalid(field, &Value::Null, detail));
        }
        _ => {}
    }
}

/// Old tolerations stay; only how long they last may change.
fn tolerations(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let same = |a: &Value, b: &Value| {
        ["key", "operator", "value", "effect"]
            .iter()
            .all(|field| a[field] == b[field])
    };
    let news = meta::list(&new["tolerations"]);
    let kept = meta::list(&old["tolerations"])
        .iter()
        .all(|old| news.iter().any(|new| same(new, old)));
    if !kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(complaint::forbidden("spec.tolerations", detail));
    }
}

fn gates(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let olds = meta::list(&old["schedulingGates"]);
    for (index, gate) in meta::list(&new["schedulingGates"]).iter().enumerate() {
        if !olds.contains(gate) {
            let name = gate["name"].as_str().unwrap_or_default();
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(complaint::forbidden(
                format!("spec.schedulingGates[{index}].name"),
                &detail,
            ));
        }
    }
}

/// While a pod waits at a gate, where it may run can still be narrowed.
fn gated(rest: &mut Value, old: &Value, errors: &mut Vec<FieldError>) {
    let chosen = rest["nodeSelector"].as_object();
    let kept = old["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| chosen.and_then(|chosen| chosen.get(key)) == Some(value));
    if !kept {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(complaint::invalid("spec.nodeSelector", &rest["nodeSelector"], detail));
    }
    take_over(rest, old, &["nodeSelector"]);
    let affinity = old["affinity"].get("nodeAffinity").cloned();
    if let Some(new) = rest.get_mut("affinity").and_then(Value::as_object_mut) {
        meta::set_or_remove(new, "nodeAffinity", affinity);
        if new.is_empty() && old.get("affinity").is_none() {
            take_over(rest, old, &["affinity"]);
        }
    }
}
