//! Provisioners and the pools that follow them.

use std::time::Duration;

use api::labels::{NODE_POOL, PROVISIONER_NAME};
use kube::ResourceExt;
use serde_json::{Value, json};
use world::story::{deployment, nothing_runs, pods, pool};

use crate::objects::{ALPHA, KWOK, V1, class, condition, minutes, provisioner, until, until_gone, world};

/// LE18.18. From nothing to nodes that bear the names of both generations, and back: the empty node goes after its TTL.
#[test]
fn pods_that_ask_for_a_provisioner_run_on_nodes_of_its_pool() {
    let mut world = world(1);
    world.create(provisioner("default", json!({"labels": {"team": "a"}})));
    world.create(provisioner("other", json!({})));
    let selects = json!({PROVISIONER_NAME: "default"});
    let spread = json!([{
        "maxSkew": 5, "topologyKey": PROVISIONER_NAME, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let web = deployment("web").replicas(3).asks("1 cpu, 1Gi");
    world.create(
        web.pod("nodeSelector", selects)
            .pod("topologySpreadConstraints", spread),
    );
    world.run_until(pods("web").running(3), minutes(5));
    let node = world.scene().nodes.all().remove(0);
    assert_eq!(
        (&*node.labels()[PROVISIONER_NAME], &*node.labels()[NODE_POOL]),
        ("default", "default")
    );
    assert_eq!(node.labels()["team"], "a");

    let told = until(&mut world, ALPHA, "Provisioner", "default", |object| {
        condition(object, "Active") == "True Active" && object.pointer("/status/resources/cpu").is_some()
    });
    assert_eq!(condition(&told, "Converted"), "True Converted");
    let claims = world.scene().node_claims.all();
    assert!(claims.iter().all(|claim| claim.labels()[PROVISIONER_NAME] == "default"));

    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(5));
}

/// A pool that somebody wrote in today's words has no old label, so that no pod that asks for it waits in vain.
#[test]
fn a_native_pool_does_not_answer_to_the_name_of_a_provisioner() {
    let mut world = world(2).pool(class()).pool(pool("native"));
    let selects = json!({PROVISIONER_NAME: "native"});
    world.create(
        deployment("lost")
            .replicas(1)
            .asks("1 cpu")
            .pod("nodeSelector", selects),
    );
    world.create(deployment("found").replicas(1).asks("1 cpu"));
    world.run_until(pods("found").running(1), minutes(5));
    world.run_for(minutes(5));
    let nodes = world.scene().nodes.all();
    assert_eq!(nodes.len(), 1, "nothing was launched for the other");
    assert!(nodes.iter().all(|node| !node.labels().contains_key(PROVISIONER_NAME)));
}

/// LE18.17
#[test]
fn a_native_pool_of_the_same_name_wins() {
    let mut world = world(3).pool(class()).pool(pool("default").limit("cpu", "7"));
    world.run_for(minutes(1));
    let before = world.object(V1, "NodePool", "default").expect("the pool");
    world.create(provisioner("default", json!({})));
    let told = until(&mut world, ALPHA, "Provisioner", "default", |object| {
        condition(object, "Converted") == "False NameConflict"
    });
    assert_eq!(condition(&told, "Active"), "False NotConverted");
    let after = world.object(V1, "NodePool", "default").expect("the pool");
    assert_eq!(
        (&after["spec"], &after["metadata"]["labels"]),
        (&before["spec"], &before["metadata"]["labels"])
    );
    let class = world.object(KWOK, "KWOKNodeClass", "default").expect("the class");
    assert!(class["metadata"]["labels"].is_null(), "neither is the class touched");
    assert!(world.told_about("NameConflict").contains("default"));
}

#[test]
fn what_is_converted_is_put_right_and_what_users_add_stays() {
    let mut world = world(4);
    world.create(provisioner("default", json!({"weight": 10})));
    until(&mut world, V1, "NodePool", "default", |pool| {
        pool["spec"]["weight"] == 10
    });
    let edit = json!({"spec": {"weight": 20, "disruption": {"budgets": [{"nodes": "1"}]}}});
    world.patch(V1, "NodePool", "default", edit);
    let pool = until(&mut world, V1, "NodePool", "default", |pool| {
        pool["spec"]["weight"] == 10
    });
    assert_eq!(pool["spec"]["disruption"]["budgets"], json!([{"nodes": "1"}]));
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "30s");

    world.patch(
        ALPHA,
        "Provisioner",
        "default",
        json!({"spec": {"ttlSecondsAfterEmpty": 60, "ttlSecondsUntilExpired": 3600}}),
    );
    let pool = until(&mut world, V1, "NodePool", "default", |pool| {
        pool["spec"]["disruption"]["consolidateAfter"] == "1m0s"
    });
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "1h0m0s");
    assert_eq!(pool["spec"]["disruption"]["budgets"], json!([{"nodes": "1"}]));
}

