//! Stories of nodes that go although nothing is wrong with them: consolidation, drift, and commands that come to nothing.

use std::collections::BTreeSet;

use api::{
    conditions::{self, HasConditions},
    v1::NodeClaim,
};
use k8s_openapi::api::core::v1::Node;
use model::CapacityType;
use serde_json::{Value, json};
use world::{
    story::{
        ControllerCrash, ImageWithdrawn, KubeletsNeverRegister, MachineVanishes, NewImage, Pool, SpotInterruption,
        deployment, minutes, pods, pool, seconds, settled, that,
    },
    world::World,
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn nodes(world: &World) -> BTreeSet<String> {
    world
        .scene()
        .nodes
        .keys()
        .iter()
        .map(|key| key.name.to_string())
        .collect()
}

fn has_disrupted_taint(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == "karpenter.sh/disrupted"))
}

fn disrupted_taint(world: &World) -> usize {
    let nodes = world.scene().nodes.all();
    nodes.iter().filter(|node| has_disrupted_taint(node)).count()
}

/// The moments, in seconds, at which a timeline says this of anybody.
fn moments(timeline: &str, what: &str) -> Vec<f64> {
    let said = timeline.lines().filter(|line| line.ends_with(what));
    let moment = |line: &str| line.split_whitespace().next()?.trim_matches(['+', 's']).parse().ok();
    said.filter_map(moment).collect()
}

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
        .pool(
            pool("general")
                .allow([CapacityType::OnDemand])
                .consolidation_policy("WhenEmptyOrUnderutilized")
                .consolidate_after("30s"),
        )
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

/// DI-Q7: a change of the pool's template makes every node drift; as many as the budget allows are replaced at a time, each
/// by a command of its own, and the pods run on nodes of the new kind.
#[test]
fn drifted_nodes_are_replaced() {
    let mut world = World::seeded(23)
        .pool(
            pool("general")
                .instance_types(["c-4x-amd64-linux"])
                .consolidate_after("Never"),
        )
        .workload(deployment("web").replicas(6).asks("3 cpu, 1Gi").max_unavailable(2));
    world.run_until(pods("web").running(6), minutes(5));
    let before = nodes(&world);
    world.patch_pool(
        "general",
        json!({"spec": {
            "template": {"metadata": {"labels": {"generation": "two"}}},
            "disruption": {"budgets": [{"nodes": "2"}]},
        }}),
    );
    world.run_until(
        that("two commands are under way", |moment| {
            let nodes = moment.scene.nodes.all();
            nodes.iter().filter(|node| has_disrupted_taint(node)).count() == 2
        }),
        minutes(10),
    );
    world.run_until(
        that("all nodes are new", |moment| {
            let nodes = moment.scene.nodes.all();
            let new = |labels: Option<&std::collections::BTreeMap<String, String>>| {
                labels.is_some_and(|labels| labels.get("generation").is_some_and(|value| value == "two"))
            };
            !nodes.is_empty() && nodes.iter().all(|node| new(node.metadata.labels.as_ref()))
        }),
        minutes(60),
    );
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(6));
    assert!(before.is_disjoint(&nodes(&world)));
}

/// DI-D7, DI-D11, DI-Q4: a replacement that never becomes ready does not cost the node that it should replace. The
/// marks are taken back, and the exchange is made once machines join again.
#[test]
fn a_replacement_that_never_joins_leaves_the_old_node_alone() {
    let mut world = World::seeded(24)
        .pool(pool("general").consolidate_after("Never"))
        .workload(deployment("web").replicas(2).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(2), minutes(5));
    let before = nodes(&world);
    world.inject(KubeletsNeverRegister(1.0));
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}),
    );
    world.run_for(minutes(5));
    assert_eq!(disrupted_taint(&world), 1, "a command has the node");
    world.run_for(minutes(13));
    world.expect(pods("web").running(2));
    assert_eq!(nodes(&world), before, "the node stays");
    assert!(
        world
            .events("DisruptionBlocked")
            .iter()
            .any(|message| message.contains("taken back")),
        "the node is told that it stays"
    );
    world.calm();
    world.run_until(
        that("the node has gone", {
            let before = before.clone();
            move |moment| !moment.scene.nodes.keys().iter().any(|key| before.contains(&*key.name))
        }),
        minutes(60),
    );
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
}

