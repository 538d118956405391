//! Pods: what they are given, where they are bound, and when they may be evicted.

mod support;

use kube_mem::ApiServer;
use serde_json::{Value, json};
use support::*;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

#[test]
fn a_pod_gets_the_defaults_that_controllers_rely_on() {
    let server = server();
    let created = create(&server, PODS, &pod("p"));
    let spec = &created["spec"];
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(spec["schedulerName"], "default-scheduler");
    assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(
        (&spec["priority"], &spec["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    let keys: Vec<&Value> = spec["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|t| &t["key"])
        .collect();
    assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    assert_eq!(
        created["status"],
        json!({ "phase": "Pending", "qosClass": "BestEffort" })
    );
    assert_eq!(created["metadata"]["generation"], 1);
}

#[test]
fn requests_follow_limits_and_quantities_are_canonical() {
    let server = server();
    for (name, resources, requests, class) in [
        (
            "a",
            json!({ "limits": { "cpu": "1000m", "memory": "1024Mi" } }),
            json!({ "cpu": "1", "memory": "1Gi" }),
            "Guaranteed",
        ),
        (
            "b",
            json!({ "requests": { "cpu": "0.5" } }),
            json!({ "cpu": "500m" }),
            "Burstable",
        ),
        (
            "c",
            json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "2", "memory": "1Gi" } }),
            json!({ "cpu": "1", "memory": "1Gi" }),
            "Burstable",
        ),
    ] {
        let mut asked = pod(name);
        asked["spec"]["containers"][0]["resources"] = resources;
        let created = create(&server, PODS, &asked);
        assert_eq!(
            created["spec"]["containers"][0]["resources"]["requests"], requests,
            "{name}"
        );
        assert_eq!(created["status"]["qosClass"], class, "{name}");
    }
}

#[test]
fn priority_comes_from_a_class_that_exists() {
    let server = server();
    let mut critical = pod("critical");
    critical["spec"]["priorityClassName"] = "system-node-critical".into();
    assert_eq!(create(&server, PODS, &critical)["spec"]["priority"], 2_000_001_000);
    let mut unknown = pod("unknown");
    unknown["spec"]["priorityClassName"] = "nope".into();
    let (code, status) = post(&server, PODS, &unknown);
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "pods \"unknown\" is forbidden: no PriorityClass with name nope was found"
    );
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    create(
        &server,
        classes,
        &json!({ "metadata": { "name": "usual" }, "value": 7, "globalDefault": true }),
    );
    let usual = create(&server, PODS, &pod("usual"));
    assert_eq!(
        (&usual["spec"]["priority"], &usual["spec"]["priorityClassName"]),
        (&json!(7), &json!("usual"))
    );
}

#[test]
fn a_malformed_pod_is_refused_field_by_field() {
    let server = server();
    let mut bad = pod("p");
    bad["spec"]["containers"] = json!([{ "name": "A_", "image": "x" }, { "name": "b" }]);
    bad["spec"]["restartPolicy"] = "Sometimes".into();
    let (code, status) = post(&server, PODS, &bad);
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let fields: Vec<&Value> = status["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| &cause["field"])
        .collect();
    assert_eq!(
        fields,
        [
            "spec.containers[0].name",
            "spec.containers[1].image",
            "spec.restartPolicy"
        ]
    );
}

#[test]
fn a_binding_binds_once_and_brings_the_nodes_topology() {
    let server = server();
    let labels = json!({ "topology.kubernetes.io/zone": "a", "other": "x" });
    create(
        &server,
        NODES,
        &json!({ "metadata": { "name": "n", "labels": labels } }),
    );
    create(&server, PODS, &pod("p"));
    let binding = json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n" } });
    let (code, status) = post(&server, &format!("{PODS}/p/binding"), &binding);
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let bound = read(&server, &format!("{PODS}/p"));
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(
        bound["metadata"]["labels"],
        json!({ "app": "p", "topology.kubernetes.io/zone": "a" })
    );
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, status) = post(&server, &format!("{PODS}/p/binding"), &binding);
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\""
    );
}

