//! Custom resources: defined, served, checked, and gone with their definition.

mod support;

use serde_json::{Value, json};
use support::*;

#[test]
fn a_definition_is_established_at_once_and_its_resource_discovered() {
    let server = server();
    assert_gone(&server, WIDGETS);
    let created = create(&server, DEFINITIONS, &widget_definition());
    assert_eq!(created["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(read(&server, WIDGETS)["kind"], "WidgetList");
    let resources = read(&server, "/apis/example.com/v1");
    let names: Vec<&Value> = resources["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|resource| &resource["name"])
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
}

#[test]
fn a_definition_has_to_make_sense() {
    let server = server();
    let spoiled = |spoil: &dyn Fn(&mut Value)| {
        let mut definition = widget_definition();
        spoil(&mut definition);
        post(&server, DEFINITIONS, &definition).0
    };
    assert_eq!(
        spoiled(&|definition| definition["metadata"]["name"] = "other".into()),
        422
    );
    assert_eq!(spoiled(&|definition| definition["spec"]["scope"] = "World".into()), 422);
    assert_eq!(
        spoiled(&|definition| definition["spec"]["versions"][0]["storage"] = false.into()),
        422
    );
    assert_eq!(
        spoiled(&|definition| definition["spec"]["versions"][0]["schema"] = json!({})),
        422
    );
    assert_eq!(spoiled(&|_| {}), 201);
}

#[test]
fn objects_are_pruned_defaulted_and_validated() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    let mut odd = widget("w", 1);
    odd["spec"]["odd"] = true.into();
    let created = create(&server, WIDGETS, &odd);
    assert_eq!(created["spec"], json!({ "size": 1, "color": "red" }));
    let (code, status) = post(&server, WIDGETS, &widget("big", 11));
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("spec.size"))
    );
    assert_eq!(
        merge(&server, &format!("{WIDGETS}/w"), &json!({ "spec": { "size": -1 } })).0,
        422
    );
    assert_eq!(post(&server, &format!("{WIDGETS}?fieldValidation=Strict"), &odd).0, 400);
}

#[test]
fn a_changed_definition_counts_from_the_next_request() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    assert_eq!(post(&server, WIDGETS, &widget("w", 20)).0, 422);
    let wider = json!([{
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum",
        "value": 50,
    }]);
    let uri = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(
        send(&server, "PATCH", &uri, "application/json-patch+json", &wider).0,
        200
    );
    create(&server, WIDGETS, &widget("w", 20));
}

#[test]
fn versions_share_their_objects() {
    let server = server();
    let mut definition = widget_definition();
    let mut old = definition["spec"]["versions"][0].clone();
    old["name"] = "v1alpha1".into();
    old["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().expect("a list").push(old);
    create(&server, DEFINITIONS, &definition);
    create(&server, WIDGETS, &widget("w", 1));
    let uri = "/apis/example.com/v1alpha1/namespaces/default/widgets/w";
    let seen = read(&server, uri);
    assert_eq!(seen["apiVersion"], "example.com/v1alpha1");
    assert_eq!(
        merge(&server, uri, &json!({ "spec": { "size": 2 } })).1["apiVersion"],
        "example.com/v1alpha1"
    );
    assert_eq!(read(&server, &format!("{WIDGETS}/w"))["spec"]["size"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along_and_ends_their_watches() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    create(&server, WIDGETS, &widget("plain", 1));
    let mut held = widget("held", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&server, WIDGETS, &held);
    let mut watch = watch(&server, &format!("{WIDGETS}?watch=true"));
    assert_eq!(watch.told().await, "ADDED held");
    assert_eq!(watch.told().await, "ADDED plain");

    let uri = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(delete(&server, &uri, &Value::Null).0, 200);
    assert_eq!(watch.told().await, "MODIFIED held");
    assert_eq!(watch.told().await, "DELETED plain");
    assert!(
        read(&server, &uri)["metadata"]["deletionTimestamp"].is_string(),
        "it waits for what is held"
    );

    merge(
        &server,
        &format!("{WIDGETS}/held"),
        &json!({ "metadata": { "finalizers": null } }),
    );
    assert_gone(&server, &uri);
    assert_gone(&server, WIDGETS);
    assert_eq!(watch.next().await, None);
}
