//! Capacity buffers in a seeded world: room is there before anybody needs it.

use operator::settings::Settings;
use provider_sim::Faults;
use serde_json::{Value, json};
use world::{
    story::{
        Condition, ControllerCrash, HOSTNAME, beside, deployment, minutes, nothing_runs, pods, pool, seconds, settled,
        that,
    },
    world::{Setup, World, karpenter_with},
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GROUP: &str = "autoscaling.x-k8s.io/v1beta1";

fn world(seed: u64) -> World {
    World::gated(seed, "CapacityBuffer=true")
}

fn buffer(name: &str, spec: Value) -> Value {
    let meta = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": GROUP, "kind": "CapacityBuffer", "metadata": meta, "spec": spec})
}

/// A template whose pods ask for so many processors, changed by fields of the pod's spec.
fn template(name: &str, cpu: &str, more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
    })
}

fn of_template(template: &str, replicas: u32) -> Value {
    json!({"podTemplateRef": {"name": template}, "replicas": replicas})
}

/// `status reason` of a condition, or nothing.
fn condition(world: &World, name: &str, type_: &str) -> String {
    let buffer = world
        .object(GROUP, "CapacityBuffer", name)
        .expect("the buffer is there");
    let conditions = buffer["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    })
}

fn replicas(world: &World, name: &str) -> Option<i64> {
    world
        .object(GROUP, "CapacityBuffer", name)
        .expect("the buffer is there")["status"]["replicas"]
        .as_i64()
}

fn nodes(count: usize) -> Condition {
    that(&format!("{count} nodes are ready"), move |moment| {
        let nodes = moment.scene.nodes.all();
        let ready = nodes.iter().filter(|node| {
            let labels = node.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.contains_key(api::labels::INITIALIZED))
        });
        ready.count() == count && moment.scene.node_claims.len() == count
    })
}

fn machines(world: &World) -> usize {
    world.scene().node_claims.len()
}

/// LC-B1, LC-B15: a buffer brings a node that stays although it is empty, and takes it along when it goes.
#[test]
fn a_buffer_brings_nodes_before_anybody_needs_them() {
    let mut world = world(7).pool(pool("general"));
    world.create(template("web", "1", json!({})));
    world.create(buffer("room", of_template("web", 3)));
    world.run_until(nodes(1), minutes(5));
    world.run_for(minutes(5));
    world.expect(nodes(1));
    assert_eq!(condition(&world, "room", "ReadyForProvisioning"), "True Resolved");
    assert_eq!(condition(&world, "room", "Provisioning"), "True FitsExistingCapacity");
    assert_eq!(replicas(&world, "room"), Some(3));
    world.expect(that("no virtual pod is written", |moment| moment.scene.pods.is_empty()));

    world.delete(GROUP, "CapacityBuffer", "room");
    world.run_until(nothing_runs(), minutes(10));
    world.run_until(settled(), minutes(5));
}

/// LC-B15: nodes that are ready before the next round looks at the buffer are not taken for empty.
#[test]
fn room_that_comes_at_once_stays() {
    let settings = Settings {
        feature_gates: "CapacityBuffer=true".parse().expect("gates are written Name=true"),
        ..Settings::default()
    };
    let mut world = World::new(Setup {
        cloud: Faults::default(),
        ..Setup::seeded(19, karpenter_with(settings))
    })
    .pool(pool("general").consolidate_after("0s"));
    world.create(template("web", "1", json!({})));
    world.create(buffer("room", of_template("web", 3)));
    world.run_until(nodes(1), minutes(1));
    let first = world.scene().node_claims.keys();
    world.run_for(minutes(3));
    assert_eq!(world.scene().node_claims.keys(), first);
}

/// LC-B15, LC-B11, SC15.22.3: a controller that has just started does not take the room for an empty node.
#[test]
fn room_survives_a_restart_of_the_controller() {
    let mut world = world(11).pool(pool("general"));
    world.create(template("web", "1", json!({})));
    world.create(buffer("room", of_template("web", 3)));
    world.run_until(nodes(1), minutes(5));
    world.run_for(minutes(2));
    let before = world.scene().node_claims.keys();
    world.inject(ControllerCrash);
    world.run_for(minutes(5));
    assert_eq!(world.scene().node_claims.keys(), before);
}

/// LC-B14: pods that come find their room at once, and the room is refilled behind them.
#[test]
fn room_that_is_used_is_refilled() {
    let mut world = world(3).pool(pool("general").instance_types(["c-4x-amd64-linux"]));
    world.create(template("web", "1", json!({})));
    world.create(buffer("room", of_template("web", 3)));
    world.run_until(nodes(1), minutes(5));
    world.run_for(minutes(1));
    world.create(deployment("web").replicas(3).asks("1 cpu"));
    world.run_until(pods("web").running(3), seconds(20));
    world.run_until(nodes(2), minutes(5));
    world.run_for(minutes(2));
    assert_eq!(condition(&world, "room", "Provisioning"), "True FitsExistingCapacity");
}

