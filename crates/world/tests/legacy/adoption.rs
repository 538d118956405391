//! What ran before becomes claims, and keeps running.

use api::labels::{NODE_POOL, PROVISIONER_NAME};
use jiff::SignedDuration;
use model::{CapacityType, Labels, Offering, Resources};
use provider_sim::{
    Catalog,
    order::{Bid, Order},
};
use serde_json::{Value, json};
use world::{
    story::{Fault, Reach, deployment, nothing_runs, pods},
    world::World,
};

use crate::objects::{ALPHA, V1, condition, minutes, provisioner, until, until_gone, world};

/// An instance that another program has launched for a Provisioner.
struct Inherited;

impl Fault for Inherited {
    fn strike(self, reach: &Reach<'_>) {
        let shape = Catalog::generic()
            .all_shapes()
            .next()
            .expect("the catalog has a shape")
            .clone();
        let is_plain = |offering: &Offering| offering.capacity_type == CapacityType::OnDemand;
        let bid = Bid {
            offering: shape.offerings.iter().position(is_plain).expect("it can be had"),
            shape,
            reservation: None,
        };
        let delivered = reach.cloud.launch(Order {
            token: "of another program".to_owned(),
            claim: NODE.into(),
            pool: Some("default".into()),
            bids: vec![bid],
            registration_delay: SignedDuration::ZERO,
            requests: Resources::default(),
            labels: Labels::from_iter([(PROVISIONER_NAME.into(), "default".into())]),
            annotations: Labels::default(),
            taints: Vec::new(),
        });
        delivered.expect("the cloud behaves");
    }
}

/// A world with a Provisioner and one instance of its own time. Answers with the instance.
fn inherit(world: &mut World) -> String {
    world.create(provisioner("default", json!({"ttlSecondsAfterEmpty": 600})));
    until(world, ALPHA, "Provisioner", "default", |object| {
        condition(object, "Active") == "True Active"
    });
    world.inject(Inherited);
    world.cloud().machines().remove(0).provider_id.to_string()
}

/// Pods find room on the node that was there, and nothing is launched for them.
fn is_of_use(world: &mut World) {
    world.create(deployment("web").replicas(1).asks("100m cpu, 100Mi"));
    world.run_until(pods("web").running(1), minutes(5));
    world.run_for(minutes(5));
    assert_eq!(
        (world.scene().node_claims.len(), launches(world)),
        (1, 1),
        "nothing was launched"
    );
}

const NODE: &str = "ip-10-0-0-1";

fn launches(world: &World) -> usize {
    world.cloud().machines().len()
}

/// The node of a release before 0.28: no machine tells of it.
#[test]
fn a_node_of_a_provisioner_becomes_a_claim_of_its_pool() {
    let mut world = world(11);
    let instance = inherit(&mut world);
    world.run_for(minutes(2));
    let [claim] = world.scene().node_claims.all().try_into().expect("one claim");
    assert_eq!(
        claim.status.as_ref().and_then(|status| status.provider_id.clone()),
        Some(instance)
    );
    let taken = world.object("v1", "Node", NODE).expect("the node runs on");
    let labels = &taken["metadata"]["labels"];
    assert_eq!(
        (&labels[NODE_POOL], &labels[PROVISIONER_NAME]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(labels["karpenter.sh/registered"], "true");
    assert_eq!(condition(&json!(*claim), "Initialized"), "True Initialized");
    is_of_use(&mut world);

    world.delete("v1", "Node", NODE);
    world.scale("Deployment", "web", 0);
    world.run_until(nothing_runs(), minutes(10));
}

/// The machine of 0.28 to 0.32: its claim bears its name, and it goes without taking the instance along.
#[test]
fn a_machine_becomes_a_claim_and_goes() {
    let mut world = world(12);
    let instance = inherit(&mut world);
    let name = "default-x7k2p";
    let machine = json!({
        "apiVersion": ALPHA, "kind": "Machine",
        "metadata": {
            "name": name, "labels": {PROVISIONER_NAME: "default"}, "finalizers": ["karpenter.sh/termination"],
            "annotations": {"karpenter.sh/provisioner-hash": "1"},
        },
        "spec": {
            "requirements": [{"key": PROVISIONER_NAME, "operator": "In", "values": ["default"]}],
            "startupTaints": [{"key": "example.com/boot", "effect": "NoExecute"}],
            "machineTemplateRef": {"name": "default"},
        },
    });
    // A machine gets its status in a second step, and nobody is to look in between.
    world.controller().crash();
    world.create(machine);
    let status = json!({"status": {"providerID": instance, "nodeName": NODE, "conditions": [
        {"type": "MachineInitialized", "status": "True", "lastTransitionTime": "2023-01-01T00:00:00Z"},
    ]}});
    world.patch_at(&format!("/apis/{ALPHA}/machines/{name}/status"), &status);
    until_gone(&mut world, ALPHA, "Machine", name);
    let claim = until(&mut world, V1, "NodeClaim", name, |claim| {
        condition(claim, "Initialized") == "True Initialized"
    });
    assert_eq!(claim["status"]["providerID"].as_str(), Some(&*instance));
    assert_eq!(
        claim["metadata"]["annotations"]["karpenter.sh/provisioner-hash"],
        Value::Null
    );
    assert_eq!(
        claim["spec"]["requirements"],
        json!([{"key": NODE_POOL, "operator": "In", "values": ["default"]}])
    );
    let taken = world.object("v1", "Node", NODE).expect("the node runs on");
    let taints = taken["spec"]["taints"].as_array().cloned().unwrap_or_default();
    assert!(taints.is_empty(), "pods are not driven away: {taints:?}");
    is_of_use(&mut world);
}
