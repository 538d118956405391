//! A node's life in a seeded world with the production controllers: how it begins, what may befall it, how it ends.
//!
//! | File | Question |
//! | --- | --- |
//! | `rounds` | when are pods looked at, and what is counted of it? |
//! | `registration` | when does a node count as one of ours, and when does it take pods? |
//! | `termination` | how does a node end, by whoever's hand? |
//! | `repair` | which ill nodes are let go? |
//! | `crashes` | what if the controller dies at any step on the way? |
//! | `api_faults` | what if the API server misbehaves? |
//! | `bad_objects` | what if objects make no sense? |
//! | `writes` | what does a life cost the API server? |

mod api_faults;
mod bad_objects;
mod crashes;
mod registration;
mod repair;
mod rounds;
mod termination;
mod writes;

use std::sync::Arc;

use api::{
    conditions::{self, HasConditions},
    v1::NodeClaim,
};
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Condition as Told};
use world::{
    story::{Condition, Created, Deployed, deployment, minutes, pods, that},
    world::World,
};

/// Simulations live on small allocations; this one gives them out in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn web(replicas: u32) -> Deployed {
    deployment("web").replicas(replicas).asks("1 cpu, 1Gi")
}

/// A world in which pods run on one node.
fn with_one_node(pool: impl Created, workload: Deployed, replicas: usize) -> World {
    let mut world = World::seeded(7).pool(pool).workload(workload);
    world.run_until(pods("web").running(replicas), minutes(5));
    assert_eq!(world.scene().nodes.len(), 1);
    world
}

fn only_node(world: &World) -> Arc<Node> {
    let nodes = world.scene().nodes.all();
    let [node] = &nodes[..] else {
        panic!("there are {} nodes", nodes.len());
    };
    node.clone()
}

fn only_claim(world: &World) -> Arc<NodeClaim> {
    let claims = world.scene().node_claims.all();
    let [claim] = &claims[..] else {
        panic!("there are {} claims", claims.len());
    };
    claim.clone()
}

fn node_path(node: &Node) -> String {
    format!("/api/v1/nodes/{}", node.metadata.name.as_deref().unwrap_or_default())
}

fn claim_path(claim: &NodeClaim) -> String {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    format!("/apis/karpenter.sh/v1/nodeclaims/{name}")
}

/// The condition of a claim as status and reason.
fn state(claim: &NodeClaim, condition: &str) -> Option<(String, String)> {
    let told = |found: &Told| (found.status.clone(), found.reason.clone());
    conditions::find(claim.conditions(), condition).map(told)
}

fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

/// Some claim has the condition in this state.
fn a_claim_is(condition: &'static str, status: &'static str, reason: &'static str) -> Condition {
    that(&format!("a claim has {condition} {status} {reason}"), move |moment| {
        let claims = moment.scene.node_claims.all();
        claims.iter().any(|claim| state(claim, condition) == is(status, reason))
    })
}

/// Neither a node nor a claim of this name is left, and no machine.
fn gone(name: &str) -> Condition {
    let name = name.to_owned();
    that(&format!("nothing is left of {name}"), move |moment| {
        let key = world::mirror::Key::cluster(&*name);
        let machine = moment.cloud.machine(&provider_sim::machine::provider_id(&name));
        !moment.scene.nodes.contains(&key)
            && !moment.scene.node_claims.contains(&key)
            && machine.is_none_or(|machine| !machine.is_live(moment.now))
    })
}
