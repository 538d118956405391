//! Nodes that are there before their kubelets, and pods that are bound to them. No Provisioner is needed for that.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use serde_json::json;
use world::{
    story::{KubeletsNeverRegister, deployment, nothing_runs, pods, pool},
    world::World,
};

use crate::objects::minutes;

const BOTH: &str = "NodePreRegistration=true,ProactiveBinding=true";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Those of Karpenter; the cluster has its own for nodes that are not ready.
fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints = taints.filter(|taint| taint.key.starts_with("karpenter.sh/"));
    taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

/// A thousand pods have their nodes while no kubelet has reported and the scheduler has nothing to offer. The rules of
/// the world see to it that none is bound twice, and that no node is asked for more than it turns out to have.
#[test]
fn a_thousand_pods_are_bound_to_nodes_that_are_yet_to_come() {
    let mut world = World::gated(21, BOTH).pool(pool("general"));
    world.create(deployment("web").replicas(1_000).asks("1 cpu, 1Gi"));
    let bound = |world: &World| {
        world
            .scene()
            .pods
            .all()
            .iter()
            .filter(|pod| node_of(pod).is_some())
            .count()
    };
    while bound(&world) < 1_000 {
        assert!(
            !world.scene().nodes.all().iter().any(|node| is_ready(node)),
            "only {} are bound",
            bound(&world)
        );
        world.run_for(seconds(1));
    }
    let nodes = world.scene().nodes.all();
    assert!(
        nodes.iter().all(|node| !is_ready(node)),
        "no scheduler would have bound anything yet"
    );
    assert!(
        nodes
            .iter()
            .all(|node| taints(node) == ["karpenter.sh/not-ready:NoSchedule"])
    );
    let places: BTreeMap<String, Option<String>> = places(&world);

    world.run_until(pods("web").running(1_000), minutes(10));
    assert_eq!(places, self::places(&world), "every pod runs where it was bound to");
    assert_eq!(
        world.scene().nodes.len(),
        nodes.len(),
        "nothing was launched for pods that had a place"
    );
    assert!(world.scene().nodes.all().iter().all(|node| taints(node).is_empty()));
    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(20));
}

fn places(world: &World) -> BTreeMap<String, Option<String>> {
    let all = world.scene().pods.all();
    all.iter().map(|pod| (pod.name_any(), node_of(pod))).collect()
}

/// Without the second gate the node is only announced: it repels pods until its kubelet has joined it.
#[test]
fn a_node_is_announced_before_its_kubelet_joins_it() {
    let mut world = World::gated(22, "NodePreRegistration=true").pool(pool("general"));
    world.create(deployment("web").replicas(1).asks("1 cpu, 1Gi"));
    world.run_for(seconds(5));
    let [node] = world.scene().nodes.all().try_into().expect("the node is announced");
    assert_eq!(taints(&node), ["karpenter.sh/unregistered:NoExecute"]);
    assert_eq!(node.finalizers(), ["karpenter.sh/termination"]);
    assert!(node.status.as_ref().is_none_or(|status| status.conditions.is_none()));
    let [claim] = world.scene().node_claims.all().try_into().expect("one claim");
    let registered = |claim: &api::v1::NodeClaim| {
        let listed = claim
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        listed
            .into_iter()
            .any(|one| one.type_ == "Registered" && one.status == "True")
    };
    assert!(!registered(&claim), "nobody has joined");
    world.run_until(pods("web").running(1), minutes(5));
    assert!(registered(&world.scene().node_claims.all()[0]));
}

/// Taints that a pod does not tolerate, and volumes that have no place yet, are the scheduler's business.
#[test]
fn pods_that_wait_for_more_than_a_node_are_left_to_the_scheduler() {
    let mut world = World::gated(23, BOTH).pool(pool("general"));
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}},
    });
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": "example.com/late", "volumeBindingMode": "WaitForFirstConsumer",
    });
    world.create(class);
    world.create(claim);
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    world.create(deployment("late").replicas(1).asks("1 cpu").pod("volumes", volumes));
    world.create(deployment("soon").replicas(1).asks("1 cpu"));
    world.run_for(seconds(6));
    let bound: Vec<bool> = places(&world).into_values().map(|node| node.is_some()).collect();
    assert_eq!(bound, [false, true], "of late and soon");
}

/// The node and its pods go when the claim's time is over, and the pods' successors get a node that comes.
#[test]
fn a_node_that_never_joins_frees_its_pods() {
    let mut world = World::gated(24, BOTH).pool(pool("general"));
    world.inject(KubeletsNeverRegister(1.0));
    world.create(deployment("web").replicas(3).asks("1 cpu, 1Gi"));
    world.run_for(seconds(10));
    let first = places(&world);
    assert!(first.values().all(Option::is_some), "{first:?}");
    world.calm_cloud();
    world.run_until(pods("web").running(3), minutes(25));
    let after = places(&world);
    assert!(after.keys().all(|pod| !first.contains_key(pod)), "they are others");
    let gone: Vec<_> = first.values().flatten().collect();
    assert!(
        world
            .scene()
            .nodes
            .all()
            .iter()
            .all(|node| !gone.contains(&&node.name_any()))
    );
}