#[test]
fn a_gated_pod_waits_and_can_only_be_narrowed() {
    let server = server();
    let mut gated = pod("p");
    gated["spec"]["schedulingGates"] = json!([{ "name": "example.com/wait" }]);
    let created = create(&server, PODS, &gated);
    assert_eq!(created["status"]["conditions"][0]["reason"], "SchedulingGated");
    let binding = json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n" } });
    assert_eq!(post(&server, &format!("{PODS}/p/binding"), &binding).0, 409);
    let p = format!("{PODS}/p");
    assert_eq!(
        merge(&server, &p, &json!({ "spec": { "nodeSelector": { "a": "b" } } })).0,
        200
    );
    assert_eq!(
        merge(&server, &p, &json!({ "spec": { "nodeSelector": { "a": "c" } } })).0,
        422
    );
    assert_eq!(
        merge(&server, &p, &json!({ "spec": { "schedulingGates": null } })).0,
        200
    );
    assert_eq!(post(&server, &format!("{PODS}/p/binding"), &binding).0, 201);
}

/// A running, ready pod behind a budget with the given status.
fn guarded(budget: &Value) -> ApiServer {
    let server = server();
    create(&server, PODS, &bound_pod("p", "n"));
    let ready = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    assert_eq!(merge(&server, &format!("{PODS}/p/status"), &ready).0, 200);
    create(
        &server,
        BUDGETS,
        &json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "p" } } } }),
    );
    assert_eq!(
        merge(&server, &format!("{BUDGETS}/b/status"), &json!({ "status": budget })).0,
        200
    );
    server
}

fn evict(server: &ApiServer, query: &str, options: Value) -> Answer {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" }, "deleteOptions": options,
    });
    post(server, &format!("{PODS}/p/eviction{query}"), &eviction)
}

fn budget(allowed: i64) -> Value {
    json!({
        "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
    })
}

#[test]
fn an_eviction_is_charged_to_the_budget() {
    let server = guarded(&budget(1));
    let (code, status) = evict(&server, "", Value::Null);
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let pod = read(&server, &format!("{PODS}/p"));
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let marks: Vec<&Value> = pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|condition| &condition["type"])
        .collect();
    assert_eq!(marks, ["Ready", "DisruptionTarget"]);
    let status = read(&server, &format!("{BUDGETS}/b"))["status"].clone();
    assert_eq!(status["disruptionsAllowed"], 0);
    assert_eq!(status["disruptedPods"], json!({ "p": "2026-01-01T00:00:00Z" }));
}

