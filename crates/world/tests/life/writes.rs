//! What a node's life costs the API server, and how fast many lives go at once.

use std::time::Duration;

use jiff::SignedDuration;
use operator::throttle::Rate;
use provider_sim::Latency;
use world::{
    story::{Deployed, deployment, minutes, nothing_runs, pods, pool, seconds, settled, that},
    tally::Tally,
    world::{Setup, World, fair_weather, karpenter},
};

use super::{node_path, web, with_one_node};

/// Writes to nodes and claims. Events are told apart, and evictions are the pods' affair.
fn of_the_life(writes: &Tally) -> usize {
    let kept = writes
        .iter()
        .filter(|(what, _)| what.contains(" nodes") || what.contains(" nodeclaims"));
    kept.map(|(_, count)| count).sum()
}

/// A life from the first pod to the empty node's end takes 22 writes to nodes and claims. Upstream, counted by the steps of
/// lifecycle.md 4 to 6, needs four more: the finalizer before the launch (here the claim is created with it), the first
/// consistency check (here it is said with the registration), the generation that follows a deletion (here the drain
/// writes it), and the end of the drain apart from the start of the instance's termination (here one write).
#[test]
fn a_life_takes_no_more_writes_than_upstreams() {
    let mut world = with_one_node(pool("general"), web(2), 2);
    world.run_for(seconds(20));
    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(10));
    let writes = world.writes();
    let refused: usize = writes
        .iter()
        .filter(|(what, _)| what.ends_with("refused"))
        .map(|(_, count)| count)
        .sum();
    assert!(
        refused <= 1,
        "two controllers may meet at the end of a claim: {writes:#?}"
    );
    let count = of_the_life(writes) - refused;
    assert!(count <= 22, "{count} writes: {writes:#?}");
}

/// Pods that do not share a node.
fn apart(replicas: u32) -> Deployed {
    deployment("web").replicas(replicas).asks("1 cpu, 1Gi").apart()
}

/// A world with a client of the usual rate, and machines that all take ten seconds to boot.
fn at_the_usual_rate() -> World {
    let ten = Latency::exactly(SignedDuration::from_secs(10));
    World::new(Setup {
        rate: Some(Rate::new(200, 300)),
        cloud: provider_sim::Faults {
            launch_latency: ten,
            ..fair_weather()
        },
        ..Setup::seeded(7, karpenter())
    })
}

/// How long it takes until the condition holds, to the second.
#[track_caller]
fn time_until(world: &mut World, condition: world::story::Condition, limit: Duration) -> u64 {
    let begun = world.now();
    world.run_until(condition, limit);
    world.now().duration_since(begun).as_secs().unsigned_abs()
}

/// How many times two hundred launches and a hundred drains. `LIFE_SCALE=5` makes them a thousand and five hundred, which
/// takes minutes.
fn scale() -> u32 {
    let asked = std::env::var("LIFE_SCALE").ok();
    asked.map_or(1, |text| text.parse().expect("LIFE_SCALE is a number"))
}

/// Many nodes at once. Each takes ten seconds to boot and five to become ready; until then it costs thirteen writes, of
/// which the client may make two hundred in a second, and pods take a few seconds to start.
#[test]
fn a_wave_of_launches_is_as_fast_as_the_client_may_ask() {
    let count = 200 * scale();
    let mut world = at_the_usual_rate().pool(pool("general").consolidate_after("Never"));
    world.run_for(seconds(5));
    world.create(apart(count));
    let took = time_until(&mut world, pods("web").running(count as usize), minutes(5));
    let writes = of_the_life(world.writes());
    let at_this_rate = writes as u64 / 200;
    assert!(
        took <= at_this_rate + 30,
        "{took} s, of which {at_this_rate} s for {writes} writes: {:#?}",
        world.writes()
    );
    println!("{count} launches took {took} s, of which {at_this_rate} s for {writes} writes");
}

/// Many nodes are deleted while a budget lets a tenth of their pods be missing. A wave of pods takes as long as a pod
/// takes to stop and its replacement to get a node and start.
#[test]
fn a_drain_of_many_nodes_is_as_fast_as_its_budget() {
    let count = 100 * scale();
    let mut world = at_the_usual_rate().pool(pool("general").consolidate_after("Never"));
    world.create(apart(count).max_unavailable(count / 10));
    world.run_until(pods("web").running(count as usize), minutes(5));
    let doomed = world.scene().nodes.all();
    for node in &doomed {
        world.delete_at(&node_path(node));
    }
    let old: std::collections::BTreeSet<_> = doomed.iter().filter_map(|node| node.metadata.name.clone()).collect();
    let all_gone = that("the old nodes are gone", move |moment| {
        moment.scene.nodes.keys().iter().all(|key| !old.contains(&key.name))
    });
    let took = time_until(&mut world, all_gone, minutes(30));
    world.run_until(settled(), minutes(5));
    // Ten waves. In each, pods stop within ten seconds and start within ten on nodes that came for them.
    assert!(took <= 10 * 25 + 60, "{took} s");
    println!("the end of {count} nodes took {took} s");
}
