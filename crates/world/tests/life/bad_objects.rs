//! Objects that make no sense: a condition or an event names the problem, and the rest of the cluster goes on.

use kube::ResourceExt;
use serde_json::{Value, json};
use world::{
    story::{minutes, pods, pool, seconds, settled, that},
    world::World,
};

use super::{claim_path, gone, is, node_path, only_node, state, web, with_one_node};

fn claim(name: &str, labels: Value, class: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "labels": labels },
        "spec": { "requirements": [], "nodeClassRef": class },
    })
}

fn kwok(name: &str) -> Value {
    json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name })
}

/// The rest of the cluster goes on: pods that come now run.
fn goes_on(world: &mut World) {
    world.create(web(2));
    world.run_until(pods("web").running(2), minutes(3));
}

/// A class that is not there: the claim is given up and says why. A kind of class that we do not serve: it is not ours.
#[test]
fn a_claim_of_an_unknown_class_is_given_up_and_says_why() {
    let mut world = World::seeded(7).pool(pool("general"));
    let foreign = json!({ "group": "example.com", "kind": "Rack", "name": "default" });
    world.create(claim("lost", json!({}), kwok("nowhere")));
    world.create(claim("foreign", json!({}), foreign));
    world.run_for(seconds(5));
    world.run_until(gone("lost"), minutes(1));
    let told = world.events("InsufficientCapacityError");
    assert!(told[0].contains("lost") && told[0].contains("nowhere"), "{told:?}");
    goes_on(&mut world);
    let foreign = world.scene().node_claims.get(&world::mirror::Key::cluster("foreign"));
    let foreign = foreign.expect("it is left alone");
    assert_eq!((foreign.finalizers().len(), foreign.status.is_none()), (0, true));
}

/// A provider id that means nothing: the machine behind it cannot be found, so the claim is collected and replaced.
#[test]
fn a_claim_with_a_provider_id_of_no_instance_is_collected() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(2), 2);
    let claim = super::only_claim(&world);
    let nonsense = json!({ "status": { "providerID": "not an id" } });
    world.patch_at(&format!("{}/status", claim_path(&claim)), &nonsense);
    world.run_until(gone(&claim.name_any()), minutes(10));
    world.run_until(settled(), minutes(5));
    world.expect(pods("web").running(2));
}

/// Two claims that name one instance: both say so, and neither ends the machine while the other may need it.
#[test]
fn two_claims_of_one_instance_say_so() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(2), 2);
    let (first, node) = (super::only_claim(&world), only_node(&world));
    world.create(claim("second", json!({}), kwok("default")));
    world.run_for(minutes(1));
    let id = first.status.as_ref().and_then(|status| status.provider_id.clone());
    let second = "/apis/karpenter.sh/v1/nodeclaims/second";
    world.patch_at(&format!("{second}/status"), &json!({ "status": { "providerID": id } }));
    world.run_for(minutes(12));
    for claim in world.scene().node_claims.all() {
        assert_eq!(
            state(&claim, "ConsistentStateFound"),
            is("False", "ConsistencyCheckFailed"),
            "{}",
            claim.name_any()
        );
    }
    let told = world.events("FailedConsistencyCheck");
    assert!(
        told.iter()
            .any(|message| message.contains("also claimed by nodeclaim second")),
        "{told:?}"
    );
    world.expect(pods("web").running(2));
    assert_eq!(node.name_any(), only_node(&world).name_any());
}

/// A node that somebody took all labels off gets the one that makes it ours back, and ends as others do.
#[test]
fn a_node_without_labels_is_still_ours() {
    let mut world = with_one_node(pool("general").consolidate_after("Never"), web(2), 2);
    let node = only_node(&world);
    world.patch_at(&node_path(&node), &json!({ "metadata": { "labels": null } }));
    world.run_for(seconds(5));
    assert_eq!(only_node(&world).labels()["karpenter.kwok.sh/kwoknodeclass"], "default");
    world.delete_at(&node_path(&node));
    world.run_for(seconds(1));
    world.patch_at(&node_path(&node), &json!({ "metadata": { "labels": null } }));
    world.run_until(gone(&node.name_any()), minutes(3));
    world.run_until(settled(), minutes(5));
}

/// Pods that nobody owns, as a deletion that orphans leaves them, go with their node like others.
#[test]
fn pods_of_nobody_are_evicted_like_others() {
    let mut world = World::seeded(7).pool(pool("general").consolidate_after("Never"));
    let container = json!({ "name": "main", "image": "x", "resources": { "requests": { "cpu": "1" } } });
    world.create(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "orphan", "namespace": "default", "labels": { "app": "orphan" } },
        "spec": { "containers": [container], "terminationGracePeriodSeconds": 5 },
    }));
    world.run_until(pods("orphan").running(1), minutes(3));
    let name = only_node(&world).name_any();
    world.delete_at(&node_path(&only_node(&world)));
    world.run_until(gone(&name), minutes(2));
    world.expect(that("the orphan is gone", |moment| moment.scene.pods.is_empty()));
    goes_on(&mut world);
}

/// A label of a pool that is not there, as a restore from a backup would leave it: the claim lives by its own words.
#[test]
fn a_claim_of_an_unknown_pool_lives_by_its_own_words() {
    let mut world = World::seeded(7).pool(pool("general"));
    world.run_for(seconds(1));
    let uid = world.scene().node_pools.all()[0].metadata.uid.clone();
    let mut claim = claim("orphan", json!({ "karpenter.sh/nodepool": "general" }), kwok("default"));
    claim["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general", "uid": uid }]);
    world.create(claim);
    world.run_until(super::a_claim_is("Initialized", "True", "Initialized"), minutes(2));
    let rename = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "vanished" } } });
    world.patch_at("/apis/karpenter.sh/v1/nodeclaims/orphan", &rename);
    world.run_for(minutes(10));
    let orphan = world.scene().node_claims.get(&world::mirror::Key::cluster("orphan"));
    assert_eq!(orphan.map(|claim| state(&claim, "Ready")), Some(is("True", "Ready")));
    goes_on(&mut world);
}
