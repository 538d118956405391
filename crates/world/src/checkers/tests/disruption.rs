//! The rules about nodes that go although nothing is wrong with them.

use std::time::Duration;

use super::*;

fn marked(name: &str, conditions: &[(&str, &str)]) -> Value {
    let mut marked = claim(name);
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, reason)| {
            json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        })
        .collect();
    marked["status"] = json!({"nodeName": format!("node-{name}"), "conditions": conditions});
    marked
}

#[tokio::test]
async fn budgets_limit_how_many_nodes_are_marked() {
    let initialized = ("Initialized", "Initialized");
    let empty = ("DisruptionReason", "Empty");
    let mut court = Court::new();
    let mut limited = pool(json!({}));
    limited["spec"]["disruption"] = json!({"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]});
    court.put::<NodePool>(limited);
    for name in ["a", "b", "c"] {
        court.put::<NodeClaim>(marked(name, &[initialized]));
    }
    court.put::<NodeClaim>(marked("a", &[initialized, empty]));
    assert!(court.complaints().is_empty());
    court.put::<NodeClaim>(marked("b", &[initialized, empty]));
    assert_eq!(
        court.complaints(),
        ["2 nodes of pool general are marked for disruption and 0 are down, and its budgets allow 1 of 3"]
    );
    court.put::<NodeClaim>(marked("b", &[initialized]));
    court.put::<NodeClaim>(marked(
        "a",
        &[initialized, empty, ("InstanceTerminating", "InstanceTerminating")],
    ));
    court.put::<NodeClaim>(marked("c", &[initialized, empty]));
    assert!(
        court.complaints().is_empty(),
        "what the cloud is ending does not count any more"
    );
}

#[tokio::test]
async fn budgets_that_cannot_be_read_allow_nothing() {
    let initialized = ("Initialized", "Initialized");
    let mut court = Court::new();
    let mut unreadable = pool(json!({}));
    let never = json!([{"nodes": "5", "schedule": "@never", "duration": "1h"}]);
    unreadable["spec"]["disruption"] = json!({"consolidateAfter": "0s", "budgets": never});
    court.put::<NodePool>(unreadable);
    court.put::<NodeClaim>(marked("a", &[initialized]));
    court.put::<NodeClaim>(marked("a", &[initialized, ("DisruptionReason", "Empty")]));
    assert_eq!(
        court.complaints(),
        ["1 nodes of pool general are marked for disruption and 0 are down, and its budgets allow 0 of 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_down_use_budgets_up() {
    let initialized = ("Initialized", "Initialized");
    let empty = ("DisruptionReason", "Empty");
    let mut court = Court::new();
    let mut limited = pool(json!({}));
    limited["spec"]["disruption"] = json!({"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]});
    court.put::<NodePool>(limited);
    for name in ["a", "b", "c"] {
        court.put::<NodeClaim>(marked(name, &[initialized]));
    }
    let mut down = node("node-a", "4");
    down["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    court.put::<Node>(down);
    court.put::<NodeClaim>(marked("b", &[initialized, empty]));
    assert!(court.complaints().is_empty(), "nobody has heard of it yet");
    court.put::<NodeClaim>(marked("b", &[initialized]));
    tokio::time::sleep(Duration::from_secs(180)).await;
    court.put::<NodeClaim>(marked("b", &[initialized, empty]));
    assert_eq!(
        court.complaints(),
        ["1 nodes of pool general are marked for disruption and 1 are down, and its budgets allow 1 of 3"]
    );
}

#[tokio::test]
async fn a_node_with_a_protected_pod_is_not_marked() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    let mut kept = pod("web", json!({"nodeName": "node-a"}));
    kept["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    kept["status"]["startTime"] = json!("2020-01-01T00:00:00Z");
    court.put::<Node>(node("node-a", "4"));
    court.put::<Pod>(kept);
    let initialized = ("Initialized", "Initialized");
    court.put::<NodeClaim>(marked("a", &[initialized]));
    court.complaints();
    court.put::<NodeClaim>(marked("a", &[initialized, ("DisruptionReason", "Underutilized")]));
    assert_eq!(
        court.complaints(),
        ["claim a is marked for disruption although pod web is protected"]
    );
}

#[tokio::test]
async fn protection_has_an_end_holds_against_drift_and_is_for_nodes_too() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    let protected = |name: &str, node: &str, how: &str| {
        let mut kept = pod(name, json!({"nodeName": node}));
        kept["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": how});
        kept["status"]["startTime"] = json!("2025-12-31T23:50:00Z");
        kept
    };
    let mut kept = node("node-c", "4");
    kept["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    court.put::<Node>(node("node-a", "4"));
    court.put::<Node>(node("node-b", "4"));
    court.put::<Node>(kept);
    court.put::<Pod>(protected("ended", "node-a", "5m"));
    court.put::<Pod>(protected("lasting", "node-b", "1h"));
    for name in ["a", "b", "c"] {
        court.put::<NodeClaim>(marked(name, &[]));
        court.put::<NodeClaim>(marked(name, &[("DisruptionReason", "Underutilized")]));
    }
    assert_eq!(
        court.complaints(),
        [
            "claim b is marked for disruption although pod lasting is protected",
            "claim c is marked for disruption although its node is protected",
        ]
    );
    let graced = |conditions: &[(&str, &str)]| {
        let mut graced = marked("b", conditions);
        graced["spec"]["terminationGracePeriod"] = json!("5m");
        graced
    };
    for (reason, complaints) in [("Drifted", 0), ("Underutilized", 1)] {
        court.put::<NodeClaim>(graced(&[]));
        court.put::<NodeClaim>(graced(&[("DisruptionReason", reason)]));
        assert_eq!(court.complaints().len(), complaints, "{reason}");
    }
    court.deed(&eviction("ended"));
    court.deed(&eviction("lasting"));
    assert_eq!(
        court.complaints(),
        ["pod default/lasting was evicted from node-b although it is protected"]
    );
}

#[tokio::test]
async fn what_is_being_replaced_does_not_count_against_limits() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({ "cpu": "6" })));
    let large = |name: &str, conditions: &[(&str, &str)]| {
        let mut large = marked(name, conditions);
        large["status"]["capacity"] = json!({ "cpu": "4" });
        large
    };
    court.put::<NodeClaim>(large("a", &[("DisruptionReason", "Drifted")]));
    court.put::<NodeClaim>(claim("b"));
    court.put::<NodeClaim>(large("a", &[]));
    court.put::<NodeClaim>(large("b", &[]));
    assert!(court.complaints().is_empty());
    court.put::<NodeClaim>(claim("c"));
    court.put::<NodeClaim>(large("c", &[]));
    assert_eq!(
        court.complaints(),
        [
            "pool general has 8 of cpu, its limit is 6",
            "pool general has 12 of cpu, its limit is 6",
        ],
        "what comes later counts everything"
    );
}

/// A pod of replica set `set`, ready on this node.
fn replica(name: &str, node: &str) -> Value {
    let mut replica = pod(name, json!({"nodeName": node}));
    replica["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": true}]);
    replica
}

fn eviction(name: &str) -> Deed {
    let body = json!({ "deleteOptions": { "preconditions": { "uid": format!("uid-{name}") } } });
    request(
        Method::POST,
        &format!("/api/v1/namespaces/default/pods/{name}/eviction"),
        body,
    )
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_moved_runs_again_in_time() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    court.put::<Node>(node("node-a", "4"));
    court.put::<Node>(node("node-b", "4"));
    for name in ["a", "b"] {
        court.put::<NodeClaim>(marked(name, &[("Initialized", "Initialized")]));
    }
    court.put::<NodeClaim>(marked(
        "a",
        &[("Initialized", "Initialized"), ("DisruptionReason", "Underutilized")],
    ));
    for (name, node) in [("moved", "node-a"), ("free", "node-b")] {
        court.put::<Pod>(replica(name, node));
        court.deed(&eviction(name));
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    court.put::<Pod>(replica("next", "node-b"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    court.put::<Node>(node("node-c", "4"));
    assert!(
        court.complaints().is_empty(),
        "it runs on, and nobody has moved the other one"
    );

    court.put::<Pod>(replica("again", "node-a"));
    court.deed(&eviction("again"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    court.put::<Node>(node("node-d", "4"));
    assert!(court.complaints().is_empty(), "there is still time");
    tokio::time::sleep(Duration::from_secs(100)).await;
    court.put::<Node>(node("node-e", "4"));
    assert_eq!(
        court.complaints(),
        [
            "pod default/again had to make room for a disruption at 2026-01-01T00:11:30Z and its workload still misses a pod"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn other_trouble_gives_moved_pods_more_time() {
    let mut court = Court::new();
    court.put::<Node>(node("node-a", "4"));
    court.put::<NodeClaim>(marked(
        "a",
        &[("Initialized", "Initialized"), ("DisruptionReason", "Drifted")],
    ));
    court.put::<Pod>(replica("moved", "node-a"));
    court.deed(&eviction("moved"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    court.put::<NodeClaim>(claim("failed"));
    court.remove::<NodeClaim>(claim("failed"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    court.put::<Node>(node("node-b", "4"));
    assert!(!court.complaints().iter().any(|what| what.starts_with("pod ")));
    tokio::time::sleep(Duration::from_secs(60)).await;
    court.put::<Node>(node("node-c", "4"));
    assert!(
        court
            .complaints()
            .iter()
            .any(|what| what.starts_with("pod default/moved had to make room"))
    );
}

/// A claim with a machine of this shape.
fn sold(name: &str, instance_type: &str, conditions: &[(&str, &str)]) -> Value {
    let mut sold = marked(name, conditions);
    let labels = json!({
        "karpenter.sh/nodepool": "general",
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "spot",
    });
    sold["metadata"]["labels"] = labels;
    sold
}

fn launching(name: &str, reason: &str) -> Deed {
    let body = json!({
        "involvedObject": { "kind": "NodeClaim", "name": name },
        "reason": "DisruptionLaunching", "message": format!("Launching NodeClaim: {reason}"),
    });
    request(Method::POST, "/api/v1/namespaces/default/events", body)
}

#[tokio::test(start_paused = true)]
async fn what_takes_a_nodes_place_is_cheaper() {
    const SMALL: &str = "c-2x-amd64-linux";
    const LARGE: &str = "c-8x-amd64-linux";
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    let underutilized = ("DisruptionReason", "Underutilized");
    let mut exchange = |gives: &str, gets: &str, reason: &str, number: u32| {
        let (old, new) = (format!("old-{number}"), format!("new-{number}"));
        court.put::<NodeClaim>(sold(&old, gives, &[]));
        court.put::<NodeClaim>(sold(&old, gives, &[underutilized]));
        court.put::<NodeClaim>(claim(&new));
        court.deed(&launching(&new, reason));
        court.put::<NodeClaim>(sold(&new, gets, &[]));
        court.complaints()
    };
    assert!(exchange(LARGE, SMALL, "Underutilized", 1).is_empty());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        exchange(SMALL, SMALL, "Underutilized", 2),
        [
            "old-2 of $0.0380 an hour is exchanged for new-2 of $0.0380; the last of them is c-2x-amd64-linux/test-zone-a/spot"
        ]
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        exchange(SMALL, LARGE, "Drifted", 3).is_empty(),
        "drift does not ask for prices"
    );
    assert_eq!(exchange(SMALL, LARGE, "Underutilized", 4).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_come_to_rest_stays_at_rest() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    for name in ["a", "b", "c", "d"] {
        court.put::<NodeClaim>(marked(name, &[("Initialized", "Initialized")]));
    }
    court.complaints();
    let empty = ("DisruptionReason", "Empty");
    tokio::time::sleep(Duration::from_secs(50 * 60)).await;
    court.put::<NodeClaim>(marked("a", &[empty]));
    tokio::time::sleep(Duration::from_secs(50 * 60)).await;
    court.put::<NodeClaim>(marked("b", &[empty]));
    assert!(court.complaints().is_empty(), "one thing leads to another");
    tokio::time::sleep(Duration::from_secs(90 * 60)).await;
    let mut changed = pool(json!({}));
    changed["metadata"]["generation"] = 2.into();
    court.put::<NodePool>(changed);
    court.put::<NodeClaim>(marked("c", &[empty]));
    assert!(court.complaints().is_empty(), "somebody has changed a pool");
    tokio::time::sleep(Duration::from_secs(61 * 60)).await;
    court.put::<NodeClaim>(marked("d", &[empty]));
    assert_eq!(
        court.complaints(),
        ["there was rest for 1h 1m, and nothing has ended it"]
    );
}

#[tokio::test(start_paused = true)]
async fn consolidation_does_not_go_on_for_ever() {
    let mut court = Court::new();
    court.put::<NodePool>(pool(json!({})));
    for number in 0..8 {
        let name = format!("claim-{number}");
        court.put::<NodeClaim>(marked(&name, &[]));
        assert!(court.complaints().is_empty(), "{number}");
        court.put::<NodeClaim>(marked(&name, &[("DisruptionReason", "Underutilized")]));
        tokio::time::sleep(Duration::from_secs(30 * 60)).await;
        if number == 7 {
            assert_eq!(
                court.complaints(),
                ["nothing has changed for 3h 30m, and consolidation still goes on"]
            );
        }
    }
}
