//! Stories of nodes that go although nothing is wrong with them, with the production controllers.
//!
//! | File | Question |
//! | --- | --- |
//! | `consolidation` | which nodes go because they cost too much, and when is there rest? |
//! | `drift` | which nodes go because they are no longer what their pool asks for? |
//! | `budgets` | when does a pool let how many of them go? |
//! | `commands` | what if something comes in between? |

mod budgets;
mod commands;
mod consolidation;
mod drift;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use model::CapacityType;
use serde_json::{Value, json};
use world::{
    story::{Condition, Created, Deployed, Pool, deployment, minutes, pods, pool, that},
    world::World,
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A pool whose nodes go for nothing but drift.
fn steady() -> Pool {
    pool("general").consolidate_after("Never")
}

/// A pool that pays by the hour and saves where it can.
fn thrifty() -> Pool {
    pool("general")
        .allow([CapacityType::OnDemand])
        .consolidation_policy("WhenEmptyOrUnderutilized")
        .consolidate_after("30s")
}

fn web(replicas: u32) -> Deployed {
    deployment("web").replicas(replicas).asks("1 cpu, 1Gi")
}

/// A world in which all pods of this workload run.
#[track_caller]
fn running(seed: u64, pool: impl Created, workload: Deployed, count: usize) -> World {
    let app = workload.name().to_owned();
    let mut world = World::seeded(seed).pool(pool).workload(workload);
    world.run_until(pods(&app).running(count), minutes(5));
    world
}

/// A change of a pool's template that all of its nodes drift by.
fn generation(name: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"labels": {"generation": name}}}}})
}

fn nodes(world: &World) -> BTreeSet<String> {
    let keys = world.scene().nodes.keys();
    keys.iter().map(|key| key.name.to_string()).collect()
}

fn is_marked(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == "karpenter.sh/disrupted"))
}

/// So many nodes carry the taint of a command.
fn marked(count: usize) -> Condition {
    that(&format!("{count} nodes are marked"), move |moment| {
        let nodes = moment.scene.nodes.all();
        nodes.iter().filter(|node| is_marked(node)).count() == count
    })
}

/// None of these nodes is left.
fn gone(nodes: &BTreeSet<String>) -> Condition {
    let nodes = nodes.clone();
    that(&format!("{nodes:?} have gone"), move |moment| {
        !moment.scene.nodes.keys().iter().any(|key| nodes.contains(&*key.name))
    })
}

/// The moments, in seconds, at which a timeline says this of anybody.
fn moments(timeline: &str, what: &str) -> Vec<f64> {
    let said = timeline.lines().filter(|line| line.ends_with(what));
    let moment = |line: &str| line.split_whitespace().next()?.trim_matches(['+', 's']).parse().ok();
    said.filter_map(moment).collect()
}
