//! Nodes that are ill, with the gate `NodeRepair` on.

use kube::ResourceExt;
use operator::settings::{FeatureGates, Settings};
use serde_json::json;
use world::{
    story::{Deployed, KubeletHangs, KubeletRecovers, deployment, minutes, pods, pool, seconds, settled, that},
    world::{Setup, World, karpenter_with},
};

use super::{claim_path, gone, node_path};

/// A world with so many nodes of one pod each.
fn world_of(nodes: u32, change: impl FnOnce(Deployed) -> Deployed) -> World {
    let settings = Settings {
        feature_gates: FeatureGates {
            node_repair: true,
            ..FeatureGates::default()
        },
        ..Settings::default()
    };
    let web = deployment("web").replicas(nodes).asks("1 cpu").apart();
    let mut world = World::new(Setup::seeded(7, karpenter_with(settings)))
        .pool(
            pool("general")
                .consolidate_after("Never")
                .termination_grace_period("24h"),
        )
        .workload(change(web));
    world.run_until(pods("web").running(nodes as usize), minutes(5));
    assert_eq!(world.scene().nodes.len(), nodes as usize);
    world
}

fn names(world: &World) -> Vec<String> {
    world.scene().nodes.all().iter().map(|node| node.name_any()).collect()
}

/// LC-H1, LC-H5, LC-H8: a node whose kubelet is silent is let go when its time is up, past budgets, protection and the
/// day that its pool grants.
#[test]
fn an_ill_node_is_replaced() {
    let mut world = world_of(3, |web| {
        web.max_unavailable(0).annotate("karpenter.sh/do-not-disrupt", "true")
    });
    let no_budget = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0" }] } } });
    world.patch_pool("general", no_budget);
    let ill = names(&world)[0].clone();
    let protected = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    world.patch_at(&format!("/api/v1/nodes/{ill}"), &protected);

    world.inject(KubeletHangs(&ill));
    // Forty seconds until the cluster notices, and ten minutes that the provider tolerates.
    world.run_for(minutes(10));
    assert!(names(&world).contains(&ill), "LC-H2: it is still tolerated");
    let doomed = world::mirror::Key::cluster(&*ill);
    world.run_until(
        that("its claim is on its way out", move |moment| {
            let claim = moment.scene.node_claims.get(&doomed);
            claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
        }),
        minutes(1),
    );
    world.run_until(gone(&ill), minutes(4));
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(3));
    let counted = world.counted(
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "condition=\"ready\",nodepool=\"general\"",
    );
    assert_eq!(counted, 1.0);
    assert_eq!(
        world.counted("karpenter_nodeclaims_disrupted_total", "reason=\"unhealthy\""),
        1.0
    );
}

/// LC-H2: a node that recovers in time stays.
#[test]
fn a_node_that_recovers_in_time_stays() {
    let mut world = world_of(3, |web| web);
    let ill = names(&world)[0].clone();
    world.inject(KubeletHangs(&ill));
    world.run_for(minutes(8));
    world.inject(KubeletRecovers(&ill));
    world.run_for(minutes(30));
    assert!(names(&world).contains(&ill));
    assert_eq!(world.counted("karpenter_nodeclaims_unhealthy_disrupted_total", ""), 0.0);
}

/// LC-H6: where many are ill at once nothing is done until fewer are. Their pods have found other nodes by then, which
/// count, too.
#[test]
fn too_many_ill_nodes_are_nobodys_to_replace() {
    let mut world = world_of(10, |web| web);
    let ill: Vec<String> = names(&world).into_iter().take(4).collect();
    for name in &ill {
        world.inject(KubeletHangs(name));
    }
    world.run_for(minutes(30));
    for name in &ill {
        let node = world.scene().nodes.get(&world::mirror::Key::cluster(&**name));
        assert!(
            node.is_some_and(|node| node.metadata.deletion_timestamp.is_none()),
            "{name} is left alone"
        );
    }
    let told = world.events("NodeRepairBlocked");
    assert!(
        told.iter()
            .any(|message| message.contains("unhealthy in the nodepool (4 of 14)")),
        "{told:?}"
    );
    // On each node, on each claim and on the pool, every quarter of an hour.
    assert!((9..=18).contains(&told.len()), "{} times", told.len());

    world.inject(KubeletRecovers(&ill[0]));
    for name in &ill[1..] {
        world.run_until(gone(name), minutes(12));
    }
    world.run_until(settled(), minutes(10));
    world.expect(that("the one that recovered is still there", move |moment| {
        moment.scene.nodes.contains(&world::mirror::Key::cluster(&*ill[0]))
    }));
}

/// The gate is off unless somebody turns it on.
#[test]
fn nobody_is_let_go_for_an_illness_while_the_gate_is_off() {
    let mut world = World::seeded(7)
        .pool(pool("general").consolidate_after("Never"))
        .workload(deployment("web").replicas(1).asks("1 cpu"));
    world.run_until(pods("web").running(1), minutes(5));
    let ill = names(&world)[0].clone();
    world.inject(KubeletHangs(&ill));
    world.run_for(minutes(40));
    assert!(names(&world).contains(&ill));
    // By hand it can still be let go, and goes once its pods are taken for lost.
    world.delete_at(&node_path(
        &world
            .scene()
            .nodes
            .get(&world::mirror::Key::cluster(&*ill))
            .expect("it is there"),
    ));
    world.run_for(seconds(1));
    let claim = world
        .scene()
        .node_claims
        .get(&world::mirror::Key::cluster(&*ill))
        .expect("it is draining");
    assert!(claim_path(&claim).ends_with(&ill) && claim.metadata.deletion_timestamp.is_some());
    world.run_until(gone(&ill), minutes(10));
}
