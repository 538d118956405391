//! Dashboards and alerts ask only for metrics that the program exports.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::terraform::repository;

fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect("the file is there")
}

/// What names of metrics begin with, ours and those of the runtime.
const PREFIXES: [&str; 4] = ["karpenter_", "operator_", "controller_runtime_", "workqueue_"];

/// Families and their types, from the page that is generated from the code.
fn exported() -> BTreeMap<String, String> {
    let page = text("docs/reference/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    })
    .collect()
}

/// Every word of an expression that looks like a metric.
fn metrics(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "expr" || name == "query" => found.push(text.clone()),
                    value => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn dashboards_and_alerts_know_only_metrics_that_are_exported() {
    let exported = exported();
    assert!(exported.len() > 90, "the page has lost its table");
    let mut asked = 0;
    for file in ["capacity.json", "controllers.json", "alerts.yaml"] {
        let path = format!("deploy/monitoring/{file}");
        let document: Value = serde_saphyr::from_str(&text(&path)).expect("JSON or YAML");
        let mut found = Vec::new();
        expressions(&document, &mut found);
        assert!(found.len() >= 10, "{path} asks for little");
        for metric in found.iter().flat_map(|expression| metrics(expression)) {
            asked += 1;
            let parts = ["_bucket", "_count", "_sum"];
            let family = parts.iter().find_map(|part| {
                let family = metric.strip_suffix(part)?;
                let kind = exported.get(family)?;
                (kind == "histogram" || kind == "summary").then_some(family)
            });
            assert!(
                exported.contains_key(metric) || family.is_some(),
                "{path}: nothing exports {metric}"
            );
        }
    }
    assert!(asked > 40);
}

#[test]
fn every_alert_says_what_to_do() {
    let document: Value = serde_saphyr::from_str(&text("deploy/monitoring/alerts.yaml")).expect("YAML");
    for rule in document["groups"][0]["rules"].as_array().expect("rules") {
        let has = |place: &str| {
            rule.pointer(place)
                .and_then(Value::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        assert!(has("/alert") && has("/labels/severity"), "{rule}");
        assert!(has("/annotations/summary") && has("/annotations/description"), "{rule}");
    }
}
