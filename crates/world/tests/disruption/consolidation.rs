//! Nodes that cost too much.

use model::CapacityType;
use serde_json::{Value, json};
use world::{
    story::{HOSTNAME, Pool, deployment, minutes, pods, pool, settled},
    world::World,
};

use super::{marked, moments, nodes, running, thrifty, web};

/// Nodes that are left half empty by a scale-down give up their pods and go; the pods that are left run all the while on
/// what remains, and an hour later nothing has moved any more.
#[test]
fn under_used_nodes_are_consolidated_and_then_there_is_rest() {
    let mut world = World::seeded(21)
        .pool(
            pool("general")
                .instance_types(["c-4x-amd64-linux"])
                .consolidation_policy("WhenEmptyOrUnderutilized")
                .consolidate_after("30s"),
        )
        .workload(deployment("one").replicas(6).asks("1 cpu, 1Gi"))
        .workload(deployment("two").replicas(6).asks("1 cpu, 1Gi"));
    world.run_until(pods("one").running(6), minutes(5));
    world.run_until(pods("two").running(6), minutes(5));
    let before = nodes(&world).len();
    world.scale("Deployment", "one", 1);
    world.run_until(settled(), minutes(30));
    world.run_for(minutes(20));
    let rest = nodes(&world);
    assert!(rest.len() < before, "{} of {before} nodes are left", rest.len());
    world.expect(pods("two").running(6));
    world.run_for(minutes(60));
    assert_eq!(nodes(&world), rest, "nothing moves after rest");
}

/// A node that is too large for what is left on it is exchanged for a smaller one: the replacement is ready before the
/// old node goes.
#[test]
fn an_oversized_node_is_exchanged_for_a_cheaper_one() {
    let mut world = World::seeded(22)
        .pool(thrifty())
        .workload(deployment("big").replicas(1).asks("12 cpu, 12Gi"))
        .workload(deployment("small").replicas(1).asks("500m cpu, 512Mi"));
    world.run_until(pods("big").running(1), minutes(5));
    world.run_until(pods("small").running(1), minutes(5));
    let before = nodes(&world);
    world.scale("Deployment", "big", 0);
    world.run_until(pods("big").none(), minutes(5));
    world.run_for(minutes(15));
    world.run_until(settled(), minutes(10));
    world.expect(pods("small").running(1));
    assert!(before.is_disjoint(&nodes(&world)), "the large node has gone");
    assert!(!world.events("DisruptionTerminating").is_empty());
}

/// The guarantee of docs/disruption.md: bursts, preferences and spreads that scheduler and autoscaler rank differently do
/// not keep a cluster moving. Once nothing changes from outside, nodes stop coming and going.
#[test]
fn no_burst_leaves_a_cluster_that_does_not_come_to_rest() {
    for seed in 30..38u64 {
        let policy = ["WhenEmptyOrUnderutilized", "Balanced"][usize::from(seed % 2 == 0)];
        let mut world = World::seeded(seed)
            .pool(
                pool("general")
                    .consolidation_policy(policy)
                    .consolidate_after("15s")
                    .budget("50%"),
            )
            .workload(
                deployment("web")
                    .replicas(5)
                    .asks("1 cpu, 1Gi")
                    .prefers("podAntiAffinity", "web", HOSTNAME),
            )
            .workload(
                deployment("api")
                    .replicas(7)
                    .asks("2 cpu, 1Gi")
                    .spread_anyway("topology.kubernetes.io/zone"),
            )
            .workload(deployment("batch").replicas(4).asks("500m cpu, 4Gi"));
        world.run_for(minutes(6));
        for (name, replicas) in [("api", 2), ("web", 9), ("batch", 1), ("web", 3)] {
            world.scale("Deployment", name, replicas);
            world.run_for(minutes(4));
        }
        world.run_for(minutes(40));
        world.run_until(settled(), minutes(10));
        let rest = nodes(&world);
        world.run_for(minutes(60));
        assert_eq!(nodes(&world), rest, "seed {seed}: nothing moves after rest");
    }
}

/// DI-E10, DI-V1: between the moment at which a node may go and the first mark on it, a command waits for its validation.
#[test]
fn nothing_is_marked_before_it_was_looked_at_twice() {
    for replicas in [0, 1] {
        let mut world = running(28, thrifty(), web(9), 9);
        world.run_for(minutes(3));
        world.scale("Deployment", "web", replicas);
        world.run_for(minutes(10));
        let timeline = world.timeline();
        let marked = moments(&timeline, "tainted karpenter.sh/disrupted:NoSchedule");
        let may_go = moments(&timeline, "consolidatable");
        let first = *marked.first().expect("the node goes");
        let since = may_go.into_iter().filter(|moment| *moment < first).fold(0.0, f64::max);
        assert!(
            first - since >= 15.0,
            "{replicas} left: may go at {since}, marked at {first}"
        );
    }
}