/// DI-Q5: a replacement whose machine is gone before it was ready does not cost the node that it should replace, either.
#[test]
fn a_replacement_that_vanishes_leaves_the_old_node_alone() {
    let mut world = World::seeded(46)
        .pool(pool("general").consolidate_after("Never"))
        .workload(deployment("web").replicas(2).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(2), minutes(5));
    let before = nodes(&world);
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}),
    );
    let is_launched = |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
    world.run_until(
        that("a replacement is on its way", {
            let before = before.clone();
            move |moment| {
                let claims = moment.scene.node_claims.all();
                let mut launched = claims.iter().filter(|claim| is_launched(claim));
                launched.any(|claim| !before.contains(claim.metadata.name.as_deref().unwrap_or_default()))
            }
        }),
        minutes(10),
    );
    let claims = world.scene().node_claims.keys();
    let replacement = claims
        .iter()
        .find(|key| !before.contains(&*key.name))
        .expect("it exists");
    world.inject(MachineVanishes(&replacement.name));
    world.run_until(
        that("the marks are taken back", |moment| {
            !moment.scene.nodes.all().iter().any(|node| has_disrupted_taint(node))
        }),
        minutes(20),
    );
    assert!(before.is_subset(&nodes(&world)), "the node stays");
    world.expect(pods("web").running(2));
    assert!(
        world
            .events("DisruptionBlocked")
            .iter()
            .any(|message| message.contains("taken back")),
        "the node is told that it stays"
    );
    world.run_for(minutes(20));
    world.run_until(settled(), minutes(30));
    assert!(before.is_disjoint(&nodes(&world)), "the exchange is made in the end");
    world.expect(pods("web").running(2));
}

/// A node that the cloud takes back in the middle of its own replacement: the command ends, nothing hangs.
#[test]
fn a_node_that_vanishes_in_the_middle_of_a_command_ends_it() {
    let mut world = World::seeded(25)
        .pool(pool("general").consolidate_after("Never"))
        .workload(deployment("web").replicas(3).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(3), minutes(5));
    let doomed = nodes(&world).first().cloned().expect("a node");
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}),
    );
    world.run_until(
        that("the node is marked", |moment| {
            moment.scene.nodes.all().iter().any(|node| has_disrupted_taint(node))
        }),
        minutes(10),
    );
    world.inject(SpotInterruption::of(&doomed));
    world.run_for(minutes(20));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    assert_eq!(disrupted_taint(&world), 0, "no mark is left");
}

/// DI-Q9: a crash in the middle of a command leaves marks that the next process takes back or finishes.
#[test]
fn a_crash_in_the_middle_of_a_command_leaves_no_mark() {
    let mut world = World::seeded(26)
        .pool(pool("general").consolidate_after("Never"))
        .workload(deployment("web").replicas(3).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(3), minutes(5));
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}),
    );
    world.run_for(seconds(20));
    world.inject(ControllerCrash);
    world.run_for(minutes(30));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    assert_eq!(disrupted_taint(&world), 0, "no mark is left");
}

