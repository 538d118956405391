//! What such a cluster has, and questions to it.

use std::time::Duration;

use operator::settings::{LegacyApis, Settings};
use serde_json::{Value, json};
use world::world::{Setup, World, karpenter_with};

pub const ALPHA: &str = "karpenter.sh/v1alpha5";
pub const V1: &str = "karpenter.sh/v1";
pub const KWOK: &str = "karpenter.kwok.sh/v1alpha1";

pub fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// A world whose cluster knows the old kinds and has no class of its own, with a controller that follows them.
pub fn world(seed: u64) -> World {
    let settings = Settings {
        legacy_apis: LegacyApis::On,
        ..Settings::default()
    };
    let mut world = World::new(Setup::seeded(seed, karpenter_with(settings)));
    for crd in api::crds::legacy() {
        world.create(serde_json::to_value(crd).expect("definitions are plain data"));
    }
    world.delete(KWOK, "KWOKNodeClass", "default");
    world
}

/// The class of native pools.
pub fn class() -> Value {
    json!({"apiVersion": KWOK, "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

/// The default Provisioner of the deployment guide, as far as a cloud other than EC2 can tell.
pub fn provisioner(name: &str, spec: Value) -> Value {
    let mut all = json!({
        "ttlSecondsAfterEmpty": 30,
        "provider": {"instanceProfile": "KarpenterNodeInstanceProfile-demo"},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    json!({"apiVersion": ALPHA, "kind": "Provisioner", "metadata": {"name": name}, "spec": all})
}

/// Status and reason of a condition.
pub fn condition(object: &Value, type_: &str) -> String {
    let listed = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = listed.into_iter().flatten().find(|one| one["type"] == type_);
    let text = |field: &str| found.and_then(|one| one[field].as_str()).unwrap_or_default();
    format!("{} {}", text("status"), text("reason"))
}

/// Runs until the object is there and as it should be.
#[track_caller]
pub fn until(world: &mut World, version: &str, kind: &str, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..120 {
        if let Some(object) = world.object(version, kind, name).filter(|object| holds(object)) {
            return object;
        }
        world.run_for(Duration::from_secs(5));
    }
    let last = world.object(version, kind, name);
    panic!("{kind} {name} did not become what it should: {last:#?}");
}

/// Runs until there is no such object any more.
#[track_caller]
pub fn until_gone(world: &mut World, version: &str, kind: &str, name: &str) {
    for _ in 0..120 {
        if world.object(version, kind, name).is_none() {
            return;
        }
        world.run_for(Duration::from_secs(5));
    }
    panic!("{kind} {name} is still there: {:#?}", world.object(version, kind, name));
}
