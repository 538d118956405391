//! The objects of the end state: those of the input, less what went, with pods where they are now, and the nodes that
//! were launched.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use api::convert;
use model::{PodKey, StateNode};
use serde_json::{Value, json};

use super::advance::Ahead;

/// A file that `plan`, `schedule` and `validate` read again.
pub fn objects(input: &[Value], ahead: &Ahead) -> anyhow::Result<String> {
    let mut items: Vec<Value> = input.iter().filter_map(|object| kept(object, ahead)).collect();
    let alive = ahead.launched.iter().filter_map(|key| ahead.snapshot.nodes.get(key));
    for machine in alive {
        items.extend(claim(machine));
        items.extend(node(machine));
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    serde_json::to_string_pretty(&list).context("the objects at rest")
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The object as it is at the end; nothing when it is gone.
fn kept(object: &Value, ahead: &Ahead) -> Option<Value> {
    let name = text(object, "/metadata/name");
    let removed = |name: &str| ahead.removed.iter().any(|key| key.to_string() == name);
    match text(object, "/kind") {
        "Node" => ahead.snapshot.node_named(&name.into()).map(|_| object.clone()),
        "NodeClaim" => (!removed(name)).then(|| object.clone()),
        "Pod" => {
            let namespace = text(object, "/metadata/namespace");
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            let pod = ahead.snapshot.pods.get(&PodKey::new(namespace, name))?;
            let mut object = object.clone();
            if let Some(node) = &pod.node {
                object["spec"]["nodeName"] = json!(node.as_str());
            }
            Some(object)
        }
        _ => Some(object.clone()),
    }
}

fn labels(machine: &StateNode) -> BTreeMap<String, String> {
    let labels = machine.labels().iter();
    labels
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

fn taints(machine: &StateNode) -> Vec<Value> {
    let taints = machine.claim.iter().flat_map(|claim| &claim.taints);
    let taint =
        |taint: &model::Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.to_string()});
    taints.map(taint).collect()
}

fn claim(machine: &StateNode) -> Option<Value> {
    let claim = machine.claim.as_ref()?;
    let conditions: BTreeSet<&str> = ["Launched", "Registered", "Initialized", "Consolidatable"].into();
    let conditions: Vec<Value> = conditions
        .into_iter()
        .filter(|kind| *kind != "Consolidatable" || claim.consolidatable)
        .map(|kind| {
            json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": claim.created.to_string()})
        })
        .collect();
    Some(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": claim.name.as_str(), "uid": claim.uid, "creationTimestamp": claim.created.to_string(), "labels": labels(machine)},
        "spec": {
            "nodeClassRef": {"group": claim.class.group, "kind": claim.class.kind, "name": claim.class.name},
            "requirements": convert::to_requirements(&claim.requirements),
            "taints": taints(machine),
        },
        "status": {
            "providerID": claim.provider_id.as_ref().map(ToString::to_string),
            "nodeName": claim.node.as_ref().map(ToString::to_string),
            "capacity": convert::resources_text(&claim.capacity),
            "allocatable": convert::resources_text(&claim.allocatable),
            "conditions": conditions,
        },
    }))
}

fn node(machine: &StateNode) -> Option<Value> {
    let node = machine.node.as_ref()?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": node.created.to_string()});
    Some(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name.as_str(), "uid": node.name.as_str(), "creationTimestamp": node.created.to_string(), "labels": labels(machine)},
        "spec": {"providerID": node.provider_id.as_ref().map(ToString::to_string), "taints": taints(machine)},
        "status": {
            "capacity": convert::resources_text(&node.capacity),
            "allocatable": convert::resources_text(&node.allocatable),
            "conditions": [ready],
        },
    }))
}
