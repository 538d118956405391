//! Which of the nodes that would take a pod gets it.

use super::{
    board::{Entrant, Spot},
    preferences::Preferences,
};
use crate::dice::Dice;

/// How nodes are ranked. Clusters differ in this, and no autoscaler knows how theirs does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// The emptiest node, as kube-scheduler has it unless told otherwise.
    #[default]
    LeastAllocated,
    /// The fullest node, as profiles that save nodes have it.
    MostAllocated,
    /// The node that meets most of the pod's preferences, and of those alike the emptiest.
    Preferences,
    /// Whatever the dice say for the pod and the node.
    Random,
}

impl Ranking {
    /// The more, the better. Equal ones are decided by the order of the nodes.
    pub fn score(self, spot: &Spot, entrant: &Entrant, preferences: &Preferences<'_>, dice: Dice) -> f64 {
        match self {
            Ranking::LeastAllocated => emptiness(spot),
            Ranking::MostAllocated => -emptiness(spot),
            Ranking::Preferences => preferences.met_by(spot) + emptiness(spot),
            Ranking::Random => {
                let uid = entrant.raw.metadata.uid.as_deref().unwrap_or_default();
                dice.below(1_000_000, &["ranking", uid, spot.facts.name.as_str()]) as f64
            }
        }
    }
}

/// How much of the node's processor and memory is free, from zero to one.
fn emptiness(spot: &Spot) -> f64 {
    let share = |resource: &str| {
        let total = spot.facts.allocatable.get(resource).as_f64();
        if total > 0.0 {
            spot.free.get(resource).as_f64() / total
        } else {
            0.0
        }
    };
    (share("cpu") + share("memory")) / 2.0
}