#[test]
fn a_provisioner_that_is_wrong_is_told_so_and_its_pool_stays_as_it_was() {
    let mut world = world(5);
    world.create(provisioner("default", json!({"weight": 10})));
    let before = until(&mut world, V1, "NodePool", "default", |_| true);
    world.patch(
        ALPHA,
        "Provisioner",
        "default",
        json!({"spec": {"weight": 20, "consolidation": {"enabled": true}}}),
    );
    let told = until(&mut world, ALPHA, "Provisioner", "default", |object| {
        condition(object, "Converted") == "False ValidationFailed"
    });
    let listed = told["status"]["conditions"].as_array().expect("conditions");
    let message = listed
        .iter()
        .find(|one| one["type"] == "Converted")
        .expect("it is there")["message"]
        .clone();
    assert!(
        message
            .as_str()
            .is_some_and(|text| text.contains("ttlSecondsAfterEmpty")),
        "{message}"
    );
    assert_eq!(
        world.object(V1, "NodePool", "default").expect("the pool")["spec"],
        before["spec"]
    );
    assert!(world.told_about("ValidationFailed").contains("default"));
}

/// Deleting the label hands the pool over: edits stay, and so does the pool when its Provisioner goes.
#[test]
fn a_pool_without_the_label_is_its_users() {
    let mut world = world(6);
    world.create(provisioner("default", json!({"weight": 10})));
    until(&mut world, V1, "NodePool", "default", |_| true);
    let take = json!({"metadata": {"labels": {"compatibility.karpenter.sh/managed": null}}, "spec": {"weight": 20}});
    world.patch(V1, "NodePool", "default", take);
    let told = until(&mut world, ALPHA, "Provisioner", "default", |object| {
        condition(object, "Converted") == "True Adopted"
    });
    assert_eq!(condition(&told, "Active"), "True Active");
    let pool = until(&mut world, V1, "NodePool", "default", |pool| {
        pool["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
    });
    assert_eq!(pool["spec"]["weight"], 20);
    world.delete(ALPHA, "Provisioner", "default");
    until_gone(&mut world, ALPHA, "Provisioner", "default");
    world.run_for(minutes(2));
    assert!(world.object(V1, "NodePool", "default").is_some(), "it stays");
}

/// As 0.12 and later did: pool, claims, nodes and instances go with their Provisioner.
#[test]
fn a_provisioner_takes_everything_with_it() {
    let mut world = world(7);
    world.create(provisioner("default", json!({})));
    world.create(deployment("web").replicas(2).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(2), minutes(5));
    world.delete(ALPHA, "Provisioner", "default");
    until_gone(&mut world, V1, "NodePool", "default");
    world.run_until(nothing_runs(), minutes(10));
    until_gone(&mut world, KWOK, "KWOKNodeClass", "default");
}

/// LE18.13, in a cluster: the copy for other kubelet settings comes, and goes with the last pool that wants it.
#[test]
fn a_copy_of_a_class_goes_when_no_pool_wants_it() {
    let mut world = world(8);
    let template = json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "shared"},
        "spec": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}, "instanceProfile": "p"},
    });
    world.create(template);
    let using = |name: &str, pods: u32| {
        let mut object = provisioner(
            name,
            json!({
                "providerRef": {"name": "shared"}, "kubeletConfiguration": {"maxPods": pods},
            }),
        );
        object["spec"].as_object_mut().expect("a spec").remove("provider");
        object
    };
    world.create(using("one", 10));
    world.create(using("other", 20));
    let class = |pool: &Value| {
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let other = until(&mut world, V1, "NodePool", "other", |pool| {
        class(pool).starts_with("shared-")
    });
    let copy = class(&other);
    until(&mut world, KWOK, "KWOKNodeClass", &copy, |_| true);
    world.patch(
        ALPHA,
        "Provisioner",
        "other",
        json!({"spec": {"kubeletConfiguration": {"maxPods": 10}}}),
    );
    until(&mut world, V1, "NodePool", "other", |pool| class(pool) == "shared");
    until_gone(&mut world, KWOK, "KWOKNodeClass", &copy);
}

/// What pods and nodes said then still counts: `do-not-evict` keeps a node from being disrupted, and
/// `do-not-consolidate` keeps an empty one.
#[test]
fn old_annotations_protect_pods_and_nodes() {
    let mut world = world(9);
    world.create(provisioner("default", json!({})));
    world.create(deployment("web").replicas(1).asks("1 cpu, 1Gi"));
    world.run_until(pods("web").running(1), minutes(5));
    let node = world.scene().nodes.all().remove(0).name_any();
    let keep = |word: &Value| json!({"metadata": {"annotations": {"karpenter.sh/do-not-consolidate": word}}});
    world.patch("v1", "Node", &node, keep(&json!("true")));
    world.scale("Deployment", "web", 0);
    world.run_for(minutes(10));
    assert_eq!(world.scene().nodes.len(), 1, "the empty node stays");
    world.patch("v1", "Node", &node, keep(&json!(null)));
    world.run_until(nothing_runs(), Duration::from_secs(300));

    let guarded = deployment("guarded")
        .replicas(1)
        .asks("1 cpu")
        .annotate("karpenter.sh/do-not-evict", "true");
    world.create(guarded);
    world.run_until(pods("guarded").running(1), minutes(5));
    let claim = world.scene().node_claims.all().remove(0).name_any();
    // A changed template drifts the node, which would be replaced if its pod did not object.
    world.patch(
        ALPHA,
        "Provisioner",
        "default",
        json!({"spec": {"labels": {"team": "b"}}}),
    );
    world.run_for(minutes(10));
    assert!(
        world.object(V1, "NodeClaim", &claim).is_some(),
        "the pod keeps its node"
    );
}
