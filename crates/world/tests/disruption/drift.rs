//! Nodes that are no longer what their pool or their class asks for.

use api::{
    conditions::{self, HasConditions},
    v1::NodeClaim,
};
use serde_json::{Value, json};
use world::{
    story::{
        CloudIsSilent, Condition, ImageWithdrawn, NewImage, deployment, minutes, pods, pool, seconds, settled, that,
    },
    world::World,
};

use super::{generation, marked, nodes, running, steady, web};

/// DI-Q7: a change of the pool's template makes every node drift; as many as the budget allows are replaced at a time, each
/// by a command of its own, and the pods run on nodes of the new kind.
#[test]
fn drifted_nodes_are_replaced() {
    let large = deployment("web").replicas(6).asks("3 cpu, 1Gi").max_unavailable(2);
    let mut world = running(23, steady().instance_types(["c-4x-amd64-linux"]), large, 6);
    let before = nodes(&world);
    world.patch_pool(
        "general",
        json!({"spec": {"disruption": {"budgets": [{"nodes": "2"}]}}}),
    );
    world.patch_pool("general", generation("two"));
    world.run_until(marked(2), minutes(10));
    world.run_until(
        that("all nodes are new", |moment| {
            let nodes = moment.scene.nodes.all();
            let new = |labels: Option<&std::collections::BTreeMap<String, String>>| {
                labels.is_some_and(|labels| labels.get("generation").is_some_and(|value| value == "two"))
            };
            !nodes.is_empty() && nodes.iter().all(|node| new(node.metadata.labels.as_ref()))
        }),
        minutes(60),
    );
    world.run_until(settled(), minutes(10));
    world.expect(pods("web").running(6));
    assert!(before.is_disjoint(&nodes(&world)));
}

/// All claims carry these marks, and no others.
fn marks(drifted: bool, consolidatable: bool) -> Condition {
    that(
        &format!("drifted: {drifted}, consolidatable: {consolidatable}"),
        move |moment| {
            let claims = moment.scene.node_claims.all();
            let has = |claim: &NodeClaim, kind: &str| conditions::is_true(claim.conditions(), kind);
            let as_told =
                |claim: &NodeClaim| has(claim, "Drifted") == drifted && has(claim, "Consolidatable") == consolidatable;
            !claims.is_empty() && claims.iter().all(|claim| as_told(claim))
        },
    )
}

/// DI-H15: a claim may have drifted and be consolidatable at once; both marks go when their causes do.
#[test]
fn a_claim_carries_both_marks_and_loses_them() {
    let mut world = World::seeded(40)
        .pool(pool("general").consolidate_after("15s").budget("0"))
        .workload(web(1));
    world.patch_pool("general", generation("one"));
    world.run_until(pods("web").running(1), minutes(5));
    world.run_until(marks(false, true), minutes(5));
    world.patch_pool("general", generation("two"));
    world.run_until(marks(true, true), minutes(5));
    world.patch_pool(
        "general",
        json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}),
    );
    world.run_until(marks(true, false), minutes(5));
    world.patch_pool("general", generation("one"));
    world.run_until(marks(false, false), minutes(5));
}

/// Why all claims have drifted; `None` where they carry no mark.
fn drifted(reason: Option<&'static str>) -> Condition {
    that(&format!("the claim has drifted: {reason:?}"), move |moment| {
        let claims = moment.scene.node_claims.all();
        let found = |claim: &NodeClaim| {
            let found = conditions::find(claim.conditions(), "Drifted");
            found.map(|found| (found.status.clone(), found.reason.clone()))
        };
        let asked = reason.map(|reason| ("True".to_owned(), reason.to_owned()));
        !claims.is_empty() && claims.iter().all(|claim| found(claim) == asked)
    })
}

/// DI-H1: what the cloud says of a machine is a mark on its claim for as long as it says so.
#[test]
fn a_drift_that_the_cloud_reports_comes_and_goes() {
    let mut world = running(41, steady().budget("0"), web(1), 1);
    world.expect(drifted(None));
    world.inject(NewImage);
    world.run_until(drifted(Some("ImageDrift")), minutes(10));
    world.inject(ImageWithdrawn);
    world.run_until(drifted(None), minutes(10));
}

