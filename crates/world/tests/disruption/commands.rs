//! Commands that something comes in between of: they are finished or taken back, and either way no mark is left.

use std::collections::BTreeSet;

use api::v1::NodeClaim;
use kube::ResourceExt;
use serde_json::{Value, json};
use world::{
    faults::ApiFaults,
    story::{
        ApiServerTrouble, Condition, ControllerCrash, KubeletsNeverRegister, MachineVanishes, SpotInterruption,
        deployment, minutes, pods, pool, seconds, settled, that,
    },
    world::World,
};

use super::{generation, gone, marked, nodes, running, steady, thrifty, web};

/// The nodes themselves were told that they stay, and why.
#[track_caller]
fn expect_told(world: &World, nodes: &BTreeSet<String>, why: &str) {
    let told = world.told_that("DisruptionBlocked", &format!("taken back: {why}"));
    assert!(nodes.is_subset(&told), "{nodes:?} stay, and {told:?} were told");
}

/// A claim beside those of these nodes that has a machine.
fn a_replacement_is_launched(before: &BTreeSet<String>) -> Condition {
    let before = before.clone();
    that("a replacement is on its way", move |moment| {
        let claims = moment.scene.node_claims.all();
        let is_launched = |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
        let mut new = claims.iter().filter(|claim| !before.contains(&claim.name_any()));
        new.any(|claim| is_launched(claim))
    })
}

fn replacement_of(world: &World, before: &BTreeSet<String>) -> String {
    let claims = world.scene().node_claims.keys();
    let mut new = claims.iter().map(|key| key.name.to_string());
    new.find(|name| !before.contains(name)).expect("there is a replacement")
}

/// DI-D7, DI-D11, DI-Q4: a replacement that never becomes ready does not cost the node that it should replace. The
/// marks are taken back, and the exchange is made once machines join again.
#[test]
fn a_replacement_that_never_joins_leaves_the_old_node_alone() {
    let mut world = running(24, steady(), web(2), 2);
    let before = nodes(&world);
    world.inject(KubeletsNeverRegister(1.0));
    world.patch_pool("general", generation("two"));
    world.run_for(minutes(5));
    world.expect(marked(1));
    world.run_for(minutes(13));
    world.expect(pods("web").running(2));
    assert_eq!(nodes(&world), before, "the node stays");
    expect_told(&world, &before, "its replacements did not become ready in time");
    world.calm();
    world.run_until(gone(&before), minutes(60));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
}

/// DI-D11: a replacement that joins and never becomes initialized does not cost the node that it should replace, either. It
/// stays, for whatever becomes of it.
#[test]
fn a_replacement_that_is_never_initialized_leaves_the_old_node_alone() {
    let mut world = running(57, steady(), web(2), 2);
    let before = nodes(&world);
    let taint = json!([{"key": "example.com/agent", "effect": "NoSchedule"}]);
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"spec": {"startupTaints": taint}}}}),
    );
    world.run_until(a_replacement_is_launched(&before), minutes(10));
    let replacement = replacement_of(&world, &before);
    world.run_for(minutes(8));
    world.expect(marked(1));
    let with_it: BTreeSet<String> = before.iter().cloned().chain([replacement]).collect();
    assert_eq!(nodes(&world), with_it, "the replacement has joined");
    world.run_until(marked(0), minutes(3));
    world.run_for(seconds(2));
    assert_eq!(nodes(&world), with_it, "both nodes stay");
    world.expect(pods("web").running(2));
    expect_told(&world, &before, "its replacements did not become ready in time");
}

/// DI-Q5, DI-D7: a replacement that is gone before it was ready does not cost the node that it should replace, either,
/// whoever made it go.
#[test]
fn a_replacement_that_goes_leaves_the_old_node_alone() {
    let vanishes = |world: &mut World, name: &str| world.inject(MachineVanishes(name));
    let is_deleted = |world: &mut World, name: &str| world.delete("karpenter.sh/v1", "NodeClaim", name);
    for it in [vanishes as fn(&mut World, &str), is_deleted] {
        let mut world = running(46, steady(), web(2), 2);
        let before = nodes(&world);
        world.patch_pool("general", generation("two"));
        world.run_until(a_replacement_is_launched(&before), minutes(10));
        let replacement = replacement_of(&world, &before);
        it(&mut world, &replacement);
        world.run_until(marked(0), minutes(20));
        world.run_for(seconds(2));
        assert!(before.is_subset(&nodes(&world)), "the node stays");
        world.expect(pods("web").running(2));
        expect_told(&world, &before, "");
        world.run_for(minutes(20));
        world.run_until(settled(), minutes(30));
        assert!(before.is_disjoint(&nodes(&world)), "the exchange is made in the end");
        world.expect(pods("web").running(2));
    }
}

const SMALL: &str = "c-2x-amd64-linux";
const LARGE: &str = "c-4x-amd64-linux";

