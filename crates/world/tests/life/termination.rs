//! How a node ends, by whoever's hand.

use api::labels;
use jiff::SignedDuration;
use kube::ResourceExt;
use provider_sim::ledger::Deed;
use serde_json::json;
use world::{
    story::{CloudIsSilent, SlowTermination, deployment, minutes, nothing_runs, pods, pool, seconds, settled, that},
    world::World,
};

use super::{a_claim_is, claim_path, gone, node_path, only_claim, only_node, state, web, with_one_node};

/// Pods that do not share a node.
fn apart(name: &str, replicas: u32) -> world::story::Deployed {
    deployment(name).replicas(replicas).asks("1 cpu, 1Gi").apart()
}

/// LC-N6, LC-N15: a draining node is closed to load balancers, and `Drained` is Unknown until the last pod has gone.
#[test]
fn a_draining_node_is_closed_and_drained_once_its_pods_are_gone() {
    let mut world = with_one_node(pool("general"), web(2), 2);
    let node = only_node(&world);
    let name = node.name_any();
    world.delete_at(&node_path(&node));
    world.run_for(seconds(2));
    let node = only_node_named(&world, &name);
    assert_eq!(
        node.labels()["node.kubernetes.io/exclude-from-external-load-balancers"],
        "karpenter"
    );
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let closed = |taint: &k8s_openapi::api::core::v1::Taint| {
        taint.key == labels::taints::DISRUPTED && taint.effect == "NoSchedule"
    };
    assert!(taints.iter().any(closed));
    world.expect(a_claim_is("Drained", "Unknown", "Draining"));
    world.run_until(a_claim_is("Drained", "True", "Drained"), minutes(2));
    world.expect(pods("web").none_on(&name));
    world.run_until(gone(&name), minutes(2));
    world.run_until(settled(), minutes(5));
}

fn only_node_named(world: &World, name: &str) -> std::sync::Arc<k8s_openapi::api::core::v1::Node> {
    let key = world::mirror::Key::cluster(name);
    world.scene().nodes.get(&key).expect("the node is still there")
}

/// LC-N5: the rules of a drain are looked at after every step, by the checkers.
#[test]
fn ten_nodes_end_at_once() {
    let mut world = World::seeded(7)
        .pool(pool("general"))
        .workload(apart("web", 10).max_unavailable(3));
    world.run_until(pods("web").running(10), minutes(5));
    let doomed = world.scene().nodes.all();
    assert_eq!(doomed.len(), 10);
    for node in &doomed {
        world.delete_at(&node_path(node));
    }
    for node in &doomed {
        world.run_until(gone(&node.name_any()), minutes(20));
    }
    world.run_until(settled(), minutes(5));
    world.expect(pods("web").running(10));
}

/// LC-N11, LC-Q4: a budget that says no is asked again, and the node goes soon after it says yes.
#[test]
fn a_budget_holds_a_node_until_it_says_yes() {
    let mut world = with_one_node(pool("general"), web(2).max_unavailable(0), 2);
    let name = only_node(&world).name_any();
    world.delete_at(&claim_path(&only_claim(&world)));
    world.run_for(minutes(10));
    world.expect(pods("web").running(2));
    let asked = world.counted("karpenter_pods_eviction_requests_total", "code=\"429\"");
    assert!(
        (50.0..150.0).contains(&asked),
        "two pods are asked for every ten seconds or so: {asked} requests in ten minutes"
    );
    let told = world.events("FailedDraining");
    assert!(
        told.iter().any(|message| message.contains("disruption budget")),
        "{told:?}"
    );

    let budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
    world.patch_at(budget, &json!({ "spec": { "maxUnavailable": 2 } }));
    // Told by the budget's change rather than found out by the next attempt.
    world.run_until(
        that("both pods are going", |moment| {
            let pods = moment.scene.pods.all();
            pods.iter()
                .filter(|pod| pod.metadata.deletion_timestamp.is_some())
                .count()
                == 2
        }),
        seconds(2),
    );
    world.run_until(gone(&name), minutes(2));
    assert!(world.counted("karpenter_pods_eviction_requests_total", "code=\"200\"") >= 2.0);
    world.run_until(settled(), minutes(5));
}

/// One pod that may not leave does not keep the others from leaving.
#[test]
fn nobody_queues_behind_a_pod_that_may_not_leave() {
    let kept = deployment("kept").replicas(1).asks("100m cpu").max_unavailable(0);
    let mut world = World::seeded(7)
        .pool(pool("general"))
        .workload(kept)
        .workload(deployment("web").replicas(60).asks("100m cpu, 10Mi"));
    world.run_until(pods("web").running(60), minutes(5));
    world.run_until(pods("kept").running(1), minutes(1));
    let pods_now = world.scene().pods.all();
    let kept = pods_now
        .iter()
        .find(|pod| pod.labels().get("app").is_some_and(|app| app == "kept"));
    let name = kept
        .and_then(|pod| pod.spec.as_ref()?.node_name.clone())
        .expect("it runs somewhere");
    world.delete_at(&format!("/api/v1/nodes/{name}"));
    world.run_until(pods("web").none_on(&name), seconds(30));
    world.run_for(minutes(5));
    world.expect(pods("kept").running(1));
    world.expect(pods("web").running(60));
    world.delete_at("/apis/policy/v1/namespaces/default/poddisruptionbudgets/kept");
    world.run_until(gone(&name), minutes(2));
}

