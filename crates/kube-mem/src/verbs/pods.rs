//! What only pods have: binding to a node, and logs that do not exist here.

use serde_json::{Map, Value, json};

use super::Reply;
use super::decode::{self, WriteOptions};
use crate::cluster::Cluster;
use crate::complaint;
use crate::failure::Failure;
use crate::meta;
use crate::registry::GroupResource;
use crate::request::Request;
use crate::store::{ObjectRef, key};

/// Labels of the node that a bound pod takes over.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

impl Cluster {
    pub(super) fn bind(&mut self, request: &Request) -> Result<Reply, Failure> {
        let options = WriteOptions::of(request, "CreateOptions")?;
        let binding = decode::body(request)?;
        let said = meta::name(&binding);
        if said != request.name {
            return Err(Failure::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        let node = binding["target"]["name"].as_str().unwrap_or_default();
        let kind = binding["target"]["kind"].as_str().unwrap_or_default();
        if !kind.is_empty() && kind != "Node" {
            let supported = ["Node", "<empty>"];
            let error = complaint::not_supported("target.kind", &json!(kind), &supported);
            return Err(Failure::bare(error.to_string()));
        }
        if node.is_empty() {
            return Err(Failure::bare(complaint::required("target.name", "").to_string()));
        }
        let existing = self.existing(request)?.clone();
        let pod = &existing.value;
        bindable(request, pod, &binding)?;
        let mut new = pod.clone();
        new["spec"]["nodeName"] = node.into();
        if let Some(status) = new["status"].as_object_mut() {
            status.remove("nominatedNodeName");
        }
        self.take_over(&mut new, &binding, node);
        let condition = json!({ "type": "PodScheduled", "status": "True" });
        set_condition(&mut new, &condition, &self.stamp());
        if !options.dry_run {
            let at = ObjectRef {
                collection: request.ty.collection.clone(),
                key: key(&request.namespace, &request.name),
            };
            self.commit(&at, new);
        }
        Ok(Reply::value(
            201,
            &json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }),
        ))
    }

    /// Annotations and labels that come with the binding, and the topology of the node.
    fn take_over(&self, pod: &mut Value, binding: &Value, node: &str) {
        let mut labels: Map<String, Value> = binding["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        if let Some(node) = self.store.get("nodes", node) {
            for label in TOPOLOGY_LABELS {
                if let Some(value) = node.value["metadata"]["labels"].get(label) {
                    labels.entry(label).or_insert_with(|| value.clone());
                }
            }
        }
        merge_into(pod, "labels", labels);
        merge_into(
            pod,
            "annotations",
            binding["metadata"]["annotations"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
    }

    pub(super) fn refuse_logs(&self, request: &Request) -> Result<Reply, Failure> {
        let pod = self.existing(request)?;
        let container = pod.value["spec"]["containers"][0]["name"].as_str().unwrap_or_default();
        Err(Failure::bad_request(format!(
            "container {container:?} in pod {:?} has no logs: pods of this cluster are simulated",
            request.name
        )))
    }
}

fn merge_into(object: &mut Value, field: &str, entries: Map<String, Value>) {
    if entries.is_empty() {
        return;
    }
    meta::metadata_mut(object);
    meta::map_mut(&mut object["metadata"], field).extend(entries);
}

/// *Errors*: 409 for a pod that is bound, gated, going, or not the one that was meant.
fn bindable(request: &Request, pod: &Value, binding: &Value) -> Result<(), Failure> {
    let name = &request.name;
    let pods = GroupResource {
        group: String::new(),
        plural: "pods".to_owned(),
    };
    let bindings = GroupResource {
        group: String::new(),
        plural: "pods/binding".to_owned(),
    };
    let uid = meta::uid(binding);
    if !uid.is_empty() && uid != meta::uid(pod) {
        let found = meta::uid(pod);
        let cause = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
        return Err(Failure::conflict(&pods, name, &cause));
    }
    if meta::is_deleting(pod) {
        let cause = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Failure::conflict(&bindings, name, &cause));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        let cause = format!("pod {name} is already assigned to node {node:?}");
        return Err(Failure::conflict(&bindings, name, &cause));
    }
    if !meta::list(&pod["spec"]["schedulingGates"]).is_empty() {
        let cause = format!("pod {name} has non-empty .spec.schedulingGates");
        return Err(Failure::conflict(&bindings, name, &cause));
    }
    Ok(())
}

/// Sets a condition by its type. The time of the last transition moves only if the status does.
pub(super) fn set_condition(object: &mut Value, condition: &Value, now: &str) {
    let object_is_pod = object["kind"] == "Pod";
    let status = meta::map_mut(object, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let mut condition = condition.clone();
    condition["lastTransitionTime"] = now.into();
    if object_is_pod {
        condition["lastProbeTime"] = Value::Null;
    }
    match conditions
        .iter_mut()
        .find(|present| present["type"] == condition["type"])
    {
        Some(present) => {
            if present["status"] == condition["status"] {
                condition["lastTransitionTime"] = present["lastTransitionTime"].clone();
            }
            *present = condition;
        }
        None => conditions.push(condition),
    }
}
