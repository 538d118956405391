//! Claims, nodes and pools through the production controllers, in a simulated world on virtual time.
//!
//! Each test is one turn that a node's life can take. Storms and the long stories live with crate `world`.

use std::time::Duration;

use api::conditions;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use world::{
    story::{
        Condition, Created, Deployed, InsufficientCapacity, KubeletsNeverRegister, deployment, nothing_runs, pods,
        pool, that,
    },
    world::World,
};

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An object in the form in which users write it.
struct Raw(Value);

impl Created for Raw {
    fn objects(self) -> Vec<Value> {
        vec![self.0]
    }
}

fn web(replicas: u32) -> Deployed {
    deployment("web").replicas(replicas).asks("1 cpu, 1Gi")
}

/// A world in which two pods run on one node that nobody consolidates.
fn settled_world(pool: impl Created) -> World {
    let mut world = World::seeded(7).pool(pool).workload(web(2));
    world.run_until(pods("web").running(2), minutes(5));
    assert_eq!(world.scene().nodes.len(), 1);
    world
}

fn request(world: &World, method: Method, path: &str, body: &Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/merge-patch+json");
    let body = if body.is_null() {
        Bytes::new()
    } else {
        Bytes::from(body.to_string())
    };
    let answer = world.server().handle(request.body(body).expect("a request"));
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

fn only_node(world: &World) -> String {
    world.scene().nodes.all()[0]
        .metadata
        .name
        .clone()
        .expect("nodes have names")
}

fn gone(node: String) -> Condition {
    that("the first node is gone", move |moment| {
        moment
            .scene
            .nodes
            .all()
            .iter()
            .all(|found| found.metadata.name.as_deref() != Some(&node))
            && moment
                .scene
                .node_claims
                .all()
                .iter()
                .all(|claim| claim.metadata.deletion_timestamp.is_none())
    })
}

/// LC-N4, LC-N1, LC-T1: a user deletes the node; claim and instance go with it, and its pods run elsewhere.
#[test]
fn a_node_deleted_by_hand_is_drained_and_replaced() {
    let mut world = settled_world(pool("general"));
    let node = only_node(&world);
    request(&world, Method::DELETE, &format!("/api/v1/nodes/{node}"), &Value::Null);
    world.run_until(gone(node), minutes(5));
    world.run_until(pods("web").running(2), minutes(5));
    assert_eq!(world.cloud().live().len(), 1);
}

/// LC-X1, LC-X5.
#[test]
fn an_expired_node_is_replaced_by_one() {
    let mut world = settled_world(pool("general").expire_after("10m"));
    let node = only_node(&world);
    world.run_until(gone(node), minutes(15));
    world.run_until(pods("web").running(2), minutes(5));
    assert_eq!(world.cloud().live().len(), 1);
}

/// LC-C1: the machine vanishes under a node; the claim is collected and the pods find another.
#[test]
fn a_claim_whose_machine_vanished_is_collected() {
    let mut world = settled_world(pool("general"));
    let node = only_node(&world);
    let machine = world.cloud().live()[0].clone();
    let id = provider_sim::machine::provider_id(&node);
    assert!(
        world.cloud().interrupt(&id, jiff::SignedDuration::ZERO),
        "{machine:?} is running"
    );
    world.run_until(gone(node), minutes(15));
    world.run_until(pods("web").running(2), minutes(10));
}

/// LC-V1: a kubelet that never comes is given up after fifteen minutes, and another is tried.
#[test]
fn a_machine_whose_kubelet_never_registers_is_given_up() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(0));
    world.inject(KubeletsNeverRegister(1.0));
    world.scale("Deployment", "web", 2);
    world.run_for(minutes(14));
    assert_eq!((world.scene().node_claims.len(), world.scene().nodes.len()), (1, 0));
    let first = world.scene().node_claims.all()[0].metadata.name.clone();
    world.calm();
    world.run_until(pods("web").running(2), minutes(10));
    assert_ne!(world.scene().node_claims.all()[0].metadata.name, first);
    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(10));
}

