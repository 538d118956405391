//! Creates, updates, patches: conflicts, generations, halves of an object, dry runs.

mod support;

use serde_json::{Value, json};
use support::*;

#[test]
fn a_new_object_gets_what_only_the_server_can_give() {
    let server = server();
    let mut asked = map("a");
    asked["metadata"]["uid"] = "mine".into();
    asked["metadata"]["resourceVersion"] = "5".into();
    let created = create(&server, MAPS, &asked);
    let metadata = &created["metadata"];
    assert_ne!(metadata["uid"], "mine");
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(metadata["resourceVersion"], server.resource_version().to_string());
    assert_eq!(metadata["managedFields"][0]["manager"], "tester");
}

#[test]
fn equal_servers_give_equal_answers() {
    let story = || {
        let server = server();
        create(&server, MAPS, &json!({ "metadata": { "generateName": "x-" } }));
        create(&server, PODS, &pod("p"));
        (get(&server, MAPS), get(&server, PODS))
    };
    assert_eq!(story(), story());
}

#[test]
fn names_are_generated_checked_and_unique() {
    let server = server();
    let generated = create(&server, MAPS, &json!({ "metadata": { "generateName": "x-" } }));
    let name = generated["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("x-") && name.len() == 7, "{name}");
    let (code, status) = post(&server, MAPS, &json!({ "metadata": {} }));
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    assert_eq!(post(&server, MAPS, &map("Upper")).0, 422);
    create(&server, MAPS, &map("a"));
    let (code, status) = post(&server, MAPS, &map("a"));
    assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    assert_eq!(status["details"], json!({ "name": "a", "kind": "configmaps" }));
}

#[test]
fn content_needs_a_namespace() {
    let server = server();
    let (code, status) = post(&server, "/api/v1/namespaces/nope/configmaps", &map("a"));
    assert_eq!(
        (code, &status["message"]),
        (404, &json!("namespaces \"nope\" not found"))
    );
    let mut elsewhere = map("a");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    assert_eq!(post(&server, MAPS, &elsewhere).0, 400);
}

#[test]
fn a_stale_version_and_another_uid_are_conflicts() {
    let server = server();
    let created = create(&server, MAPS, &map("a"));
    let mut stale = created.clone();
    merge(&server, &format!("{MAPS}/a"), &json!({ "data": { "x": "y" } }));
    let (code, status) = put(&server, &format!("{MAPS}/a"), &stale);
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
    assert_eq!(status["details"], json!({ "name": "a", "kind": "configmaps" }));
    stale["metadata"]["uid"] = "another".into();
    assert_eq!(put(&server, &format!("{MAPS}/a"), &stale).0, 409);
    let patch = json!({ "metadata": { "resourceVersion": "1" }, "data": { "z": "z" } });
    assert_eq!(
        merge(&server, &format!("{MAPS}/a"), &patch).0,
        409,
        "a patch that names a version means it"
    );
}

#[test]
fn some_kinds_have_to_be_told_which_version_is_replaced() {
    let server = server();
    create(&server, MAPS, &map("a"));
    assert_eq!(put(&server, &format!("{MAPS}/a"), &map("a")).0, 200);
    create(&server, DEFINITIONS, &widget_definition());
    create(&server, WIDGETS, &widget("w", 1));
    let (code, status) = put(&server, &format!("{WIDGETS}/w"), &widget("w", 2));
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an \
         update"
    );
}

#[test]
fn a_lease_may_be_created_by_an_update_and_a_pod_may_not() {
    let server = server();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "me" } });
    assert_eq!(put(&server, &format!("{leases}/l"), &lease).0, 201);
    assert_eq!(put(&server, &format!("{PODS}/p"), &pod("p")).0, 404);
}

#[test]
fn the_generation_counts_changes_of_what_is_wanted() {
    let server = server();
    let uri = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "app": "x" } },
            "template": { "metadata": { "labels": { "app": "x" } }, "spec": pod("x")["spec"] },
        },
    });
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(&create(&server, uri, &deployment)), Some(1));
    let at = format!("{uri}/d");
    assert_eq!(
        generation(&merge(&server, &at, &json!({ "metadata": { "labels": { "a": "b" } } })).1),
        Some(1)
    );
    assert_eq!(
        generation(&merge(&server, &at, &json!({ "spec": { "replicas": 3 } })).1),
        Some(2)
    );
    let status = json!({ "status": { "replicas": 3 }, "spec": { "replicas": 9 } });
    let (_, after) = merge(&server, &format!("{at}/status"), &status);
    assert_eq!((generation(&after), &after["spec"]["replicas"]), (Some(2), &json!(3)));
    let (_, after) = merge(&server, &at, &json!({ "status": { "replicas": 7 } }));
    assert_eq!(
        after["status"]["replicas"], 3,
        "the object itself does not change its status"
    );
}

