//! Nodes that may go, and the facts by which methods choose among them.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use model::{NodeKey, Pod, PodKey, Pool, Snapshot, StateNode};

use crate::{
    Prices,
    guards::Guards,
    rules,
    stay::{Stay, Why},
};

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
    /// Those of them that need a place before the node goes; the others refuse to leave and are waited for, which happens to
    /// drifted nodes alone.
    pub moving: Vec<PodKey>,
    /// US dollars per hour; zero when the catalog does not know the node's offering.
    pub price: f64,
    /// One for the node, and what each of its pods costs to move.
    pub disruption_cost: f64,
    /// A capacity buffer counts on it: it is not free to go although no pod runs on it.
    pub holds_room: bool,
    /// The pool's catalog knows what kind of machine it is.
    pub known_kind: bool,
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

    pub fn key(&self) -> &NodeKey {
        &self.node.key
    }
}

/// Those first that are cheapest for their disruption, then by name.
pub(crate) fn likely_to_stay<'c>(candidates: impl IntoIterator<Item = &'c Candidate>) -> Vec<&'c Candidate> {
    let mut candidates: Vec<&Candidate> = candidates.into_iter().collect();
    candidates.sort_by(|a, b| {
        let ratio = a.savings_ratio().total_cmp(&b.savings_ratio());
        ratio.then_with(|| b.key().cmp(a.key()))
    });
    candidates
}

/// What moving these pods and giving up their node costs.
pub(crate) fn disruption_cost<'p>(pods: impl IntoIterator<Item = &'p Arc<Pod>>) -> f64 {
    let moving: f64 = pods.into_iter().map(|pod| pod.eviction_cost().max(0.0)).sum();
    1.0 + moving
}

/// Sorts the managed nodes into those that may go and those that stay, in the order of their names.
///
/// `taken` are nodes that a command already has; they are in neither list.
pub fn candidates(
    snapshot: &Snapshot,
    prices: &Prices<'_>,
    class: Class,
    taken: &BTreeSet<NodeKey>,
    now: Timestamp,
) -> (Vec<Candidate>, Vec<Stay>) {
    let mut guards = Guards::new(snapshot);
    let mut free = Vec::new();
    let mut staying = Vec::new();
    let managed = snapshot.nodes.values().filter(|node| node.is_managed());
    for node in managed.filter(|node| !taken.contains(&node.key)) {
        match rules::first_to_block(snapshot, &mut guards, node, class, now) {
            Err(blocked) => staying.push(Stay {
                node: node.key.clone(),
                why: Why::Blocked(blocked),
            }),
            Ok(pool) => {
                let mut candidate = candidate(snapshot, prices, node, pool);
                // Of a node that goes gracefully no pod refuses to leave.
                if class == Class::Eventual && node.has_drifted() {
                    let pods = snapshot.pods_of(node).filter(|pod| pod.is_reschedulable());
                    let leaving = pods.filter(|pod| guards.let_move(pod, now));
                    candidate.moving = leaving.map(|pod| pod.key.clone()).collect();
                }
                free.push(candidate);
            }
        }
    }
    (free, staying)
}

fn candidate(snapshot: &Snapshot, prices: &Prices<'_>, node: &Arc<StateNode>, pool: &Arc<Pool>) -> Candidate {
    let pods: Vec<_> = snapshot
        .pods_of(node)
        .filter(|pod| pod.is_reschedulable())
        .cloned()
        .collect();
    Candidate {
        node: node.clone(),
        pool: pool.clone(),
        price: prices.of(node).unwrap_or(0.0),
        disruption_cost: disruption_cost(&pods),
        holds_room: snapshot.holds_room(&node.key),
        known_kind: prices.kind_of(node).is_some(),
        moving: pods.iter().map(|pod| pod.key.clone()).collect(),
        pods,
    }
}
