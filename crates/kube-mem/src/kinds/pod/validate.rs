//! What is wrong with a pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::metadata::{invalid_each, labels};
use super::super::pod_template::containers;
use super::super::resources::{exceeds, is_negative};
use super::immutable;
use crate::complaint;
use crate::meta;
use crate::names;
use crate::schema::FieldError;

pub(in crate::kinds) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none_or(|old| old["spec"] != new["spec"]) {
        validate_spec(&new["spec"], "spec", &mut errors);
    }
    if let Some(old) = old {
        immutable::validate(new, old, &mut errors);
    }
    errors
}

/// Checks the spec of a pod or of a template.
pub(in crate::kinds) fn validate_spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if meta::list(&spec["containers"]).is_empty() {
        errors.push(complaint::required(format!("{path}.containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for (place, container) in containers(spec) {
        container_errors(container, &format!("{path}.{place}"), &mut seen, errors);
    }
    closed_list(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], errors);
    closed_list(
        spec,
        path,
        "dnsPolicy",
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );

    if let Some(node) = spec["nodeName"].as_str()
        && !node.is_empty()
    {
        let problems = names::dns_subdomain_problems(node);
        invalid_each(&format!("{path}.nodeName"), &spec["nodeName"], &problems, errors);
        if !meta::list(&spec["schedulingGates"]).is_empty() {
            let detail = "cannot be set until all schedulingGates have been cleared";
            errors.push(complaint::forbidden(format!("{path}.nodeName"), detail));
        }
    }
    labels(&spec["nodeSelector"], &format!("{path}.nodeSelector"), errors);
    for (index, toleration) in meta::list(&spec["tolerations"]).iter().enumerate() {
        toleration_errors(toleration, &format!("{path}.tolerations[{index}]"), errors);
    }
    for (index, constraint) in meta::list(&spec["topologySpreadConstraints"]).iter().enumerate() {
        spread_errors(
            constraint,
            &format!("{path}.topologySpreadConstraints[{index}]"),
            errors,
        );
    }
}

fn closed_list(spec: &Value, path: &str, field: &str, supported: &[&str], errors: &mut Vec<FieldError>) {
    if let Some(value) = spec[field].as_str()
        && !supported.contains(&value)
    {
        errors.push(complaint::not_supported(
            format!("{path}.{field}"),
            &spec[field],
            supported,
        ));
    }
}

fn container_errors(container: &Value, path: &str, seen: &mut BTreeSet<String>, errors: &mut Vec<FieldError>) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(complaint::required(format!("{path}.name"), ""));
    } else if !names::dns_label_problems(name).is_empty() {
        invalid_each(
            &format!("{path}.name"),
            &json!(name),
            &names::dns_label_problems(name),
            errors,
        );
    } else if !seen.insert(name.to_owned()) {
        errors.push(complaint::duplicate(format!("{path}.name"), &json!(name)));
    }
    if container["image"].as_str().unwrap_or_default().is_empty() {
        errors.push(complaint::required(format!("{path}.image"), ""));
    }
    for (index, port) in meta::list(&container["ports"]).iter().enumerate() {
        for field in ["containerPort", "hostPort"] {
            let number = port[field].as_i64().unwrap_or_default();
            let is_optional = field == "hostPort" && number == 0;
            if !is_optional && !(1..=65535).contains(&number) {
                let detail = "must be between 1 and 65535, inclusive";
                errors.push(complaint::invalid(
                    format!("{path}.ports[{index}].{field}"),
                    &json!(number),
                    detail,
                ));
            }
        }
    }
    let resources = &container["resources"];
    for list in ["limits", "requests"] {
        for (resource, quantity) in resources[list].as_object().into_iter().flatten() {
            if is_negative(quantity) {
                let field = format!("{path}.resources.{list}[{resource}]");
                errors.push(complaint::invalid(
                    field,
                    quantity,
                    "must be greater than or equal to 0",
                ));
            }
        }
    }
    for (resource, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][resource.as_str()];
        if !limit.is_null() && exceeds(request, limit) {
            let shown = limit.as_str().unwrap_or_default();
            let detail = format!("must be less than or equal to {resource} limit of {shown}");
            errors.push(complaint::invalid(
                format!("{path}.resources.requests"),
                request,
                &detail,
            ));
        }
    }
}

fn toleration_errors(toleration: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    if !text("key").is_empty() {
        let problems = names::label_key_problems(text("key"));
        invalid_each(&format!("{path}.key"), &toleration["key"], &problems, errors);
    }
    if text("key").is_empty() && text("operator") != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(complaint::invalid(
            format!("{path}.operator"),
            &json!(text("operator")),
            detail,
        ));
    }
    if !toleration["tolerationSeconds"].is_null() && text("effect") != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(complaint::invalid(
            format!("{path}.effect"),
            &json!(text("effect")),
            detail,
        ));
    }
    match text("operator") {
        "Equal" | "" => {}
        "Exists" => {
            if !text("value").is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(complaint::invalid(
                    format!("{path}.operator"),
                    &toleration["value"],
                    detail,
                ));
            }
        }
        _ => {
            let field = format!("{path}.operator");
            errors.push(complaint::not_supported(
                field,
                &toleration["operator"],
                &["Equal", "Exists"],
            ));
        }
    }
    if !matches!(text("effect"), "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(complaint::not_supported(
            format!("{path}.effect"),
            &toleration["effect"],
            &supported,
        ));
    }
}

fn spread_errors(constraint: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let skew = &constraint["maxSkew"];
    if skew.as_i64().unwrap_or(0) <= 0 {
        errors.push(complaint::invalid(
            format!("{path}.maxSkew"),
            skew,
            "must be greater than zero",
        ));
    }
    if constraint["topologyKey"].as_str().unwrap_or_default().is_empty() {
        errors.push(complaint::required(format!("{path}.topologyKey"), "can not be empty"));
    }
    let action = constraint["whenUnsatisfiable"].as_str().unwrap_or_default();
    if !["DoNotSchedule", "ScheduleAnyway"].contains(&action) {
        let supported = ["DoNotSchedule", "ScheduleAnyway"];
        let field = format!("{path}.whenUnsatisfiable");
        errors.push(complaint::not_supported(field, &json!(action), &supported));
    }
}
