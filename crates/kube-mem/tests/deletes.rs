//! Deletes: preconditions, finalizers, grace, owners, namespaces.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

/// A config map that is owned by another object.
fn owned(name: &str, owner: &Value, block: bool) -> Value {
    let mut map = map(name);
    map["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block,
    }]);
    map
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

#[test]
fn a_delete_answers_with_a_status_or_with_the_object_by_kind() {
    let server = server();
    let created = create(&server, MAPS, &map("a"));
    let (code, status) = delete(&server, &at("a"), &Value::Null);
    assert_eq!(code, 200);
    assert_eq!(
        status,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": { "name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"] },
        })
    );
    create(&server, PODS, &pod("p"));
    assert_eq!(delete(&server, &format!("{PODS}/p"), &Value::Null).1["kind"], "Pod");
    assert_eq!(delete(&server, &at("a"), &Value::Null).0, 404);
}

#[test]
fn preconditions_name_the_object_that_is_meant() {
    let server = server();
    let created = create(&server, MAPS, &map("a"));
    let wrong = json!({ "preconditions": { "uid": "another" } });
    let (code, status) = delete(&server, &at("a"), &wrong);
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    let stale = json!({ "preconditions": { "resourceVersion": "1" } });
    assert_eq!(delete(&server, &at("a"), &stale).0, 409);
    let right = json!({ "preconditions": {
        "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"],
    } });
    assert_eq!(delete(&server, &at("a"), &right).0, 200);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let server = server();
    create(&server, DEFINITIONS, &widget_definition());
    let mut widget = widget("w", 1);
    widget["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    create(&server, WIDGETS, &widget);
    let w = format!("{WIDGETS}/w");
    let mut watch = watch(&server, &format!("{WIDGETS}?watch=true"));
    assert_eq!(watch.told().await, "ADDED w");
    tokio::time::sleep(Duration::from_secs(5)).await;

    let (code, deleting) = delete(&server, &w, &Value::Null);
    assert_eq!(code, 200);
    assert_eq!(deleting["metadata"]["deletionTimestamp"], "2026-01-01T00:00:05Z");
    assert_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(
        deleting["metadata"]["generation"], 2,
        "a deletion is a change of what is wanted"
    );
    let (_, again) = delete(&server, &w, &Value::Null);
    assert_eq!(
        again["metadata"]["resourceVersion"],
        deleting["metadata"]["resourceVersion"]
    );

    let finalizers = |list: Value| json!({ "metadata": { "finalizers": list } });
    let (code, status) = merge(
        &server,
        &w,
        &finalizers(json!(["example.com/one", "example.com/three"])),
    );
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    assert_eq!(merge(&server, &w, &finalizers(json!(["example.com/two"]))).0, 200);
    assert_eq!(
        merge(&server, &w, &json!({ "spec": { "size": 2 } })).0,
        200,
        "it still lives"
    );
    assert_eq!(merge(&server, &w, &finalizers(Value::Null)).0, 200);
    assert_gone(&server, &w);
    for expected in ["MODIFIED w", "MODIFIED w", "MODIFIED w", "DELETED w"] {
        assert_eq!(watch.told().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_stays_for_its_grace_until_the_kubelet_lets_go() {
    let server = server();
    create(&server, PODS, &bound_pod("p", "n"));
    let p = format!("{PODS}/p");
    let (code, going) = delete(&server, &p, &Value::Null);
    assert_eq!(
        (code, &going["metadata"]["deletionGracePeriodSeconds"]),
        (200, &json!(30))
    );
    assert_eq!(going["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(going["metadata"]["generation"], 2);

    let (_, longer) = delete(&server, &p, &json!({ "gracePeriodSeconds": 60 }));
    assert_eq!(
        longer["metadata"]["deletionGracePeriodSeconds"], 30,
        "a grace can only be shortened"
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (_, shorter) = delete(&server, &p, &json!({ "gracePeriodSeconds": 15 }));
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2026-01-01T00:00:15Z");
    let (_, expired) = delete(&server, &p, &json!({ "gracePeriodSeconds": 5 }));
    assert_eq!(
        expired["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z",
        "not into the past"
    );
    assert_eq!(expired["metadata"]["deletionGracePeriodSeconds"], 1);

    assert_eq!(delete(&server, &p, &json!({ "gracePeriodSeconds": 0 })).0, 200);
    assert_gone(&server, &p);
}

#[tokio::test(start_paused = true)]
async fn pods_that_run_nowhere_or_no_longer_go_at_once() {
    let server = server();
    let mut watch = watch(&server, &format!("{PODS}?watch=true"));
    create(&server, PODS, &pod("pending"));
    delete(&server, &format!("{PODS}/pending"), &Value::Null);
    assert_gone(&server, &format!("{PODS}/pending"));
    for expected in ["ADDED pending", "MODIFIED pending", "DELETED pending"] {
        assert_eq!(watch.told().await, expected);
    }
    create(&server, PODS, &bound_pod("done", "n"));
    merge(
        &server,
        &format!("{PODS}/done/status"),
        &json!({ "status": { "phase": "Succeeded" } }),
    );
    delete(&server, &format!("{PODS}/done"), &Value::Null);
    assert_gone(&server, &format!("{PODS}/done"));
}

#[test]
fn a_pod_with_a_finalizer_outlives_its_grace() {
    let server = server();
    let mut pod = bound_pod("p", "n");
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&server, PODS, &pod);
    let p = format!("{PODS}/p");
    delete(&server, &p, &json!({ "gracePeriodSeconds": 0 }));
    assert_eq!(read(&server, &p)["metadata"]["deletionGracePeriodSeconds"], 0);
    merge(&server, &p, &json!({ "metadata": { "finalizers": null } }));
    assert_gone(&server, &p);
}

#[test]
fn what_nobody_owns_any_more_is_collected_all_the_way_down() {
    let server = server();
    let grandparent = create(&server, MAPS, &map("grandparent"));
    let parent = create(&server, MAPS, &owned("parent", &grandparent, false));
    create(&server, MAPS, &owned("child", &parent, false));
    create(&server, MAPS, &map("stranger"));
    delete(&server, &at("grandparent"), &Value::Null);
    for name in ["grandparent", "parent", "child"] {
        assert_gone(&server, &at(name));
    }
    read(&server, &at("stranger"));
}

#[test]
fn a_second_owner_keeps_an_object_and_only_the_reference_goes() {
    let server = server();
    let first = create(&server, MAPS, &map("first"));
    let second = create(&server, MAPS, &map("second"));
    let mut child = owned("child", &first, false);
    let reference = owned("x", &second, false)["metadata"]["ownerReferences"][0].clone();
    child["metadata"]["ownerReferences"]
        .as_array_mut()
        .expect("a list")
        .push(reference);
    create(&server, MAPS, &child);
    delete(&server, &at("first"), &Value::Null);
    let kept = read(&server, &at("child"));
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    delete(&server, &at("second"), &Value::Null);
    assert_gone(&server, &at("child"));
}

#[test]
fn an_object_whose_owner_never_was_does_not_stay() {
    let server = server();
    let ghost = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ghost", "uid": "0" } });
    create(&server, MAPS, &owned("child", &ghost, false));
    assert_gone(&server, &at("child"));
}

#[test]
fn a_foreground_deletion_waits_for_the_dependents_that_block_it() {
    let server = server();
    let owner = create(&server, MAPS, &map("owner"));
    let mut blocking = owned("blocking", &owner, true);
    blocking["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&server, MAPS, &blocking);
    create(&server, MAPS, &owned("free", &owner, true));
    let (code, waiting) = delete(&server, &at("owner"), &json!({ "propagationPolicy": "Foreground" }));
    assert_eq!(
        (code, &waiting["metadata"]["finalizers"]),
        (200, &json!(["foregroundDeletion"]))
    );
    assert_gone(&server, &at("free"));
    read(&server, &at("owner"));
    assert!(read(&server, &at("blocking"))["metadata"]["deletionTimestamp"].is_string());
    merge(&server, &at("blocking"), &json!({ "metadata": { "finalizers": null } }));
    assert_gone(&server, &at("blocking"));
    assert_gone(&server, &at("owner"));
}

#[test]
fn a_dependent_that_does_not_block_is_not_waited_for() {
    let server = server();
    let owner = create(&server, MAPS, &map("owner"));
    let mut slow = owned("slow", &owner, false);
    slow["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&server, MAPS, &slow);
    delete(&server, &at("owner"), &json!({ "propagationPolicy": "Foreground" }));
    assert_gone(&server, &at("owner"));
    assert!(read(&server, &at("slow"))["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn orphans_stay_without_their_owner() {
    let server = server();
    let owner = create(&server, MAPS, &map("owner"));
    create(&server, MAPS, &owned("child", &owner, true));
    delete(&server, &at("owner"), &json!({ "propagationPolicy": "Orphan" }));
    assert_gone(&server, &at("owner"));
    assert!(read(&server, &at("child"))["metadata"].get("ownerReferences").is_none());
}

#[test]
fn the_pods_of_a_job_stay_unless_the_deleter_says_otherwise() {
    let server = server();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let mut spec = pod("x")["spec"].clone();
    spec["restartPolicy"] = "Never".into();
    for (name, options, stays) in [
        ("plain", Value::Null, true),
        ("background", json!({ "propagationPolicy": "Background" }), false),
    ] {
        let job = json!({ "metadata": { "name": name }, "spec": { "template": { "spec": spec } } });
        let job = create(&server, jobs, &job);
        create(&server, MAPS, &owned(name, &job, true));
        delete(&server, &format!("{jobs}/{name}"), &options);
        assert_gone(&server, &format!("{jobs}/{name}"));
        assert_eq!(get(&server, &at(name)).0 == 200, stays, "{name}");
    }
}

#[test]
fn a_namespace_takes_its_contents_along_and_waits_for_them() {
    let server = server();
    create(
        &server,
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "team" } }),
    );
    let pods = "/api/v1/namespaces/team/pods";
    create(&server, "/api/v1/namespaces/team/configmaps", &map("a"));
    create(&server, pods, &bound_pod("p", "n"));
    let (code, going) = delete(&server, "/api/v1/namespaces/team", &Value::Null);
    assert_eq!((code, &going["status"]["phase"]), (200, &json!("Terminating")));
    assert_gone(&server, "/api/v1/namespaces/team/configmaps/a");
    assert!(read(&server, &format!("{pods}/p"))["metadata"]["deletionTimestamp"].is_string());
    let (code, status) = post(&server, "/api/v1/namespaces/team/configmaps", &map("b"));
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    assert_eq!(
        status["message"],
        "configmaps \"b\" is forbidden: unable to create new content in namespace team because it is being terminated"
    );
    delete(&server, &format!("{pods}/p"), &json!({ "gracePeriodSeconds": 0 }));
    assert_gone(&server, "/api/v1/namespaces/team");
}

#[test]
fn the_cluster_keeps_its_own_namespaces() {
    let server = server();
    let (code, status) = delete(&server, "/api/v1/namespaces/default", &Value::Null);
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_an_hour_after_they_were_written() {
    let server = server();
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| json!({ "metadata": { "name": name }, "involvedObject": { "kind": "Node", "name": "n" }, "reason": "R" });
    create(&server, events, &event("old"));
    create(&server, events, &event("refreshed"));
    tokio::time::sleep(Duration::from_secs(40 * 60)).await;
    merge(&server, &format!("{events}/refreshed"), &json!({ "count": 2 }));
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    create(&server, events, &event("new"));
    assert_gone(&server, &format!("{events}/old"));
    read(&server, &format!("{events}/refreshed"));
}
