//! Ownership as a whole: what a create, an update and a subresource leave behind.

use serde_json::{Value, json};

use super::record_update;
use crate::registry::Gvk;
use crate::schema::TypeSchema;
use crate::types;

const NOW: &str = "2024-01-01T00:00:00Z";
const LATER: &str = "2024-01-01T00:01:00Z";

fn fields_of(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries
        .into_iter()
        .find(|entry| entry["manager"] == manager)
        .map_or(Value::Null, |mut entry| entry["fieldsV1"].take())
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "main", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    })
}

/// The expected value is what kube-apiserver 1.35 records for this object, less the defaulted fields.
#[test]
fn a_create_owns_every_field_and_the_parents_that_go_would_omit() {
    let types = types::of(&Gvk::new("apps", "v1", "Deployment")).expect("deployments are built in");
    let mut object = deployment();
    record_update(None, &mut object, "kubectl-create", None, NOW, &types);
    assert_eq!(
        fields_of(&object, "kubectl-create"),
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        "f:containers": {
                            "k:{\"name\":\"main\"}": {
                                ".": {}, "f:image": {}, "f:name": {}, "f:resources": {},
                                "f:ports": {
                                    ".": {},
                                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                                },
                            },
                        },
                        "f:volumes": {".": {}, "k:{\"name\":\"tmp\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}},
                    },
                },
            },
        })
    );
}

#[test]
fn an_update_moves_only_what_it_changes() {
    let types = types::of(&Gvk::new("apps", "v1", "Deployment")).expect("deployments are built in");
    let mut old = deployment();
    record_update(None, &mut old, "creator", None, NOW, &types);
    let mut new = old.clone();
    new["spec"]["replicas"] = 5.into();
    new["metadata"]["labels"]
        .as_object_mut()
        .expect("labels are a map")
        .remove("app");
    record_update(Some(&old), &mut new, "scaler", None, LATER, &types);
    assert_eq!(fields_of(&new, "scaler"), json!({"f:spec": {"f:replicas": {}}}));
    let kept = fields_of(&new, "creator");
    assert_eq!(kept["f:spec"].get("f:replicas"), None);
    assert_eq!(kept["f:metadata"]["f:labels"], json!({}));
}

#[test]
fn a_write_that_changes_nothing_leaves_the_time_alone() {
    let types = types::of(&Gvk::new("apps", "v1", "Deployment")).expect("deployments are built in");
    let mut old = deployment();
    record_update(None, &mut old, "creator", None, NOW, &types);
    let mut new = old.clone();
    record_update(Some(&old), &mut new, "creator", None, LATER, &types);
    assert_eq!(new, old);
}

#[test]
fn a_status_write_is_an_entry_of_its_own() {
    let types = types::of(&Gvk::new("", "v1", "Node")).expect("nodes are built in");
    let mut old = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}});
    record_update(None, &mut old, "kubelet", None, NOW, &types);
    let mut new = old.clone();
    new["status"] = json!({
        "capacity": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"osImage": "linux"},
    });
    record_update(Some(&old), &mut new, "kubelet", Some("status"), NOW, &types);
    let entries = new["metadata"]["managedFields"].as_array().expect("there are managers");
    assert_eq!(entries.len(), 2);
    let status = entries
        .iter()
        .find(|entry| entry["subresource"] == "status")
        .expect("status has an entry");
    assert_eq!(
        status["fieldsV1"],
        json!({"f:status": {
            "f:capacity": {".": {}, "f:cpu": {}},
            "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}, "f:type": {}}},
            "f:nodeInfo": {"f:osImage": {}},
        }})
    );
}

#[test]
fn custom_objects_hold_what_was_written_so_their_spec_is_owned_too() {
    let types = TypeSchema::deduced();
    let mut object = json!({"apiVersion": "x/v1", "kind": "W", "metadata": {"name": "w"}, "spec": {"size": 1}});
    record_update(None, &mut object, "me", None, NOW, &types);
    assert_eq!(fields_of(&object, "me"), json!({"f:spec": {".": {}, "f:size": {}}}));
}

#[test]
fn an_empty_list_forgets_the_managers_and_untracked_objects_stay_so() {
    let types = TypeSchema::deduced();
    let mut old = json!({"apiVersion": "x/v1", "kind": "W", "metadata": {"name": "w"}, "spec": {"size": 1}});
    record_update(None, &mut old, "me", None, NOW, &types);
    let mut new = old.clone();
    new["metadata"]["managedFields"] = json!([]);
    new["spec"]["size"] = 2.into();
    record_update(Some(&old), &mut new, "you", None, LATER, &types);
    assert_eq!(new["metadata"].get("managedFields"), None);
}
