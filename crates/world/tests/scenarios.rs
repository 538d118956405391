//! Stories told in a seeded world with the production controllers.
//!
//! Golden timelines lie in `tests/golden`; `UPDATE_EXPECT=1` writes them anew, and the difference is reviewed like code.

use std::path::Path;

use expect_test::expect_file;
use model::CapacityType::{OnDemand, Spot};
use serde_json::json;
use world::{
    story::{
        ControllerCrash, InsufficientCapacity, KubeletsNeverRegister, SpotInterruption, daemon_set, deployment, job,
        minutes, nothing_runs, pods, pool, seconds, settled, stateful_set, that,
    },
    world::World,
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[track_caller]
fn golden(name: &str, world: &World) {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says whose tests these are");
    let path = Path::new(&package).join("tests/golden").join(name);
    expect_file![path].assert_eq(&world.timeline());
}

/// Pods come, a node comes; pods go, the node goes; nothing is left. The stored file was written by another process, so
/// it also shows that one seed is one history.
#[test]
fn pods_bring_nodes_and_take_them_along_again() {
    let mut world = World::seeded(7)
        .pool(pool("general"))
        .workload(deployment("web").replicas(6).asks("1 cpu, 2Gi").max_unavailable(1));
    world.run_until(pods("web").running(6), minutes(5));
    world.scale("Deployment", "web", 0);
    world.run_until(pods("web").none(), minutes(5));
    world.run_until(nothing_runs(), minutes(10));
    world.run_until(settled(), minutes(5));
    golden("up_and_down.timeline", &world);
}

/// The cloud announces that it will take a machine back. The claim is removed at once, so that the pods move while the
/// machine still runs.
#[test]
fn pods_run_elsewhere_after_an_interruption() {
    let mut world = World::seeded(7)
        .pool(
            pool("general")
                .allow([Spot, OnDemand])
                .zones(["test-zone-a", "test-zone-b"]),
        )
        .workload(deployment("web").replicas(6).asks("1 cpu, 2Gi").max_unavailable(1));
    world.run_until(pods("web").running(6), minutes(10));
    let doomed = world.scene().nodes.keys()[0].name.clone();

    world.inject(SpotInterruption::of(&doomed));
    world.run_for(seconds(10));
    world.expect(that("the claim is on its way out", |moment| {
        let claims = moment.scene.node_claims.all();
        claims.iter().any(|claim| claim.metadata.deletion_timestamp.is_some())
    }));
    assert_eq!(world.events("SpotInterrupted").len(), 2, "on the claim and on the node");
    world.run_for(minutes(2));
    world.run_until(settled(), minutes(15));

    world.expect(pods("web").none_on(&doomed));
    world.expect(pods("web").running(6));
    golden("interruption.timeline", &world);
}

/// A controller that dies in the middle of a launch leaves nothing behind and launches nothing twice.
#[test]
fn a_crash_in_the_middle_of_a_launch_changes_nothing_in_the_end() {
    let mut world = World::seeded(11)
        .pool(pool("general"))
        .workload(deployment("web").replicas(4).asks("1 cpu, 2Gi"));
    world.run_until(
        that("a claim exists", |moment| !moment.scene.node_claims.is_empty()),
        minutes(1),
    );
    world.inject(ControllerCrash);
    world.run_until(pods("web").running(4), minutes(10));
    world.run_until(settled(), minutes(5));
    golden("crash_during_launch.timeline", &world);
}

/// A cloud without capacity gets no machine; claims do not pile up, and the pods run once there is capacity again.
#[test]
fn pods_wait_for_capacity_and_run_when_it_is_back() {
    let mut world = World::seeded(3).pool(pool("general"));
    world.inject(InsufficientCapacity(None));
    world.create(deployment("web").replicas(3).asks("1 cpu"));
    world.run_for(minutes(3));
    assert!(world.cloud().live().is_empty());
    world.calm();
    world.run_until(pods("web").running(3), minutes(15));
}

/// A machine whose kubelet never registers is given up after fifteen minutes, and another takes its place.
#[test]
fn a_machine_that_never_joins_is_replaced() {
    let mut world = World::seeded(5).pool(pool("general"));
    world.inject(KubeletsNeverRegister(1.0));
    world.create(deployment("web").replicas(2).asks("1 cpu"));
    world.run_for(minutes(1));
    world.calm();
    world.expect(that("nothing joined", |moment| moment.scene.nodes.is_empty()));
    world.run_until(pods("web").running(2), minutes(30));
    world.run_until(settled(), minutes(5));
}

/// All kinds of workloads run on the nodes that they bring, and a job is over when its pods are.
#[test]
fn every_kind_of_workload_gets_its_nodes() {
    let mut world = World::seeded(9)
        .pool(pool("general"))
        .workload(daemon_set("agent").asks("100m cpu"))
        .workload(stateful_set("db").replicas(3).asks("1 cpu, 1Gi"))
        .workload(job("batch").replicas(4).asks("1 cpu"))
        .workload(deployment("web").replicas(2).asks("500m cpu"));
    let done = that("the job is complete", |moment| {
        let jobs = moment.scene.jobs.all();
        jobs.iter()
            .all(|job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(4)))
    });
    world.run_until(done, minutes(10));
    world.run_until(settled(), minutes(10));
}

/// 0 → 1,000 → 0 pods.
#[test]
fn a_thousand_pods_come_and_go() {
    let mut world = World::seeded(1)
        .pool(pool("general"))
        .workload(deployment("inflate").replicas(0).asks("1 cpu, 1Gi"));
    world.run_for(seconds(5));
    world.scale("Deployment", "inflate", 1000);
    world.run_until(pods("inflate").running(1000), minutes(10));
    world.scale("Deployment", "inflate", 0);
    world.run_until(nothing_runs(), minutes(15));
    world.run_until(settled(), minutes(5));
}

/// What a pod asks for cannot be read: no node comes for it, and an event on the pod names the field.
#[test]
fn a_pod_with_an_unreadable_demand_is_told_so() {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["somewhere"]}]});
    let affinity = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
    });
    let mut world = World::seeded(5)
        .pool(pool("general"))
        .workload(deployment("web").replicas(1).asks("1 cpu").pod("affinity", affinity));
    world.run_for(minutes(1));
    assert!(world.cloud().live().is_empty());
    let told = world.events("FailedScheduling");
    assert!(
        matches!(&told[..], [message] if message.contains("matchFields")),
        "{told:?}"
    );
}