/// LC-N3.
#[test]
fn a_node_of_nobody_we_know_is_left_alone() {
    let mut world = World::seeded(7).pool(pool("general"));
    world.create(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "foreign", "finalizers": ["karpenter.sh/termination"] },
        "spec": { "providerID": "other://1" },
    }));
    world.delete_at("/api/v1/nodes/foreign");
    world.run_for(minutes(10));
    let node = only_node(&world);
    assert_eq!(node.finalizers(), ["karpenter.sh/termination"]);
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    assert!(taints.iter().all(|taint| taint.key != labels::taints::DISRUPTED));
}

/// LC-N29, and lifecycle.md 18.7: what is counted is what happened, once.
#[test]
fn a_life_is_counted_once() {
    let mut world = with_one_node(pool("general"), web(2), 2);
    for created in ["karpenter_nodeclaims_created_total", "karpenter_nodes_created_total"] {
        assert_eq!(world.counted(created, "nodepool=\"general\""), 1.0, "{created}");
    }
    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(10));
    for ended in [
        "karpenter_nodes_terminated_total",
        "karpenter_nodes_drained_total",
        "karpenter_nodes_lifetime_duration_seconds_count",
        "karpenter_nodeclaims_terminated_total",
        "karpenter_nodeclaims_termination_duration_seconds_count",
        "karpenter_nodeclaims_instance_termination_duration_seconds_count",
        "karpenter_nodeclaims_disrupted_total",
    ] {
        assert_eq!(world.counted(ended, "nodepool=\"general\""), 1.0, "{ended}");
    }
}

/// LC-T5: both finalizers stay until the cloud has said that nothing is left, and it is asked every five seconds.
#[test]
fn finalizers_outlive_the_instance() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(1), 1);
    world.inject(SlowTermination(SignedDuration::from_mins(2)));
    let name = only_node(&world).name_any();
    world.delete_at(&claim_path(&only_claim(&world)));
    world.run_until(
        a_claim_is("InstanceTerminating", "True", "InstanceTerminating"),
        minutes(1),
    );
    world.run_for(minutes(1));
    let key = world::mirror::Key::cluster(&*name);
    let claim = world.scene().node_claims.get(&key).expect("the claim is still there");
    assert_eq!(claim.finalizers(), ["karpenter.sh/termination"]);
    assert_eq!(
        only_node_named(&world, &name).finalizers(),
        ["karpenter.sh/termination"]
    );
    let ledger = world.cloud().ledger();
    let asked = ledger
        .iter()
        .filter(|entry| matches!(&entry.deed, Deed::TerminationAsked { .. }))
        .count();
    assert!((12..=14).contains(&asked), "asked {asked} times in a minute");
    world.run_until(gone(&name), minutes(3));
}

/// LC-T4: a cloud that does not answer is asked again.
#[test]
fn a_cloud_that_does_not_answer_is_asked_again() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(1), 1);
    world.inject(CloudIsSilent(1.0));
    let name = only_node(&world).name_any();
    world.delete_at(&claim_path(&only_claim(&world)));
    world.run_for(minutes(5));
    let key = world::mirror::Key::cluster(&*name);
    assert!(world.scene().node_claims.contains(&key));
    world.calm();
    world.run_until(gone(&name), minutes(1));
}

/// LC-N25: volumes are waited for and named.
#[test]
fn a_node_waits_for_its_volumes() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(1), 1);
    let name = only_node(&world).name_any();
    world.create(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": "va-1" },
        "spec": { "attacher": "csi.example.com", "nodeName": name, "source": { "persistentVolumeName": "pv-1" } },
    }));
    world.delete_at(&claim_path(&only_claim(&world)));
    world.run_until(
        a_claim_is("VolumesDetached", "Unknown", "AwaitingVolumeDetachment"),
        minutes(1),
    );
    world.run_for(minutes(3));
    assert_eq!(
        world.events("AwaitingVolumeDetachment")[0],
        "Awaiting deletion of bound volumeattachments (va-1)"
    );
    world.delete_at("/apis/storage.k8s.io/v1/volumeattachments/va-1");
    world.run_until(gone(&name), minutes(1));
}

/// Lifecycle.md 22.16: a deadline that cannot be read is told of and taken for none.
#[test]
fn a_deadline_that_cannot_be_read_does_not_stop_a_drain() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(1), 1);
    let claim = only_claim(&world);
    let nonsense = json!({ "metadata": { "annotations": { "karpenter.sh/nodeclaim-termination-timestamp": "soon" } } });
    world.patch_at(&claim_path(&claim), &nonsense);
    assert_eq!(state(&claim, "Drained"), None);
    world.delete_at(&claim_path(&claim));
    world.run_until(gone(&claim.name_any()), minutes(2));
    let told = world.events("InvalidTerminationTimestamp");
    assert!(told[0].contains("\"soon\""), "{told:?}");
}