#[test]
fn the_status_of_a_custom_resource_is_a_half_of_its_own() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    let mut with_status = widget("w", 1);
    with_status["status"] = json!({ "phase": "Early" });
    let created = create(&server, WIDGETS, &with_status);
    assert!(created.get("status").is_none(), "a new object has no status");
    let at = format!("{WIDGETS}/w");
    let everything = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "size": 9 }, "status": { "phase": "Ready" },
    });
    let (_, after) = merge(&server, &format!("{at}/status"), &everything);
    assert_eq!(
        (&after["status"]["phase"], &after["spec"]["size"]),
        (&json!("Ready"), &json!(1))
    );
    assert!(after["metadata"].get("labels").is_none());
    assert_eq!(after["metadata"]["generation"], 1);
    let (_, after) = merge(
        &server,
        &at,
        &json!({ "spec": { "size": 2 }, "status": { "phase": "Late" } }),
    );
    assert_eq!(
        (&after["status"]["phase"], &after["metadata"]["generation"]),
        (&json!("Ready"), &json!(2))
    );
}

#[test]
fn a_dry_run_answers_and_changes_nothing() {
    let server = server();
    create(&server, MAPS, &map("a"));
    let before = server.resource_version();
    assert_eq!(post(&server, &format!("{MAPS}?dryRun=All"), &map("b")).0, 201);
    let (code, patched) = merge(
        &server,
        &format!("{MAPS}/a?dryRun=All"),
        &json!({ "data": { "x": "y" } }),
    );
    assert_eq!((code, &patched["data"]["x"]), (200, &json!("y")));
    assert_eq!(delete(&server, &format!("{MAPS}/a?dryRun=All"), &Value::Null).0, 200);
    assert_eq!(server.resource_version(), before);
    assert_gone(&server, &format!("{MAPS}/b"));
    assert!(read(&server, &format!("{MAPS}/a"))["data"].get("x").is_none());
    assert_eq!(post(&server, &format!("{MAPS}?dryRun=Some"), &map("c")).0, 422);
}

#[test]
fn unknown_fields_are_dropped_told_or_refused_as_the_client_wishes() {
    let server = server();
    let mut odd = pod("p");
    odd["spec"]["odd"] = 1.into();
    let (code, status) = post(&server, &format!("{PODS}?fieldValidation=Strict"), &odd);
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.odd\""
    );
    let request = http::Request::builder()
        .method("POST")
        .uri(PODS)
        .header("content-type", "application/json")
        .body(bytes::Bytes::from(odd.to_string()))
        .expect("the request is well formed");
    let response = server.handle(request);
    assert_eq!(
        response.headers()["warning"],
        "299 - \"unknown field \\\"spec.odd\\\"\""
    );
    assert!(read(&server, &format!("{PODS}/p"))["spec"].get("odd").is_none());
}

#[test]
fn every_kind_of_patch_has_its_media_type() {
    let server = server();
    let uri = "/apis/apps/v1/namespaces/default/deployments";
    let mut spec = pod("x")["spec"].clone();
    spec["containers"][0]["env"] = json!([{ "name": "A", "value": "1" }]);
    let deployment = json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "app": "x" } },
            "template": { "metadata": { "labels": { "app": "x" } }, "spec": spec },
        },
    });
    create(&server, uri, &deployment);
    let at = format!("{uri}/d");
    let patch = |media: &str, body: &Value| send(&server, "PATCH", &at, media, body);
    let (code, after) = patch(
        "application/strategic-merge-patch+json",
        &json!({ "spec": { "template": { "spec": { "containers": [{
            "name": "main", "env": [{ "name": "B", "value": "2" }],
        }] } } } }),
    );
    let container = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (code, container["env"].as_array().map(Vec::len), &container["image"]),
        (200, Some(2), &json!("app:1"))
    );
    let operations = json!([{ "op": "replace", "path": "/spec/replicas", "value": 4 }]);
    assert_eq!(
        patch("application/json-patch+json", &operations).1["spec"]["replicas"],
        4
    );
    let failing = json!([{ "op": "test", "path": "/spec/replicas", "value": 5 }]);
    assert_eq!(patch("application/json-patch+json", &failing).0, 422);
    assert_eq!(patch("application/json", &json!({})).0, 415);

    create(&server, DEFINITIONS, &widget_definition());
    create(&server, WIDGETS, &widget("w", 1));
    let strategic = send(
        &server,
        "PATCH",
        &format!("{WIDGETS}/w"),
        "application/strategic-merge-patch+json",
        &json!({ "spec": { "size": 2 } }),
    );
    assert_eq!(strategic.0, 415, "custom resources have no strategy");
}

