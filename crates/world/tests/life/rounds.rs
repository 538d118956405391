//! When pods are looked at, and what is counted of it.

use serde_json::json;
use world::{
    story::{LaunchesFail, deployment, minutes, pods, pool, seconds, that},
    world::World,
};

use super::web;

const DECISIONS: &str = "karpenter_pods_scheduling_decision_duration_seconds_count";

/// SC15.1.5
#[test]
fn one_pod_brings_one_node_and_one_decision() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(1));
    world.run_until(pods("web").running(1), minutes(5));
    assert_eq!(world.scene().nodes.len(), 1);
    assert_eq!(world.counted(DECISIONS, ""), 1.0);
}

/// SC15.1.11: what a claim without an instance will hold is not known, so nothing is planned beside it.
#[test]
fn no_round_is_made_while_a_launch_is_under_way() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(1));
    world.inject(LaunchesFail(1.0));
    let claims = |count| {
        that(&format!("there are {count} claims"), move |moment| {
            moment.scene.node_claims.len() == count
        })
    };
    world.run_until(claims(1), minutes(1));
    world.create(deployment("huge").replicas(1).asks("100 cpu, 100Gi"));
    world.run_for(seconds(60));
    world.expect(claims(1));
    world.inject(LaunchesFail(0.0));
    world.run_until(claims(2), minutes(2));
}

/// SC15.1.12: a pod that keeps away from every pool has its decision, too, and waits for none.
#[test]
fn a_pod_that_wants_none_of_our_nodes_is_counted_and_decided() {
    let away = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "karpenter.sh/nodepool", "operator": "DoesNotExist" }] }
    ] } } });
    let mut world = World::seeded(7)
        .pool(pool("general"))
        .workload(web(1).pod("affinity", away));
    world.run_for(minutes(2));
    assert!(world.scene().nodes.is_empty());
    assert_eq!(world.counted("karpenter_scheduler_ignored_pods_count", ""), 1.0);
    assert_eq!(world.counted(DECISIONS, ""), 1.0);
    let undecided = "karpenter_pods_provisioning_scheduling_undecided_time_seconds";
    assert_eq!(world.counted(undecided, "web"), 0.0);
}