/// DI-X17, DI-Q10: pods that come while a node is being replaced get no further node: the replacement is known as soon as it
/// exists.
#[test]
fn pods_that_come_during_a_replacement_use_it() {
    let mut world = World::seeded(29)
        .pool(thrifty())
        .workload(deployment("big").replicas(1).asks("12 cpu, 12Gi"))
        .workload(deployment("small").replicas(1).asks("100m cpu, 64Mi"));
    world.run_until(pods("big").running(1), minutes(5));
    world.run_until(pods("small").running(1), minutes(5));
    let before = nodes(&world);
    world.scale("Deployment", "big", 0);
    world.run_until(marked(1), minutes(10));
    world.scale("Deployment", "small", 2);
    world.run_for(minutes(10));
    world.run_until(settled(), minutes(10));
    world.expect(pods("small").running(2));
    assert!(before.is_disjoint(&nodes(&world)), "the large node has gone");
    assert_eq!(nodes(&world).len(), 1);
    let timeline = world.timeline();
    let launched = timeline
        .lines()
        .filter(|line| line.contains("nodeclaim/") && line.ends_with("created"))
        .count();
    assert_eq!(launched, before.len() + 1, "one replacement and nothing else");
}

const LARGE: &str = "c-16x-amd64-linux";
const SMALL: &str = "c-2x-amd64-linux";

/// A pool that buys large nodes and leaves them alone.
fn large_ones_only(name: &str, policy: &str) -> Pool {
    pool(name)
        .instance_types([LARGE])
        .allow([CapacityType::OnDemand])
        .consolidation_policy(policy)
        .consolidate_after("Never")
}

/// It may buy small ones from now on, and exchange what it has.
fn small_ones_too() -> Value {
    json!({"spec": {
        "template": {"spec": {"requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [LARGE, SMALL]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]}},
        "disruption": {"consolidateAfter": "30s"},
    }})
}

/// DI-A20: of the pools that weigh moves, those are told whose move is worth it.
#[test]
fn only_a_pool_whose_move_is_worth_it_is_told() {
    let pools = [
        ("loose", "Balanced"),
        ("tight", "Balanced"),
        ("plain", "WhenEmptyOrUnderutilized"),
    ];
    let mut world = World::seeded(44);
    for (name, policy) in pools {
        world.create(large_ones_only(name, policy));
        let selector = json!({ "karpenter.sh/nodepool": name });
        let pods = deployment(name).replicas(14).asks("1 cpu, 1Gi");
        world.create(pods.pod("nodeSelector", selector));
    }
    for (name, _) in pools {
        world.run_until(pods(name).running(14), minutes(5));
    }
    world.scale("Deployment", "loose", 1);
    world.scale("Deployment", "plain", 1);
    world.run_for(minutes(1));
    for (name, _) in pools {
        world.patch_pool(name, small_ones_too());
    }
    world.run_for(minutes(10));
    world.run_until(settled(), minutes(10));
    let told = world.told_about("ConsolidationApproved");
    assert_eq!(told.len(), 1, "the node goes alone and is told itself: {told:?}");
    assert!(told.iter().all(|name| name.starts_with("loose-")), "{told:?}");
}

/// LC-U16: what was decided about a cluster is decided anew when a pool changes, and after a while by itself: here a pod's
/// protection runs out, and nothing else happens.
#[test]
fn a_settled_cluster_is_looked_at_again() {
    let kept = deployment("kept").replicas(1).asks("1 cpu, 1Gi");
    let kept = kept.annotate("karpenter.sh/do-not-disrupt", "30m");
    let mut world = running(45, large_ones_only("general", "WhenEmptyOrUnderutilized"), kept, 1);
    let before = nodes(&world);
    world.patch_pool("general", small_ones_too());
    world.run_for(minutes(20));
    assert_eq!(nodes(&world), before, "the pod is protected");
    world.run_for(minutes(15));
    world.run_until(settled(), minutes(10));
    assert!(nodes(&world).is_disjoint(&before), "the protection has run out");
    world.expect(pods("kept").running(1));
}
