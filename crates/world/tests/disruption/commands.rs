//! Commands that something comes in between of: they are finished or taken back, and either way no mark is left.

use std::collections::BTreeSet;

use api::v1::NodeClaim;
use kube::ResourceExt;
use world::{
    faults::ApiFaults,
    story::{
        ApiServerTrouble, Condition, ControllerCrash, KubeletsNeverRegister, MachineVanishes, SpotInterruption,
        minutes, pods, pool, seconds, settled, that,
    },
    world::World,
};

use super::{apart, generation, gone, marked, nodes, running, steady, thrifty, web};

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

/// A pool that is deleted in the middle of a command takes its nodes along: nothing hangs and no mark is left.
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
}

/// Others who write to a node at the same moment do not keep a command from marking it.
#[test]
fn a_conflict_does_not_cost_a_node_its_mark() {
    let mut world = running(50, thrifty().budget("100%"), apart(web(8)), 8);
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
