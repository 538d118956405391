//! Node overlays in a seeded world: what is launched follows their prices.

use serde_json::{Value, json};
use world::{
    story::{deployment, minutes, pods, pool, seconds},
    world::World,
};

const GROUP: &str = "karpenter.sh/v1alpha1";

fn overlay(name: &str, spec: Value) -> Value {
    json!({"apiVersion": GROUP, "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec})
}

fn of_type(names: &[&str]) -> Value {
    json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}])
}

fn verdict(world: &World, name: &str) -> String {
    let overlay = world.object(GROUP, "NodeOverlay", name).expect("the overlay is there");
    let conditions = overlay["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == "ValidationSucceeded");
    found.map_or_else(String::new, |condition| {
        format!(
            "{} {}",
            condition["status"].as_str().unwrap_or_default(),
            condition["reason"].as_str().unwrap_or_default()
        )
    })
}

/// What every claim says of itself under this annotation, and the instance types of all claims.
fn claims(world: &World, annotation: &str) -> (Vec<Option<String>>, Vec<String>) {
    let claims = world.scene().node_claims.all();
    let noted = claims.iter().map(|claim| {
        let notes = claim.metadata.annotations.as_ref();
        notes.and_then(|notes| notes.get(annotation).cloned())
    });
    let types = claims.iter().filter_map(|claim| {
        let labels = claim.metadata.labels.as_ref()?;
        labels.get("node.kubernetes.io/instance-type").cloned()
    });
    (noted.collect(), types.collect())
}

/// LC-O1, LC-O3, LC-O13: what has become cheap is bought, in numbers; a contradiction is told on the overlay.
#[test]
fn prices_of_overlays_decide_what_is_bought() {
    let (small, large) = ("c-4x-amd64-linux", "c-16x-amd64-linux");
    let mut world = World::gated(7, "NodeOverlay=true").pool(pool("general").instance_types([small, large]));
    world.create(overlay(
        "bargain",
        json!({"requirements": of_type(&[large]), "price": "0.000001"}),
    ));
    world.create(overlay(
        "again",
        json!({"requirements": of_type(&[large]), "price": "5"}),
    ));
    world.create(overlay("worthless", json!({"requirements": [], "weight": 3})));
    world.run_for(seconds(10));
    world.create(deployment("web").replicas(8).asks("3 cpu"));
    world.run_until(pods("web").running(8), minutes(5));
    let (noted, types) = claims(&world, "karpenter.sh/price-overlay-applied");
    assert_eq!(types, [large, large], "a few large machines instead of many small ones");
    assert_eq!(noted, vec![Some("true".to_owned()); 2]);
    let (noted, _) = claims(&world, "karpenter.sh/capacity-overlay-applied");
    assert_eq!(noted, [None, None]);
    // Of two that contradict each other, the name that comes last in the alphabet counts.
    assert_eq!(verdict(&world, "bargain"), "True ValidationSucceeded");
    assert_eq!(verdict(&world, "again"), "False Conflict");
    assert_eq!(verdict(&world, "worthless"), "True ValidationSucceeded");

    world.delete(GROUP, "NodeOverlay", "bargain");
    world.run_for(seconds(5));
    assert_eq!(
        verdict(&world, "again"),
        "True ValidationSucceeded",
        "the contradiction is gone"
    );
}

/// Without the gate an overlay is nothing.
#[test]
fn without_the_gate_prices_are_the_providers() {
    let large = "c-16x-amd64-linux";
    let mut world = World::seeded(7).pool(pool("general").instance_types([large]));
    world.create(overlay(
        "bargain",
        json!({"requirements": of_type(&[large]), "price": "0.000001"}),
    ));
    world.create(deployment("web").replicas(1).asks("1 cpu"));
    world.run_until(pods("web").running(1), minutes(5));
    assert_eq!(verdict(&world, "bargain"), "");
    let (noted, _) = claims(&world, "karpenter.sh/price-overlay-applied");
    assert_eq!(noted, [None]);
}
