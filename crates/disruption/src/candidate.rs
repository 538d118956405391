//! Nodes that may go, and the facts by which methods choose among them.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use model::{NodeKey, Pod, PodKey, Pool, Snapshot, StateNode};

use crate::rules::{self, Blocked};

/// Whether pods that refuse to leave keep their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// They always do.
    Graceful,
    /// They do, unless the claim has a termination grace period that will end the wait.
    Eventual,
}

/// A node that no rule holds back.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub node: Arc<StateNode>,
    pub pool: Arc<Pool>,
    /// Pods that will be somewhere else once the node is gone.
    pub pods: Vec<Arc<Pod>>,
    /// US dollars per hour; zero when the catalog does not know the node's offering.
    pub price: f64,
    /// One for the node, and what each of its pods costs to move.
    pub disruption_cost: f64,
}

impl Candidate {
    /// No pod on it is worth moving.
    pub fn is_empty(&self) -> bool {
        self.disruption_cost <= 1.0
    }

    /// Dollars saved for each unit of disruption.
    pub fn savings_ratio(&self) -> f64 {
        self.price / self.disruption_cost
    }

    pub fn pod_keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.iter().map(|pod| &pod.key)
    }
}

/// A node that stays, and the rule that keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    pub node: NodeKey,
    pub blocked: Blocked,
}

/// Sorts the managed nodes into those that may go and those that stay, in the order of their names.
///
/// `taken` are nodes that a command already has; they are in neither list.
pub fn candidates(
    snapshot: &Snapshot,
    class: Class,
    taken: &BTreeSet<NodeKey>,
    now: Timestamp,
) -> (Vec<Candidate>, Vec<Stay>) {
    let mut free = Vec::new();
    let mut staying = Vec::new();
    for node in snapshot
        .nodes
        .values()
        .filter(|node| node.is_managed() && !taken.contains(&node.key))
    {
        match rules::first_to_block(snapshot, node, class, now) {
            Err(blocked) => staying.push(Stay {
                node: node.key.clone(),
                blocked,
            }),
            Ok(pool) => free.push(candidate(snapshot, node, pool)),
        }
    }
    (free, staying)
}

fn candidate(snapshot: &Snapshot, node: &Arc<StateNode>, pool: &Arc<Pool>) -> Candidate {
    let pods: Vec<_> = snapshot
        .pods_of(node)
        .filter(|pod| pod.is_reschedulable())
        .cloned()
        .collect();
    let moving: f64 = pods.iter().map(|pod| pod.eviction_cost().max(0.0)).sum();
    Candidate {
        node: node.clone(),
        pool: pool.clone(),
        pods,
        price: snapshot.price_of(node).unwrap_or(0.0),
        disruption_cost: 1.0 + moving,
    }
}
