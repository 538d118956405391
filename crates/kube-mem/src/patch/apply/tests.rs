//! Stories of server-side apply. The outcomes were compared with kube-apiserver 1.35.

use serde_json::{Value, json};

use super::{ApplyError, ApplyOptions, apply};
use crate::managed_fields::record_update;
use crate::registry::Gvk;
use crate::schema::TypeSchema;
use crate::types;
use std::sync::Arc;

const NOW: &str = "2024-01-01T00:00:00Z";

fn deployment_types() -> Arc<TypeSchema> {
    types::of(&Gvk::new("apps", "v1", "Deployment")).expect("deployments are built in")
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "ns"}, "spec": spec})
}

fn by(manager: &str) -> ApplyOptions<'_> {
    ApplyOptions {
        manager,
        force: false,
        subresource: None,
        now: NOW,
    }
}

fn forced(manager: &str) -> ApplyOptions<'_> {
    ApplyOptions {
        force: true,
        ..by(manager)
    }
}

#[track_caller]
fn applied(live: Option<&Value>, spec: Value, options: ApplyOptions<'_>) -> Value {
    apply(live, &deployment(spec), options, &deployment_types()).expect("nobody objects")
}

fn managers(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| {
            let who = entry["manager"].as_str().unwrap_or_default().to_owned();
            (who, entry["fieldsV1"].clone())
        })
        .collect()
}

#[test]
fn the_first_apply_owns_exactly_what_it_says() {
    let object = applied(
        None,
        json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}),
        by("me"),
    );
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(
        managers(&object),
        [("me".into(), json!({"f:spec": {"f:replicas": {}, "f:selector": {}}}))]
    );
}

#[test]
fn another_value_conflicts_and_force_takes_the_field() {
    let live = applied(None, json!({"replicas": 1, "paused": true}), by("a"));
    let refused = apply(
        Some(&live),
        &deployment(json!({"replicas": 2})),
        by("b"),
        &deployment_types(),
    );
    let Err(ApplyError::Conflicts(conflicts)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (conflicts[0].manager.as_str(), conflicts[0].field.as_str()),
        ("\"a\"", ".spec.replicas")
    );
    let taken = applied(Some(&live), json!({"replicas": 2}), forced("b"));
    assert_eq!(taken["spec"], json!({"replicas": 2, "paused": true}));
    let owners = managers(&taken);
    assert_eq!(owners[0], ("a".into(), json!({"f:spec": {"f:paused": {}}})));
    assert_eq!(owners[1], ("b".into(), json!({"f:spec": {"f:replicas": {}}})));
}

#[test]
fn the_same_value_is_shared_and_goes_with_the_last_owner() {
    let live = applied(None, json!({"replicas": 1, "paused": true}), by("a"));
    let shared = applied(Some(&live), json!({"replicas": 1}), by("b"));
    let without_a = applied(Some(&shared), json!({"paused": true}), by("a"));
    assert_eq!(without_a["spec"]["replicas"], 1, "b still owns it");
    let without_both = applied(Some(&without_a), json!({}), by("b"));
    assert_eq!(without_both["spec"], json!({"paused": true}));
}

#[test]
fn what_an_updater_owns_survives_but_what_nobody_owns_any_more_goes() {
    let live = applied(
        None,
        json!({"replicas": 1, "template": {"metadata": {"labels": {"x": "1", "y": "1"}}}}),
        by("a"),
    );
    let mut updated = live.clone();
    updated["spec"]["template"]["metadata"]["labels"]["z"] = "1".into();
    record_update(Some(&live), &mut updated, "updater", None, NOW, &deployment_types());
    let pruned = applied(
        Some(&updated),
        json!({"replicas": 1, "template": {"metadata": {"labels": {"x": "1"}}}}),
        by("a"),
    );
    assert_eq!(
        pruned["spec"]["template"]["metadata"]["labels"],
        json!({"x": "1", "z": "1"})
    );
}