/// LC-B2, LC-B9: what is missing is said, and what comes or changes is noticed.
#[test]
fn a_buffer_follows_its_template() {
    let mut world = world(5).pool(pool("general"));
    world.create(buffer(
        "room",
        json!({"podTemplateRef": {"name": "web"}, "limits": {"cpu": "4"}}),
    ));
    world.run_for(minutes(1));
    assert_eq!(
        condition(&world, "room", "ReadyForProvisioning"),
        "False PodTemplateNotFound"
    );
    assert_eq!(machines(&world), 0);
    world.create(template("web", "1", json!({})));
    world.run_for(seconds(5));
    assert_eq!(
        (
            condition(&world, "room", "ReadyForProvisioning"),
            replicas(&world, "room")
        ),
        ("True Resolved".into(), Some(4))
    );
    let smaller = json!({"template": {"spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "2"}}}]}}});
    world.patch("v1", "PodTemplate", "web", smaller);
    world.run_for(seconds(5));
    assert_eq!(replicas(&world, "room"), Some(2));
}

/// LC-B1, LC-B2, LC-B4: a buffer that follows a workload.
#[test]
fn a_buffer_follows_a_workload_and_its_scale() {
    let mut world = world(5).pool(pool("general"));
    let follow = |kind: &str, name: &str| json!({"scalableRef": {"kind": kind, "name": name}, "percentage": 50});
    world.create(buffer("room", follow("Deployment", "web")));
    world.create(buffer("none", follow("StatefulSet", "none")));
    world.run_for(seconds(30));
    assert_eq!(
        condition(&world, "none", "ReadyForProvisioning"),
        "False ScalableRefNotFound"
    );
    assert_eq!(
        condition(&world, "none", "Provisioning"),
        "False NotReadyForProvisioning"
    );
    world.create(deployment("web").replicas(4).asks("1 cpu"));
    world.run_for(seconds(35));
    assert_eq!(replicas(&world, "room"), Some(2));
    world.scale("Deployment", "web", 9);
    world.run_for(seconds(35));
    assert_eq!(replicas(&world, "room"), Some(5));
    world.scale("Deployment", "web", 0);
    world.run_for(seconds(35));
    assert_eq!(replicas(&world, "room"), Some(0));
    world.run_for(minutes(1));
    assert_eq!(condition(&world, "room", "Provisioning"), "False BufferEmpty");
}

/// LC-B3, LC-B10: what cannot be followed is said, and nothing is launched for it.
#[test]
fn a_buffer_that_cannot_be_resolved_keeps_no_room() {
    let mut world = world(5).pool(pool("general"));
    world.create(buffer(
        "kind",
        json!({"scalableRef": {"kind": "DaemonSet", "name": "x"}, "replicas": 2}),
    ));
    let group = json!({"scalableRef": {"apiGroup": "example.com", "kind": "Deployment", "name": "x"}, "replicas": 2});
    world.create(buffer("group", group));
    world.create(buffer("nothing", json!({"replicas": 2})));
    world.run_for(minutes(2));
    for name in ["kind", "group", "nothing"] {
        assert_eq!(
            condition(&world, name, "ReadyForProvisioning"),
            "False ResolutionFailed",
            "{name}"
        );
    }
    assert_eq!(machines(&world), 0);
}

/// LC-B16, LC-B17: a pool's limit holds for buffers, and each buffer is judged by itself.
#[test]
fn buffers_share_a_pools_limit() {
    let limited = pool("general").instance_types(["c-4x-amd64-linux"]).limit("cpu", "4");
    let mut world = world(9).pool(limited);
    world.create(template("web", "1", json!({})));
    world.create(buffer("first", of_template("web", 2)));
    world.run_until(nodes(1), minutes(5));
    world.run_for(minutes(1));
    world.create(buffer("second", of_template("web", 8)));
    world.run_for(minutes(3));
    world.expect(nodes(1));
    assert_eq!(condition(&world, "second", "Provisioning"), "False RequiresNewCapacity");
    world.delete(GROUP, "CapacityBuffer", "second");
    world.run_for(minutes(1));
    assert_eq!(condition(&world, "first", "Provisioning"), "True FitsExistingCapacity");
}

/// LC-B18: virtual pods keep apart where real ones would.
#[test]
fn rules_of_the_template_hold_for_the_room() {
    let mut world = world(9).pool(pool("general"));
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        beside("apart", HOSTNAME)
    ]}}});
    world.create(template("apart", "100m", apart));
    world.create(template(
        "nowhere",
        "100m",
        json!({"nodeSelector": {"topology.kubernetes.io/zone": "nowhere"}}),
    ));
    world.create(buffer("apart", of_template("apart", 3)));
    world.create(buffer("nowhere", of_template("nowhere", 1)));
    world.run_until(nodes(3), minutes(5));
    world.run_for(minutes(2));
    world.expect(nodes(3));
    assert_eq!(
        condition(&world, "nowhere", "Provisioning"),
        "False RequiresNewCapacity"
    );
    assert!(
        world.events("FailedScheduling").is_empty(),
        "nobody is told about pods that do not exist"
    );
}

/// LC-B19.
#[test]
fn buffers_that_come_and_go_leave_nothing_behind() {
    let mut world = world(13).pool(pool("general"));
    world.create(template("web", "1", json!({})));
    for round in 0..5 {
        world.create(buffer(&format!("room-{round}"), of_template("web", 3)));
        world.run_for(seconds(1 + round));
        world.delete(GROUP, "CapacityBuffer", &format!("room-{round}"));
    }
    world.run_for(seconds(30));
    world.run_until(nothing_runs(), minutes(15));
    world.run_until(settled(), minutes(5));
}