#[test]
fn a_spent_budget_refuses_with_its_reason() {
    let (code, status) = evict(&guarded(&budget(0)), "", Value::Null);
    assert_eq!((code, &status["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(
        status["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(
        status["details"]["causes"],
        json!([{
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }])
    );
}

#[test]
fn a_budget_that_its_controller_has_not_seen_is_not_trusted() {
    let mut unseen = budget(1);
    unseen["observedGeneration"] = 0.into();
    let server = guarded(&unseen);
    let (code, status) = evict(&server, "", Value::Null);
    assert_eq!((code, &status["details"]["retryAfterSeconds"]), (429, &json!(10)));
}

#[test]
fn two_budgets_for_one_pod_are_an_error() {
    let server = guarded(&budget(1));
    create(
        &server,
        BUDGETS,
        &json!({ "metadata": { "name": "c" }, "spec": { "minAvailable": 1, "selector": {} } }),
    );
    let (code, status) = evict(&server, "", Value::Null);
    assert_eq!(code, 500);
    assert_eq!(
        status["message"],
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
    read(&server, &format!("{PODS}/p"));
}

#[test]
fn a_budget_without_a_selector_guards_nobody_and_an_empty_one_everybody() {
    for (selector, code) in [(Value::Null, 201), (json!({}), 429)] {
        let server = guarded(&budget(0));
        let spec = json!({ "spec": { "selector": null } });
        merge(&server, &format!("{BUDGETS}/b"), &spec);
        if !selector.is_null() {
            merge(
                &server,
                &format!("{BUDGETS}/b"),
                &json!({ "spec": { "selector": selector } }),
            );
        }
        let seen = json!({ "status": { "observedGeneration": 9 } });
        merge(&server, &format!("{BUDGETS}/b/status"), &seen);
        assert_eq!(evict(&server, "", Value::Null).0, code, "{selector}");
    }
}

#[test]
fn an_unhealthy_pod_goes_for_free_if_the_budget_is_met_or_does_not_care() {
    let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    for (name, status, policy, code) in [
        (
            "the budget is met",
            json!({ "currentHealthy": 2, "desiredHealthy": 1 }),
            Value::Null,
            201,
        ),
        (
            "it is not",
            json!({ "currentHealthy": 0, "desiredHealthy": 1 }),
            Value::Null,
            429,
        ),
        (
            "it does not care",
            json!({ "currentHealthy": 0, "desiredHealthy": 1 }),
            json!("AlwaysAllow"),
            201,
        ),
    ] {
        let server = guarded(&budget(0));
        merge(&server, &format!("{PODS}/p/status"), &unready);
        merge(
            &server,
            &format!("{BUDGETS}/b"),
            &json!({ "spec": { "unhealthyPodEvictionPolicy": policy } }),
        );
        merge(&server, &format!("{BUDGETS}/b/status"), &json!({ "status": status }));
        assert_eq!(evict(&server, "", Value::Null).0, code, "{name}");
        assert_eq!(
            read(&server, &format!("{BUDGETS}/b"))["status"]["disruptionsAllowed"],
            0
        );
    }
}

#[test]
fn pods_that_are_not_running_need_no_budget() {
    for phase in ["Pending", "Succeeded", "Failed"] {
        let server = guarded(&budget(0));
        merge(
            &server,
            &format!("{PODS}/p/status"),
            &json!({ "status": { "phase": phase } }),
        );
        assert_eq!(evict(&server, "", Value::Null).0, 201, "{phase}");
    }
}

#[test]
fn a_dry_run_asks_the_budget_and_takes_nothing() {
    let server = guarded(&budget(1));
    assert_eq!(evict(&server, "?dryRun=All", Value::Null).0, 201);
    assert_eq!(
        read(&server, &format!("{BUDGETS}/b"))["status"]["disruptionsAllowed"],
        1
    );
    assert!(
        read(&server, &format!("{PODS}/p"))["metadata"]
            .get("deletionTimestamp")
            .is_none()
    );
    assert_eq!(evict(&guarded(&budget(0)), "?dryRun=All", Value::Null).0, 429);
}

#[test]
fn an_eviction_keeps_to_its_delete_options() {
    let server = guarded(&budget(2));
    assert_eq!(
        evict(&server, "", json!({ "preconditions": { "uid": "another" } })).0,
        409
    );
    assert_eq!(evict(&server, "", json!({ "gracePeriodSeconds": 7 })).0, 201);
    let pod = read(&server, &format!("{PODS}/p"));
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
}

#[test]
fn logs_are_refused_politely_and_access_is_granted() {
    let server = server();
    create(&server, PODS, &pod("p"));
    assert_eq!(get(&server, &format!("{PODS}/p/log")).0, 400);
    let review = json!({ "spec": { "resourceAttributes": { "verb": "delete", "resource": "nodes" } } });
    let answer = create(
        &server,
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        &review,
    );
    assert_eq!(answer["status"]["allowed"], true);
    create(
        &server,
        "/api/v1/namespaces/default/serviceaccounts",
        &json!({ "metadata": { "name": "sa" } }),
    );
    let token = create(
        &server,
        "/api/v1/namespaces/default/serviceaccounts/sa/token",
        &json!({ "spec": {} }),
    );
    assert_eq!(token["status"]["expirationTimestamp"], "2026-01-01T01:00:00Z");
}