fn types(names: &[&str], after: &str) -> Value {
    json!({"spec": {
        "template": {"spec": {"requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]}},
        "disruption": {"consolidateAfter": after},
    }})
}

/// Three nodes with a pod each, at the moment at which one command is about to exchange them for one node.
fn three_on_their_way(seed: u64) -> (World, BTreeSet<String>) {
    let dear = thrifty()
        .instance_types([SMALL])
        .consolidate_after("Never")
        .budget("100%");
    let web = deployment("web").replicas(3).asks("1100m cpu, 256Mi");
    let mut world = running(seed, dear, web, 3);
    let before = nodes(&world);
    assert_eq!(before.len(), 3);
    world.patch_pool("general", types(&[SMALL, LARGE], "30s"));
    world.run_until(marked(3), minutes(10));
    (world, before)
}

/// DI-Q7: one node of several goes by itself in the middle of their command. The command goes on with the others.
#[test]
fn a_node_that_goes_in_the_middle_of_a_command_does_not_keep_the_others() {
    let vanishes = |world: &mut World, name: &str| world.inject(MachineVanishes(name));
    let is_interrupted = |world: &mut World, name: &str| world.inject(SpotInterruption::of(name));
    let claim_is_deleted = |world: &mut World, name: &str| world.delete("karpenter.sh/v1", "NodeClaim", name);
    let node_is_deleted = |world: &mut World, name: &str| world.delete("v1", "Node", name);
    for it in [
        vanishes as fn(&mut World, &str),
        is_interrupted,
        claim_is_deleted,
        node_is_deleted,
    ] {
        let (_, before) = three_on_their_way(47);
        for name in &before {
            let (mut world, _) = three_on_their_way(47);
            it(&mut world, name);
            world.run_until(gone(&before), minutes(15));
            world.run_until(settled(), minutes(15));
            world.expect(pods("web").running(3));
            world.expect(marked(0));
            assert_eq!(nodes(&world).len(), 1);
        }
    }
}

/// What stands for several nodes is gone: all of them stay, and each is told.
#[test]
fn a_command_of_several_nodes_is_taken_back_as_a_whole() {
    let (mut world, before) = three_on_their_way(48);
    world.run_until(a_replacement_is_launched(&before), minutes(5));
    let replacement = replacement_of(&world, &before);
    world.delete("karpenter.sh/v1", "NodeClaim", &replacement);
    world.run_until(marked(0), minutes(1));
    world.run_for(seconds(2));
    assert!(before.is_subset(&nodes(&world)));
    expect_told(&world, &before, &format!("replacement {replacement} is gone"));
    world.run_until(gone(&before), minutes(15));
    world.run_until(settled(), minutes(15));
    world.expect(pods("web").running(3));
}

/// A node that the cloud takes back in the middle of its own replacement: the command ends, nothing hangs.
#[test]
fn a_node_that_vanishes_in_the_middle_of_a_command_ends_it() {
    let mut world = running(25, steady(), web(3), 3);
    let before = nodes(&world);
    world.patch_pool("general", generation("two"));
    world.run_until(marked(1), minutes(10));
    world.inject(SpotInterruption::of(before.first().expect("a node")));
    world.run_for(minutes(20));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    world.expect(marked(0));
}

/// DI-Q9: a crash in the middle of a command leaves marks that the next process takes back or finishes.
#[test]
fn a_crash_in_the_middle_of_a_command_leaves_no_mark() {
    let mut world = running(26, steady(), web(3), 3);
    world.patch_pool("general", generation("two"));
    world.run_for(seconds(20));
    world.inject(ControllerCrash);
    world.run_for(minutes(30));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    world.expect(marked(0));
}

/// A pool that is deleted in the middle of a command takes its nodes along: nothing hangs, no mark is left, and no node that
/// goes is told that it stays.
#[test]
fn a_pool_that_is_deleted_in_the_middle_of_a_command_ends_it() {
    let mut world = running(27, steady(), web(3), 3);
    let before = nodes(&world);
    world.patch_pool("general", generation("two"));
    world.run_until(a_replacement_is_launched(&before), minutes(10));
    world.create(pool("other").consolidate_after("Never"));
    world.delete("karpenter.sh/v1", "NodePool", "general");
    world.run_for(minutes(20));
    world.run_until(settled(), minutes(30));
    world.expect(pods("web").running(3));
    world.expect(marked(0));
    assert!(before.is_disjoint(&nodes(&world)));
    let told = world.told_that("DisruptionBlocked", "The node stays");
    assert_eq!(told, BTreeSet::new(), "all of them go");
}

/// A replacement that the server will not have: the node is told, it loses its marks, and its turn comes again.
#[test]
fn a_replacement_that_is_refused_leaves_the_old_node_alone() {
    let mut world = running(49, steady(), web(2), 2);
    let before = nodes(&world);
    // A claim has a requirement for each of these, and a few of its own; a hundred is what the server takes.
    let without = |count: usize| {
        let requirement = |n: usize| json!({"key": format!("example.com/n{n}"), "operator": "DoesNotExist"});
        let many: Vec<Value> = (0..count).map(requirement).collect();
        json!({"spec": {"template": {"spec": {"requirements": many}}}})
    };
    world.patch_pool("general", without(100));
    world.patch_pool("general", generation("two"));
    world.run_for(minutes(5));
    assert_eq!(nodes(&world), before);
    expect_told(&world, &before, "a replacement could not be created");
    world.patch_pool("general", without(0));
    world.run_until(gone(&before), minutes(15));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
}

/// No node claim can be created from here on.
fn no_claims() -> ApiServerTrouble {
    ApiServerTrouble(ApiFaults {
        no_claims: 100,
        ..ApiFaults::default()
    })
}

/// A replacement that the server would create if it could: the command is given up within a minute, its nodes lose their
/// marks and are told. The exchange is made once claims can be created again.
#[test]
fn a_replacement_that_cannot_be_created_leaves_the_old_node_alone() {
    let mut world = running(53, steady(), web(2), 2);
    let before = nodes(&world);
    world.inject(no_claims());
    world.patch_pool("general", generation("two"));
    for _ in 0..5 {
        world.run_until(marked(1), minutes(1));
        world.run_until(marked(0), minutes(1));
        world.run_for(seconds(1));
        expect_told(&world, &before, "a replacement could not be created");
    }
    assert_eq!(nodes(&world), before);
    world.expect(pods("web").running(2));
    world.calm();
    world.run_until(gone(&before), minutes(5));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
}

/// What began together with a command whose replacement cannot be created does not wait for it.
#[test]
fn a_replacement_that_cannot_be_created_holds_nobody_else_up() {
    let pool = steady().budget("100%");
    let mut world = running(54, pool, web(2).apart(), 2);
    world.create(deployment("idle").replicas(2).asks("3 cpu, 1Gi").apart());
    world.run_until(pods("idle").running(2), minutes(5));
    let dear = nodes(&world);
    world.scale("Deployment", "idle", 0);
    world.run_until(pods("idle").none(), minutes(5));
    world.run_for(minutes(1));
    let used: BTreeSet<String> = {
        let pods = world.scene().pods.all();
        let node = |pod: &std::sync::Arc<k8s_openapi::api::core::v1::Pod>| pod.spec.as_ref()?.node_name.clone();
        pods.iter().filter_map(node).collect()
    };
    let idle: BTreeSet<String> = dear.difference(&used).cloned().collect();
    assert!(!idle.is_empty() && !used.is_empty());
    world.inject(no_claims());
    world.patch_pool("general", generation("two"));
    world.run_until(gone(&idle), minutes(1));
    world.run_for(minutes(2));
    assert_eq!(nodes(&world), used);
    world.calm();
    world.run_until(gone(&used), minutes(15));
    world.run_until(settled(), minutes(10));
    world.expect(marked(0));
}

/// A server that fails for a moment costs a command nothing.
#[test]
fn a_replacement_that_is_created_at_last_takes_its_place() {
    let mut world = running(55, steady(), web(2), 2);
    let before = nodes(&world);
    world.inject(no_claims());
    world.patch_pool("general", generation("two"));
    world.run_until(marked(1), minutes(1));
    world.run_for(seconds(5));
    world.calm();
    world.run_until(gone(&before), minutes(5));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
    assert_eq!(world.told_that("DisruptionBlocked", "taken back"), BTreeSet::new());
}

/// Others who write to a node at the same moment do not keep a command from marking it.
#[test]
fn a_conflict_does_not_cost_a_node_its_mark() {
    let mut world = running(50, thrifty().budget("100%"), web(8).apart(), 8);
    let before = nodes(&world);
    world.inject(ApiServerTrouble(ApiFaults {
        conflict: 40,
        ..ApiFaults::default()
    }));
    world.scale("Deployment", "web", 0);
    world.run_until(gone(&before), minutes(20));
    let timeline = world.timeline();
    let unmarked = timeline
        .lines()
        .find(|line| line.contains("no longer tainted karpenter.sh/disrupted"));
    assert_eq!(unmarked, None, "every node that was marked has gone");
    world.calm();
    world.run_until(settled(), minutes(10));
}

/// A node that cannot be deleted for as long as its command may take is let go of, and that is counted. Its turn comes again.
#[test]
fn a_node_that_cannot_be_deleted_is_given_back() {
    let mut world = running(51, steady(), web(2), 2);
    let before = nodes(&world);
    world.patch_pool("general", generation("two"));
    world.run_until(a_replacement_is_launched(&before), minutes(10));
    let replacement = replacement_of(&world, &before);
    world.run_until(
        that("the replacement is ready", move |moment| {
            let key = world::mirror::Key::cluster(&*replacement);
            let node = moment.scene.nodes.get(&key);
            node.is_some_and(|node| node.labels().contains_key("karpenter.sh/initialized"))
        }),
        minutes(5),
    );
    world.inject(ApiServerTrouble(ApiFaults {
        server_error: 100,
        ..ApiFaults::default()
    }));
    world.run_for(minutes(12));
    let failures = "karpenter_voluntary_disruption_queue_failures_total";
    assert_eq!(world.counted(failures, r#"reason="drifted""#), 1.0);
    world.calm();
    world.run_until(gone(&before), minutes(15));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(2));
    world.expect(marked(0));
}