/// DI-H4: where a machine is neither what its pool asks for nor what the cloud would launch today, the pool's reason is told.
#[test]
fn a_drift_from_the_pool_is_told_before_one_that_the_cloud_reports() {
    let mut world = World::seeded(58).pool(steady().budget("0")).workload(web(1));
    world.patch_pool("general", generation("one"));
    world.run_until(pods("web").running(1), minutes(5));
    world.inject(NewImage);
    world.run_until(drifted(Some("ImageDrift")), minutes(10));
    world.patch_pool("general", generation("two"));
    world.run_until(drifted(Some("NodePoolDrifted")), minutes(5));
    world.patch_pool("general", generation("one"));
    world.run_until(drifted(Some("ImageDrift")), minutes(10));
    let elsewhere = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}]);
    world.patch_pool(
        "general",
        json!({"spec": {"template": {"spec": {"requirements": elsewhere}}}}),
    );
    world.run_until(drifted(Some("RequirementsDrifted")), minutes(5));
}

/// A cloud that does not say whether a machine has drifted leaves that mark as it is, and does not keep the other from being
/// right: a node that pods have just come to is not left alone.
#[test]
fn a_cloud_that_says_nothing_of_drift_keeps_no_other_mark() {
    for drifted in [false, true] {
        let pool = pool("general").instance_types(["c-4x-amd64-linux"]);
        let mut world = running(56, pool.consolidate_after("2m").budget("0"), web(1), 1);
        if drifted {
            world.inject(NewImage);
        }
        world.run_until(marks(drifted, true), minutes(10));
        world.inject(CloudIsSilent(1.0));
        world.run_for(minutes(10));
        world.expect(marks(drifted, true));
        world.scale("Deployment", "web", 2);
        world.run_until(marks(drifted, false), seconds(30));
        world.run_until(pods("web").running(2), minutes(1));
        world.run_until(marks(drifted, true), minutes(4));
        assert_eq!(nodes(&world).len(), 1);
    }
}

/// DI-H1: nodes with an old image are replaced, and those that come have the new one.
#[test]
fn a_new_image_reaches_every_node() {
    let mut world = running(42, steady().budget("1"), web(3).apart(), 3);
    let old = nodes(&world);
    assert_eq!(old.len(), 3);
    world.inject(NewImage);
    world.run_for(minutes(10));
    world.run_until(settled(), minutes(60));
    assert!(nodes(&world).is_disjoint(&old));
    world.expect(pods("web").running(3));
}

/// DI-H2, DI-H6: a claim of no pool and a claim of a class that is not ours carry no marks.
#[test]
fn claims_without_a_pool_of_ours_carry_no_marks() {
    let claim = |name: &str, labels: Value, class: Value| {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": name, "labels": labels },
            "spec": { "requirements": [], "nodeClassRef": class },
        })
    };
    let kwok = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
    let rack = json!({ "group": "example.com", "kind": "Rack", "name": "default" });
    let mut world = World::seeded(43);
    world.create(claim("alone", json!({}), kwok));
    world.create(claim("foreign", json!({}), rack));
    world.run_for(minutes(2));
    world.inject(NewImage);
    world.run_for(minutes(10));
    let claims = world.scene().node_claims.all();
    assert_eq!(claims.len(), 2);
    for claim in claims {
        for mark in ["Drifted", "Consolidatable"] {
            let found = conditions::find(claim.conditions(), mark);
            assert!(found.is_none(), "{:?}: {found:?}", claim.metadata.name);
        }
    }
}

/// A node that pods were on their way to a moment ago is looked at again when they have been waited for, and not later.
#[test]
fn a_drifted_node_goes_as_soon_as_its_nomination_has_passed() {
    let mut world = running(52, steady(), web(2), 2);
    world.patch_pool("general", generation("two"));
    world.run_until(marked(1), seconds(35));
}