#[test]
fn an_apply_creates_changes_and_respects_other_managers() {
    let server = server();
    let apply = |manager: &str, force: bool, value: &str| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": value },
        });
        let uri = format!("{MAPS}/a?fieldManager={manager}&force={force}");
        send(&server, "PATCH", &uri, "application/apply-patch+yaml", &object)
    };
    assert_eq!(apply("one", false, "1").0, 201);
    assert_eq!(apply("one", false, "2").0, 200);
    let (code, status) = apply("two", false, "3");
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"one\": .data.k"
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(apply("two", true, "3").1["data"]["k"], "3");
    let nameless = send(
        &server,
        "PATCH",
        &format!("{MAPS}/b"),
        "application/apply-patch+yaml",
        &map("b"),
    );
    assert_eq!(nameless.0, 422, "an apply has to say who applies");
}

#[test]
fn the_scale_of_anything_is_read_and_written_in_one_shape() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    create(&server, WIDGETS, &widget("w", 3));
    let scale = read(&server, &format!("{WIDGETS}/w/scale"));
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!(3))
    );
    let (code, scaled) = merge(
        &server,
        &format!("{WIDGETS}/w/scale"),
        &json!({ "spec": { "replicas": 5 } }),
    );
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(5)));
    let widget = read(&server, &format!("{WIDGETS}/w"));
    assert_eq!(
        (&widget["spec"]["size"], &widget["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(
        merge(
            &server,
            &format!("{WIDGETS}/w/scale"),
            &json!({ "spec": { "replicas": 11 } })
        )
        .0,
        422
    );
}

#[test]
fn identities_stay() {
    let server = server();
    create(
        &server,
        NODES,
        &json!({ "metadata": { "name": "n" }, "spec": { "providerID": "kwok://a" } }),
    );
    let (code, status) = merge(
        &server,
        &format!("{NODES}/n"),
        &json!({ "spec": { "providerID": "kwok://b" } }),
    );
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Node \"n\" is invalid: spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"
    );
    create(&server, PODS, &pod("p"));
    let at = format!("{PODS}/p");
    assert_eq!(
        merge(&server, &at, &json!({ "spec": { "nodeName": "n" } })).0,
        422,
        "only a binding binds"
    );
    let image = json!([{ "op": "replace", "path": "/spec/containers/0/image", "value": "app:2" }]);
    assert_eq!(
        send(&server, "PATCH", &at, "application/json-patch+json", &image).0,
        200
    );
    let toleration = json!([{ "op": "add", "path": "/spec/tolerations/-", "value": { "operator": "Exists" } }]);
    assert_eq!(
        send(&server, "PATCH", &at, "application/json-patch+json", &toleration).0,
        200
    );
    assert_eq!(merge(&server, &at, &json!({ "metadata": { "name": "q" } })).0, 400);
}

#[test]
fn a_resize_changes_the_resources_of_containers_and_nothing_else() {
    let server = server();
    create(&server, PODS, &pod("p"));
    let container = json!({ "name": "main", "image": "other", "resources": { "requests": { "cpu": "2000m" } } });
    let (code, after) = merge(
        &server,
        &format!("{PODS}/p/resize"),
        &json!({ "spec": { "containers": [container] } }),
    );
    let main = &after["spec"]["containers"][0];
    assert_eq!((code, &main["image"]), (200, &json!("app:1")));
    assert_eq!(main["resources"]["requests"]["cpu"], "2");
    assert_eq!(after["metadata"]["generation"], 2);
}

#[test]
fn events_are_shown_in_the_form_of_the_group_that_asks() {
    let server = server();
    let newer = json!({
        "metadata": { "name": "e" }, "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "Launched", "note": "done",
        "type": "Normal", "action": "Launch", "reportingController": "karpenter.sh/x", "reportingInstance": "x-0",
        "regarding": { "kind": "Node", "name": "n" },
    });
    create(&server, "/apis/events.k8s.io/v1/namespaces/default/events", &newer);
    let core = read(&server, "/api/v1/namespaces/default/events/e");
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"]),
        (&json!("done"), &json!("n"))
    );
    let again = read(&server, "/apis/events.k8s.io/v1/namespaces/default/events/e");
    assert_eq!(
        (&again["note"], &again["apiVersion"]),
        (&json!("done"), &json!("events.k8s.io/v1"))
    );
}
