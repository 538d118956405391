use api::convert;
use api::v1::NodeClaim;
use k8s_openapi::api::core::v1::Node;
use model::{ClaimPhase, PoolName, ProviderId};
use serde_json::{Value, json};

use crate::{fields, object};

fn claim(conditions: &[(&str, &str)]) -> Value {
    let condition = |(type_, status): &(&str, &str)| {
        json!({
            "type": type_, "status": status, "reason": type_, "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    json!({
        "metadata": { "name": "general-1", "labels": { "karpenter.sh/nodepool": "general" } },
        "spec": {
            "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
            "requirements": [{ "key": "a", "operator": "In", "values": ["b"] }],
            "resources": { "requests": { "cpu": "1" } },
            "expireAfter": "720h",
        },
        "status": {
            "providerID": "kwok://general-1",
            "capacity": { "cpu": "4" },
            "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
        },
    })
}

#[test]
fn a_claim_is_as_far_as_its_furthest_true_condition() {
    for (conditions, phase) in [
        (&[][..], ClaimPhase::Pending),
        (&[("Launched", "Unknown")], ClaimPhase::Pending),
        (&[("Launched", "True")], ClaimPhase::Launched),
        (&[("Launched", "True"), ("Registered", "True")], ClaimPhase::Registered),
        (
            &[("Launched", "True"), ("Registered", "True"), ("Initialized", "True")],
            ClaimPhase::Initialized,
        ),
    ] {
        assert_eq!(
            convert::claim(&object::<NodeClaim>(claim(conditions))).value.phase,
            phase
        );
    }
}

#[test]
fn a_claim_is_read_with_its_pool_instance_and_marks() {
    let written = claim(&[
        ("Launched", "True"),
        ("Initialized", "True"),
        ("Drifted", "True"),
        ("Consolidatable", "False"),
    ]);
    let claim = convert::claim(&object::<NodeClaim>(written))
        .strict()
        .expect("all fields can be read");
    assert_eq!(claim.pool.as_ref().map(PoolName::as_str), Some("general"));
    assert_eq!(
        claim.provider_id.as_ref().map(ProviderId::as_str),
        Some("kwok://general-1")
    );
    assert_eq!(claim.drifted.as_deref(), Some("Drifted"));
    assert!(!claim.consolidatable);
    assert!(claim.initialized_at.is_some());
    assert_eq!(claim.requests.get("cpu").to_string(), "1");
    assert_eq!(convert::to_requirements(&claim.requirements)[0].key, "a");
}

#[test]
fn a_node_is_read_with_its_taints_and_amounts() {
    let node: Node = object(json!({
        "metadata": { "name": "n", "labels": { "karpenter.sh/registered": "true" } },
        "spec": { "providerID": "kwok://n", "taints": [{ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }] },
        "status": {
            "capacity": { "cpu": "4", "memory": "16Gi" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    }));
    let facts = convert::node(&node).strict().expect("all fields can be read");
    assert!(facts.ready);
    assert_eq!(facts.taints[0].to_string(), "karpenter.sh/disrupted:NoSchedule");
    assert_eq!(facts.capacity.get("memory").to_string(), "16Gi");
}

#[test]
fn a_node_with_an_unreadable_amount_keeps_the_others() {
    let node: Node = object(json!({
        "metadata": { "name": "n" },
        "status": { "allocatable": { "cpu": "4", "memory": "much" } },
    }));
    let parsed = convert::node(&node);
    assert_eq!(fields(&parsed), ["status.allocatable.memory"]);
    assert_eq!(parsed.value.allocatable.get("cpu").to_string(), "4");
}