#[test]
fn items_of_keyed_lists_are_merged_by_key_and_removed_alone() {
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let pods = |containers: Value| json!({"template": {"spec": {"containers": containers}}});
    let live = applied(
        None,
        pods(json!([container("main", "one"), container("side", "one")])),
        by("a"),
    );
    let merged = applied(Some(&live), pods(json!([container("extra", "two")])), by("b"));
    let names = |object: &Value| -> Vec<String> {
        let list = object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        list.iter()
            .map(|item| item["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(names(&merged), ["main", "side", "extra"]);
    let fewer = applied(Some(&merged), pods(json!([container("main", "three")])), by("a"));
    assert_eq!(names(&fewer), ["main", "extra"]);
    assert_eq!(fewer["spec"]["template"]["spec"]["containers"][0]["image"], "three");
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let live = applied(None, json!({"replicas": 1}), by("a"));
    let again = applied(
        Some(&live),
        json!({"replicas": 1}),
        ApplyOptions {
            now: "2030-01-01T00:00:00Z",
            ..by("a")
        },
    );
    assert_eq!(again, live);
}

#[test]
fn an_object_without_managers_gets_one_for_its_past() {
    let live = deployment(json!({"replicas": 1}));
    let refused = apply(
        Some(&live),
        &deployment(json!({"replicas": 2})),
        by("me"),
        &deployment_types(),
    );
    let Err(ApplyError::Conflicts(conflicts)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(conflicts[0].manager, "\"before-first-apply\" using apps/v1");
}

#[test]
fn unknown_fields_and_wrong_types_do_not_fit() {
    let check = |spec: Value, expected: &str| {
        let refused = apply(None, &deployment(spec), by("me"), &deployment_types());
        let text = format!("failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): {expected}");
        assert_eq!(refused, Err(ApplyError::Untyped(text)));
    };
    check(json!({"size": 1}), ".spec.size: field not declared in schema");
    check(
        json!({"replicas": "x"}),
        ".spec.replicas: expected numeric (int or float), got string",
    );
    check(
        json!({"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}}),
        ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
    );
}

#[test]
fn status_applied_to_the_object_itself_is_not_owned() {
    let mut wanted = deployment(json!({"replicas": 1}));
    wanted["status"] = json!({"replicas": 9});
    let object = apply(None, &wanted, by("me"), &deployment_types()).expect("nobody objects");
    assert_eq!(
        managers(&object),
        [("me".into(), json!({"f:spec": {"f:replicas": {}}}))]
    );
}

#[test]
fn kubectl_takes_over_from_its_client_side_apply() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = deployment(json!({"replicas": 1}));
    let mut live = last.clone();
    live["metadata"]["annotations"] = json!({annotation: last.to_string()});
    record_update(
        None,
        &mut live,
        "kubectl-client-side-apply",
        None,
        NOW,
        &deployment_types(),
    );
    let wanted = deployment(json!({"replicas": 2}));
    let stranger = apply(Some(&live), &wanted, by("other"), &deployment_types());
    assert!(matches!(stranger, Err(ApplyError::Conflicts(_))), "{stranger:?}");
    let taken = apply(Some(&live), &wanted, by("kubectl"), &deployment_types()).expect("kubectl knows its own");
    assert_eq!(taken["spec"]["replicas"], 2);
    let text = taken["metadata"]["annotations"][annotation]
        .as_str()
        .unwrap_or_default();
    assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(wanted));
}

#[test]
fn giving_up_the_last_label_leaves_the_rest_of_the_metadata() {
    let types =
        types::of(&Gvk::new("scheduling.k8s.io", "v1", "PriorityClass")).expect("priority classes are built in");
    let class = |labels: Value| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"labels": labels}, "value": 1});
    let mut live = apply(None, &class(json!({"a": "1"})), by("me"), &types).expect("nobody objects");
    live["metadata"]["name"] = "high".into();
    let given_up = apply(Some(&live), &class(json!({})), by("me"), &types).expect("nobody objects");
    assert_eq!(given_up["metadata"]["name"], "high");
    assert_eq!(
        given_up["metadata"]
            .get("labels")
            .filter(|labels| **labels != json!({})),
        None
    );
}