/// The guarantee of docs/disruption.md: bursts, preferences and spreads that scheduler and autoscaler rank differently do
/// not keep a cluster moving. Once nothing changes from outside, nodes stop coming and going.
#[test]
fn no_burst_leaves_a_cluster_that_does_not_come_to_rest() {
    for seed in 30..38u64 {
        let preferred = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 50,
            "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}},
        }]}});
        let anyway = json!([{
            "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "api"}},
        }]);
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
                    .pod("affinity", preferred),
            )
            .workload(
                deployment("api")
                    .replicas(7)
                    .asks("2 cpu, 1Gi")
                    .pod("topologySpreadConstraints", anyway),
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

/// A pool that is deleted in the middle of a command takes its nodes along; nothing hangs and no mark is left.
#[test]
fn a_pool_that_is_deleted_in_the_middle_of_a_command_ends_it() {
    let mut world = World::seeded(27)
        .pool(pool("general").consolidate_after("Never"))
        .pool(pool("other").consolidate_after("Never"))
        .workload(deployment("web").replicas(3).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(3), minutes(5));
    let name = world.scene().node_claims.all()[0]
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get("karpenter.sh/nodepool").cloned())
        .expect("a claim has a pool");
    world.patch_pool(
        &name,
        json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}),
    );
    world.run_for(seconds(12));
    world.delete("karpenter.sh/v1", "NodePool", &name);
    world.run_for(minutes(20));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    assert_eq!(disrupted_taint(&world), 0, "no mark is left");
}

/// DI-E10, DI-V1: between the moment at which a node may go and the first mark on it, a command waits for its validation.
#[test]
fn nothing_is_marked_before_it_was_looked_at_twice() {
    for replicas in [0, 1] {
        let mut world = World::seeded(28)
            .pool(
                pool("general")
                    .allow([CapacityType::OnDemand])
                    .consolidation_policy("WhenEmptyOrUnderutilized")
                    .consolidate_after("30s"),
            )
            .workload(deployment("web").replicas(9).asks("1 cpu, 1Gi"));
        world.run_until(pods("web").running(9), minutes(5));
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
        .pool(
            pool("general")
                .allow([CapacityType::OnDemand])
                .consolidation_policy("WhenEmptyOrUnderutilized")
                .consolidate_after("30s"),
        )
        .workload(deployment("big").replicas(1).asks("12 cpu, 12Gi"))
        .workload(deployment("small").replicas(1).asks("100m cpu, 64Mi"));
    world.run_until(pods("big").running(1), minutes(5));
    world.run_until(pods("small").running(1), minutes(5));
    let before = nodes(&world);
    world.scale("Deployment", "big", 0);
    world.run_until(
        that("a node is being replaced", |moment| {
            moment.scene.nodes.all().iter().any(|node| has_disrupted_taint(node))
        }),
        minutes(10),
    );
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

/// DI-H15: a claim may have drifted and be consolidatable at once; both marks go when their causes do.
#[test]
fn a_claim_carries_both_marks_and_loses_them() {
    let mut world = World::seeded(40)
        .pool(
            pool("general")
                .consolidation_policy("WhenEmpty")
                .consolidate_after("15s")
                .budget("0"),
        )
        .workload(deployment("web").replicas(1).asks("1 cpu, 1Gi"));
    let labelled = |value: &str| json!({"spec": {"template": {"metadata": {"labels": {"generation": value}}}}});
    world.patch_pool("general", labelled("one"));
    world.run_until(pods("web").running(1), minutes(5));
    let marks = |drifted: bool, consolidatable: bool| {
        that("the claim carries these marks", move |moment| {
            let claims = moment.scene.node_claims.all();
            let has = |claim: &api::v1::NodeClaim, kind: &str| {
                let listed = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
                listed
                    .unwrap_or_default()
                    .iter()
                    .any(|condition| condition.type_ == kind && condition.status == "True")
            };
            !claims.is_empty()
                && claims
                    .iter()
                    .all(|claim| has(claim, "Drifted") == drifted && has(claim, "Consolidatable") == consolidatable)
        })
    };
    world.run_until(marks(false, true), minutes(5));
    world.patch_pool("general", labelled("two"));
    world.run_until(marks(true, true), minutes(5));
    world.patch_pool(
        "general",
        json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}),
    );
    world.run_until(marks(true, false), minutes(5));
    world.patch_pool("general", labelled("one"));
    world.run_until(marks(false, false), minutes(5));
}

