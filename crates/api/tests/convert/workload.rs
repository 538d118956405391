use api::convert;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use model::snapshot::DisruptionBudget;
use serde_json::{Value, json};

use crate::{fields, object};

fn daemon_set() -> DaemonSet {
    object(json!({
        "metadata": { "name": "logs", "namespace": "system" },
        "spec": {
            "selector": {},
            "template": {
                "metadata": { "labels": { "app": "logs" } },
                "spec": {
                    "containers": [{ "name": "a", "resources": {
                        "limits": { "cpu": "2", "memory": "1Gi" },
                        "requests": { "cpu": "1" },
                    } }],
                    "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            { "matchExpressions": [{ "key": "gpu", "operator": "Exists" }] },
                        ],
                    } } },
                },
            },
        },
    }))
}

/// SC15.7.10
#[test]
fn a_daemon_asks_for_its_limits_where_its_template_requests_nothing() {
    let daemon = convert::daemon(&daemon_set()).strict().expect("all fields can be read");
    assert_eq!(daemon.key.to_string(), "system/logs");
    assert_eq!(daemon.shape.requests.get("cpu").to_string(), "1");
    assert_eq!(daemon.shape.requests.get("memory").to_string(), "1Gi");
}

#[test]
fn a_running_daemon_pod_shows_the_requests_and_the_template_the_affinity() {
    let pod: Pod = object(json!({
        "metadata": { "name": "logs-x", "namespace": "system" },
        "spec": {
            "nodeName": "n",
            "containers": [{ "name": "a", "resources": { "requests": { "cpu": "3" } } }],
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] },
                ],
            } } },
        },
    }));
    let daemon = convert::daemon_like(&daemon_set(), &pod)
        .strict()
        .expect("all fields can be read");
    assert_eq!(daemon.shape.requests.get("cpu").to_string(), "3");
    assert_eq!(
        daemon.shape.affinity.required_nodes[0].requirements[0].to_string(),
        "gpu Exists"
    );
}

fn budget(spec: Value, allowed: i32) -> DisruptionBudget {
    let written: PodDisruptionBudget = object(json!({
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": spec,
        "status": { "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1 },
    }));
    convert::disruption_budget(&written)
        .strict()
        .expect("all fields can be read")
}

#[test]
fn a_budget_blocks_for_good_when_its_spec_can_never_allow_a_disruption() {
    for (spec, blocking) in [
        (json!({ "maxUnavailable": 0 }), true),
        (json!({ "maxUnavailable": "0%" }), true),
        (json!({ "minAvailable": "100%" }), true),
        (json!({ "maxUnavailable": 1 }), false),
        (json!({ "minAvailable": 100 }), false),
    ] {
        assert_eq!(budget(spec.clone(), 0).fully_blocking, blocking, "{spec}");
    }
    assert_eq!(budget(json!({}), 2).disruptions_allowed, 2);
    assert!(budget(json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" }), 0).unhealthy_always_allowed);
}

#[test]
fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
    assert_eq!(budget(json!({}), 0).selector, None);
    assert!(
        budget(json!({ "selector": {} }), 0)
            .selector
            .is_some_and(|selector| selector.requirements.is_empty())
    );
}

#[test]
fn a_selector_that_cannot_be_read_selects_nothing_and_is_named() {
    let written: PodDisruptionBudget = object(json!({
        "metadata": {},
        "spec": { "selector": { "matchExpressions": [{ "key": "a", "operator": "Near", "values": ["b"] }] } },
    }));
    let parsed = convert::disruption_budget(&written);
    assert_eq!(fields(&parsed), ["spec.selector.matchExpressions[0]"]);
    assert_eq!(parsed.value.selector, None);
}
