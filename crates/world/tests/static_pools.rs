//! Static pools in a seeded world: they have the machines that they ask for, whatever happens.

use model::CapacityType::OnDemand;
use world::{
    checkers::Moment,
    faults::ApiFaults,
    story::{
        ApiServerTrouble, Condition, ControllerCrash, InsufficientCapacity, deployment, minutes, nothing_runs, pods,
        pool, seconds, settled, that,
    },
    world::{Setup, World, karpenter_with},
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn claims_of(moment: &Moment<'_>, pool: &str) -> usize {
    let claims = moment.scene.node_claims.all();
    let is_its = |claim: &&std::sync::Arc<api::v1::NodeClaim>| {
        let labels = claim.metadata.labels.as_ref();
        claim.metadata.deletion_timestamp.is_none()
            && labels
                .and_then(|labels| labels.get(api::labels::NODE_POOL))
                .map(String::as_str)
                == Some(pool)
    };
    claims.iter().filter(is_its).count()
}

/// So many claims of the pool that stay, and as many initialised nodes.
fn nodes(pool: &'static str, count: usize) -> Condition {
    that(&format!("{pool} has {count} nodes"), move |moment| {
        let nodes = moment.scene.nodes.all();
        let ready = nodes.iter().filter(|node| {
            let labels = node.metadata.labels.as_ref();
            let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
            label(api::labels::NODE_POOL) == Some(pool) && label(api::labels::INITIALIZED) == Some("true")
        });
        claims_of(moment, pool) == count && ready.count() == count
    })
}

fn claims(pool: &'static str, count: usize) -> Condition {
    that(&format!("{pool} has {count} claims"), move |moment| {
        claims_of(moment, pool) == count
    })
}

/// LC-S1, LC-S7, LC-S9, LC-S12: up, down and to nothing, by spec and by the scale subresource.
#[test]
fn a_static_pool_has_the_size_that_it_asks_for() {
    let mut world = World::gated(7, "StaticCapacity=true").pool(pool("fixed").replicas(3));
    world.run_until(nodes("fixed", 3), minutes(5));
    world.run_for(minutes(10));
    world.expect(nodes("fixed", 3));
    world.scale_pool("fixed", 5);
    world.run_until(nodes("fixed", 5), minutes(5));
    world.run_for(seconds(10));
    let fixed = world
        .object("karpenter.sh/v1", "NodePool", "fixed")
        .expect("the pool is there");
    assert_eq!(
        (&fixed["spec"]["replicas"], &fixed["status"]["nodes"]),
        (&5.into(), &5.into())
    );
    world.scale_pool("fixed", 1);
    world.run_until(nodes("fixed", 1), minutes(5));
    world.scale_pool("fixed", 0);
    world.run_until(nothing_runs(), minutes(10));
    world.run_until(settled(), minutes(5));
}

/// LC-S2: a pool of a closed gate launches nothing.
#[test]
fn without_the_gate_a_static_pool_stays_empty() {
    let mut world = World::seeded(7).pool(pool("fixed").replicas(3));
    world.run_for(minutes(5));
    world.expect(claims("fixed", 0));
}

/// LC-S4, SC15.21.2: the limit cuts the grant, and room is noticed without a change of the pool's size.
#[test]
fn a_static_pool_never_exceeds_its_limit() {
    let mut world = World::gated(3, "StaticCapacity=true").pool(pool("fixed").replicas(4).limit("nodes", "2"));
    world.run_until(nodes("fixed", 2), minutes(5));
    world.run_for(minutes(5));
    world.expect(nodes("fixed", 2));
    world.patch_pool("fixed", serde_json::json!({"spec": {"limits": {"nodes": "4"}}}));
    world.run_until(nodes("fixed", 4), minutes(5));
}

/// LC-S3, LC-S5: claims that have no instance yet count, also for a controller that has just started.
#[test]
fn a_crash_while_claims_are_created_creates_none_twice() {
    let mut world = World::gated(11, "StaticCapacity=true").pool(pool("fixed").replicas(20).limit("nodes", "20"));
    let begun = that("a claim exists", |moment| !moment.scene.node_claims.is_empty());
    world.run_until(begun, minutes(1));
    world.inject(ControllerCrash);
    world.run_until(nodes("fixed", 20), minutes(10));
    world.run_until(settled(), minutes(5));
}

/// LC-S6, LC-S11, SC15.21.3: requests that fail are made again until the size is right, and no limit is broken on the way.
#[test]
fn a_static_pool_gets_its_size_in_bad_weather() {
    let settings = operator::settings::Settings {
        feature_gates: "StaticCapacity=true".parse().expect("the gates are well formed"),
        ..Default::default()
    };
    let mut setup = Setup::seeded(5, karpenter_with(settings));
    setup.api = ApiFaults {
        server_error: 20,
        lost_answer: 10,
        ..ApiFaults::default()
    };
    let mut world = World::new(setup).pool(pool("fixed").replicas(10).limit("nodes", "10"));
    world.run_until(nodes("fixed", 10), minutes(20));
    world.scale_pool("fixed", 2);
    world.run_until(nodes("fixed", 2), minutes(20));
    world.calm();
    world.run_until(settled(), minutes(10));
}

/// A machine that goes is replaced, and one that cannot be had is asked for until it can.
#[test]
fn a_machine_that_goes_is_replaced() {
    let mut world = World::gated(5, "StaticCapacity=true").pool(pool("fixed").replicas(2));
    world.run_until(nodes("fixed", 2), minutes(5));
    let name = world.scene().node_claims.keys()[0].name.clone();
    world.inject(InsufficientCapacity(None));
    world.delete("karpenter.sh/v1", "NodeClaim", &name);
    world.run_for(minutes(3));
    world.calm();
    world.run_until(nodes("fixed", 2), minutes(10));
    world.run_until(settled(), minutes(5));
}

/// LC-S15, LC-P4: pods use static nodes first and a dynamic pool for the rest; each pool is counted by itself.
#[test]
fn pods_that_do_not_fit_onto_static_nodes_get_dynamic_ones() {
    let small = pool("fixed")
        .replicas(1)
        .allow([OnDemand])
        .instance_types(["c-4x-amd64-linux"]);
    let mut world = World::gated(9, "StaticCapacity=true").pool(small).pool(pool("general"));
    world.run_until(nodes("fixed", 1), minutes(5));
    world.create(deployment("fits").replicas(2).asks("1 cpu"));
    world.run_until(pods("fits").running(2), minutes(5));
    world.expect(claims("general", 0));
    world.create(deployment("more").replicas(4).asks("3 cpu"));
    world.run_until(pods("more").running(4), minutes(10));
    world.expect(that("the dynamic pool has nodes", |moment| {
        claims_of(moment, "general") > 0
    }));
    world.expect(nodes("fixed", 1));
    world.run_for(seconds(10));
    let counted = |name: &str| {
        let pool = world
            .object("karpenter.sh/v1", "NodePool", name)
            .expect("the pool is there");
        pool["status"]["nodes"].as_i64()
    };
    let dynamic = world.scene().node_claims.len() as i64 - 1;
    assert_eq!((counted("fixed"), counted("general")), (Some(1), Some(dynamic)));
}

fn change(world: &mut World, spec: serde_json::Value) {
    world.patch_pool("fixed", serde_json::json!({ "spec": spec }));
}

fn next_generation() -> serde_json::Value {
    serde_json::json!({ "metadata": { "labels": { "generation": "two" } } })
}

/// Never so many claims of the pool at once, for that long.
fn expect_fewer(world: &mut World, count: usize, time: std::time::Duration) {
    let crowded = that(&format!("{count} claims"), move |moment| {
        moment.scene.node_claims.len() >= count
    });
    let reached = world.try_run_until(&crowded, time);
    assert!(
        reached.is_err_and(|failure| failure.what.starts_with("not within")),
        "{count} claims at once"
    );
}

/// DI-T4: drifted machines are exchanged one by one where the limit has room for one more, and then there is rest.
#[test]
fn drifted_machines_are_exchanged_within_the_limit() {
    let fixed = pool("fixed").replicas(3).limit("nodes", "4").budget("100%");
    let mut world = World::gated(13, "StaticCapacity=true").pool(fixed);
    world.run_until(nodes("fixed", 3), minutes(5));
    let old = world.scene().node_claims.keys();
    change(&mut world, serde_json::json!({ "template": next_generation() }));
    expect_fewer(&mut world, 5, minutes(15));
    let new = world.scene().node_claims.keys();
    assert!(new.iter().all(|key| !old.contains(key)), "{old:?} and now {new:?}");
    world.run_until(settled(), minutes(5));
    world.run_for(minutes(15));
    assert_eq!(world.scene().node_claims.keys(), new, "nothing drifts any more");
}

/// DI-T4: the last room under the limit goes either to a replacement or to the growth of the pool, however slow the server.
#[test]
fn a_pool_that_grows_while_it_is_exchanged_stays_within_its_limit() {
    for offset in [0, 4, 8, 12, 16] {
        let fixed = pool("fixed").replicas(3).limit("nodes", "4").budget("0");
        let mut world = World::gated(17, "StaticCapacity=true").pool(fixed);
        world.run_until(nodes("fixed", 3), minutes(5));
        change(&mut world, serde_json::json!({ "template": next_generation() }));
        world.run_for(minutes(2));
        world.inject(ApiServerTrouble(ApiFaults {
            latency: seconds(5),
            ..ApiFaults::default()
        }));
        change(
            &mut world,
            serde_json::json!({ "disruption": { "budgets": [{ "nodes": "100%" }] } }),
        );
        world.run_for(seconds(offset));
        world.scale_pool("fixed", 4);
        expect_fewer(&mut world, 5, minutes(10));
        world.calm();
        world.run_until(settled(), minutes(10));
    }
}