/// DI-H1: what the cloud says of a machine is a mark on its claim for as long as it says so.
#[test]
fn a_drift_that_the_cloud_reports_comes_and_goes() {
    let mut world = World::seeded(41)
        .pool(pool("general").consolidate_after("Never").budget("0"))
        .workload(deployment("web").replicas(1).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(1), minutes(5));
    let drifted = |reason: Option<&'static str>| {
        that(&format!("the claim has drifted: {reason:?}"), move |moment| {
            let claims = moment.scene.node_claims.all();
            let found = |claim: &NodeClaim| {
                let found = conditions::find(claim.conditions(), "Drifted");
                found.map(|found| (found.status.clone(), found.reason.clone()))
            };
            let asked = reason.map(|reason| ("True".to_owned(), reason.to_owned()));
            !claims.is_empty() && claims.iter().all(|claim| found(claim) == asked)
        })
    };
    world.expect(drifted(None));
    world.inject(NewImage);
    world.run_until(drifted(Some("ImageDrift")), minutes(10));
    world.inject(ImageWithdrawn);
    world.run_until(drifted(None), minutes(10));
}

/// DI-H1: nodes with an old image are replaced, and those that come have the new one.
#[test]
fn a_new_image_reaches_every_node() {
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]}});
    let mut world = World::seeded(42)
        .pool(pool("general").consolidate_after("Never").budget("1"))
        .workload(deployment("web").replicas(3).asks("1 cpu, 1Gi").pod("affinity", apart));
    world.run_until(pods("web").running(3), minutes(5));
    let old = nodes(&world);
    assert_eq!(old.len(), 3);
    world.inject(NewImage);
    world.run_for(minutes(10));
    world.run_until(settled(), minutes(60));
    assert!(nodes(&world).is_disjoint(&old));
    world.expect(pods("web").running(3));
}

/// DI-H2, DI-H6: a claim of no pool and a claim of a class that is not ours carry no marks.
#[test]
fn claims_without_a_pool_of_ours_carry_no_marks() {
    let claim = |name: &str, labels: Value, class: Value| {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": name, "labels": labels },
            "spec": { "requirements": [], "nodeClassRef": class },
        })
    };
    let kwok = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
    let rack = json!({ "group": "example.com", "kind": "Rack", "name": "default" });
    let mut world = World::seeded(43);
    world.create(claim("alone", json!({}), kwok));
    world.create(claim("foreign", json!({}), rack));
    world.run_for(minutes(2));
    world.inject(NewImage);
    world.run_for(minutes(10));
    let claims = world.scene().node_claims.all();
    assert_eq!(claims.len(), 2);
    for claim in claims {
        for mark in ["Drifted", "Consolidatable"] {
            let found = conditions::find(claim.conditions(), mark);
            assert!(found.is_none(), "{:?}: {found:?}", claim.metadata.name);
        }
    }
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
    assert_eq!(told, BTreeSet::from(["loose".to_owned()]));
}

/// LC-U16: what was decided about a cluster is decided anew when a pool changes, and after a while by itself: here a pod's
/// protection runs out, and nothing else happens.
#[test]
fn a_settled_cluster_is_looked_at_again() {
    let kept = deployment("kept").replicas(1).asks("1 cpu, 1Gi");
    let mut world = World::seeded(45)
        .pool(large_ones_only("general", "WhenEmptyOrUnderutilized"))
        .workload(kept.annotate("karpenter.sh/do-not-disrupt", "30m"));
    world.run_until(pods("kept").running(1), minutes(5));
    let before = nodes(&world);
    world.patch_pool("general", small_ones_too());
    world.run_for(minutes(20));
    assert_eq!(nodes(&world), before, "the pod is protected");
    world.run_for(minutes(15));
    world.run_until(settled(), minutes(10));
    assert!(nodes(&world).is_disjoint(&before), "the protection has run out");
    world.expect(pods("kept").running(1));
}
