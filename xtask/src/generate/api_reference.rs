//! Pages of the reference about objects: fields of the custom resources, conditions, and labels of nodes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use api::{
    aws::EC2NodeClass,
    conditions::{self, HasConditions},
    crds::Variant,
    labels,
    v1::{NodeClaim, NodePool},
    v1alpha1::NodeOverlay,
};
use serde_json::Value;

use super::reference::GENERATED;

pub fn files() -> Result<BTreeMap<PathBuf, String>> {
    let page = |name: &str| PathBuf::from(format!("docs/reference/{name}.md"));
    Ok(BTreeMap::from([
        (page("resources"), resources()?),
        (page("conditions"), conditions()?),
        (page("labels"), labels_of_nodes()?),
    ]))
}

fn resources() -> Result<String> {
    let mut text = format!(
        "# Custom resources\n\n{GENERATED}\n\n`karpenter crds` prints the definitions with all their rules. `[]` stands for the items of a list, `*` for any key.\n"
    );
    for crd in api::crds::all(Variant::Aws) {
        let crd = serde_json::to_value(crd)?;
        let version = &crd["spec"]["versions"][0];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        writeln!(
            text,
            "\n## {}\n\n`{}/{}`, {}.\n\n| Field | Type | Meaning |\n| --- | --- | --- |",
            word(&crd["spec"]["names"]["kind"]),
            word(&crd["spec"]["group"]),
            word(&version["name"]),
            word(&crd["spec"]["scope"]).to_lowercase(),
        )?;
        let schema = &version["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            fields(&mut text, &schema["properties"][part], part)?;
        }
    }
    Ok(text)
}

fn fields(text: &mut String, schema: &Value, path: &str) -> Result<()> {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|it| it == name));
        let path = format!("{path}.{name}");
        let description = field["description"].as_str().unwrap_or_default();
        let meaning = description.replace('\n', " ").replace('|', "\\|");
        let required = if required { ", required" } else { "" };
        writeln!(text, "| `{path}` | {}{required} | {meaning} |", kind(field))?;
        inside(text, field, &path)?;
    }
    Ok(())
}

fn inside(text: &mut String, field: &Value, path: &str) -> Result<()> {
    fields(text, field, path)?;
    for (place, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
        if field[place].is_object() {
            inside(text, &field[place], &format!("{path}{mark}"))?;
        }
    }
    Ok(())
}

fn kind(field: &Value) -> String {
    let word = |field: &Value| field["type"].as_str().unwrap_or("integer or string").to_owned();
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(|value| format!("`{value}`"))
            .collect();
        return values.join(", ");
    }
    match field["type"].as_str() {
        Some("array") => format!("list of {}", word(&field["items"])),
        Some("object") if field["additionalProperties"].is_object() => {
            format!("map of {}", word(&field["additionalProperties"]))
        }
        _ => word(field),
    }
}

/// Conditions that `Ready` sums up, and those that only tell.
fn conditions() -> Result<String> {
    use conditions::{capacity_buffer, ec2_node_class, node_claim, node_pool};
    let mut text = format!(
        "# Conditions\n\n{GENERATED}\n\n`Ready` is True when all conditions of its column are; `CapacityReservationsReady` is among them while the gate `ReservedCapacity` is on. Each counts only while it was observed at the current generation of the object.\n\n\
         | Kind | `Ready` sums up | Beside them |\n| --- | --- | --- |\n"
    );
    let rows: [(&str, &[&str], &[&str]); 5] = [
        (
            "NodePool",
            NodePool::DEPENDENTS,
            &[node_pool::NODE_REGISTRATION_HEALTHY],
        ),
        (
            "NodeClaim",
            NodeClaim::DEPENDENTS,
            &[
                node_claim::CONSOLIDATABLE,
                node_claim::DRIFTED,
                node_claim::DISRUPTION_REASON,
                node_claim::DRAINED,
                node_claim::VOLUMES_DETACHED,
                node_claim::INSTANCE_TERMINATING,
                node_claim::CONSISTENT_STATE_FOUND,
            ],
        ),
        (
            "EC2NodeClass",
            EC2NodeClass::DEPENDENTS,
            &[ec2_node_class::CAPACITY_RESERVATIONS_READY],
        ),
        ("NodeOverlay", NodeOverlay::DEPENDENTS, &[]),
        (
            "CapacityBuffer",
            &[],
            &[
                capacity_buffer::READY_FOR_PROVISIONING,
                capacity_buffer::PROVISIONING,
                capacity_buffer::LIMITED_BY_QUOTAS,
            ],
        ),
    ];
    for (kind, roots, others) in rows {
        let listed = |types: &[&str]| {
            types
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        writeln!(text, "| {kind} | {} | {} |", listed(roots), listed(others))?;
    }
    Ok(text)
}

fn labels_of_nodes() -> Result<String> {
    let mut text = format!(
        "# Labels of nodes\n\n{GENERATED}\n\nPools may require them and pods may select them. Those of the AWS provider are facts of the instance type or of how the instance is placed.\n\n"
    );
    let everywhere = [
        labels::NODE_POOL,
        labels::CAPACITY_TYPE,
        labels::INSTANCE_TYPE,
        labels::ARCH,
        labels::OS,
        labels::ZONE,
        labels::REGION,
        labels::HOSTNAME,
        labels::WINDOWS_BUILD,
    ];
    let groups: [(&str, &[&str]); 3] = [
        ("Everywhere", &everywhere),
        ("On EC2, facts of the type", labels::aws::INSTANCE_FACTS),
        ("On EC2, how it is placed", labels::aws::PLACEMENT),
    ];
    for (title, keys) in groups {
        writeln!(text, "## {title}\n")?;
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        for key in keys {
            writeln!(text, "- `{key}`")?;
        }
        writeln!(text)?;
    }
    Ok(text.trim_end().to_owned() + "\n")
}