/// LC-L3: a claim that cannot be had is given up at once; the pods run when there is capacity again.
#[test]
fn a_claim_without_capacity_is_given_up_and_tried_anew() {
    let mut world = World::seeded(7).pool(pool("general")).workload(web(0));
    world.run_for(seconds(5));
    world.inject(InsufficientCapacity(None));
    world.scale("Deployment", "web", 2);
    world.run_for(minutes(3));
    assert!(world.cloud().live().is_empty());
    world.calm();
    world.run_until(pods("web").running(2), minutes(10));
}

/// Deliverable "bad input": a pool that passes the schema and fails the runtime rules says which field, and launches
/// nothing.
#[test]
fn a_pool_that_means_nothing_says_so_and_launches_nothing() {
    let mut bad = pool("bad").objects().remove(0);
    bad["spec"]["template"]["metadata"] = json!({"labels": {"spaces are not allowed": "x"}});
    let mut world = World::seeded(7).pool(Raw(bad)).workload(web(2));
    world.run_for(minutes(2));
    let pool = world.scene().node_pools.all()[0].clone();
    let listed = pool
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let found = conditions::find(&listed, "ValidationSucceeded").expect("the condition is there");
    assert_eq!(
        (found.status.as_str(), found.reason.as_str()),
        ("False", "NodePoolValidationFailed")
    );
    assert!(
        found.message.contains("spec.template.metadata.labels"),
        "{}",
        found.message
    );
    assert!(!conditions::is_true(&listed, "Ready"));
    assert!(world.scene().node_claims.is_empty());
}

/// LC-L2, LC-P6: pools of another provider's class are left alone.
#[test]
fn another_providers_pool_is_left_alone() {
    let mut foreign = pool("foreign").objects().remove(0);
    foreign["spec"]["template"]["spec"]["nodeClassRef"] =
        json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"});
    let mut world = World::seeded(7).pool(Raw(foreign)).workload(web(2));
    world.run_for(minutes(2));
    let pool = world.scene().node_pools.all()[0].clone();
    assert!(pool.status.as_ref().is_none_or(|status| status.conditions.is_none()));
    assert!(world.scene().node_claims.is_empty());
}

/// LC-N28, LC-N20: a protected pod holds its node until the claim's grace period is over.
#[test]
fn a_protected_pod_holds_its_node_until_the_deadline() {
    let protected = web(1).annotate("karpenter.sh/do-not-disrupt", "true");
    let mut world = World::seeded(7)
        .pool(pool("general").termination_grace_period("5m"))
        .workload(protected);
    world.run_until(pods("web").running(1), minutes(5));
    let node = only_node(&world);
    let started = world.now();
    request(&world, Method::DELETE, &format!("/api/v1/nodes/{node}"), &Value::Null);
    world.run_for(minutes(4));
    assert!(
        world
            .scene()
            .nodes
            .all()
            .iter()
            .any(|found| found.metadata.name.as_deref() == Some(&node))
    );
    world.run_until(gone(node), minutes(4));
    let took = world.now().duration_since(started).as_secs();
    assert!((240..=360).contains(&took), "{took} s");
    world.run_until(pods("web").running(1), minutes(5));
}

/// SC 4.6 and the invariant: a limit is never exceeded, and pods beyond it wait.
#[test]
fn pods_beyond_a_limit_wait() {
    let mut world = World::seeded(7)
        .pool(
            pool("general")
                .limit("cpu", "4")
                .instance_types(["c-4x-amd64-linux", "c-2x-amd64-linux"]),
        )
        .workload(web(20));
    world.run_for(minutes(5));
    assert!(!world.scene().node_claims.is_empty());
    let cpu: i64 = world.scene().node_pools.all()[0]
        .status
        .as_ref()
        .and_then(|status| status.resources.as_ref()?.get("cpu")?.0.parse().ok())
        .expect("the pool counts its cpu");
    assert!(cpu <= 4, "{cpu}");
}

/// LC-S16, by the API server's hand: the claims of a deleted pool go with it.
#[test]
fn the_nodes_of_a_deleted_pool_go() {
    let mut world = settled_world(pool("general"));
    request(
        &world,
        Method::DELETE,
        "/apis/karpenter.sh/v1/nodepools/general",
        &Value::Null,
    );
    world.run_until(nothing_runs(), minutes(5));
}
