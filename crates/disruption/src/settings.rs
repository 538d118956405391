//! What decisions depend on besides the cluster.

use jiff::Timestamp;
use model::Snapshot;
use scheduler::Options;

use crate::Prices;

/// Settings of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub solver: Options,
    /// Spot machines may be replaced by cheaper spot machines.
    pub spot_to_spot: bool,
    /// How many moves of pods the search for sets of nodes may try in one pass, as a multiple of the pods that could be
    /// moved. A fixed amount of work rather than of time keeps decisions reproducible.
    pub effort: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            solver: Options::default(),
            spot_to_spot: false,
            effort: 12,
        }
    }
}

impl Settings {
    /// How pods are placed when nodes are given up for money: what is left alone by consolidation takes none of them.
    pub(crate) fn by_choice(&self) -> Options {
        Options {
            reserved_fallback: true,
            enforce_consolidate_after: true,
            ..self.solver.clone()
        }
    }

    /// How pods are placed when nodes have to go.
    pub(crate) fn by_need(&self) -> Options {
        Options {
            reserved_fallback: true,
            enforce_consolidate_after: false,
            ..self.solver.clone()
        }
    }
}

/// The cluster at the moment of a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub snapshot: &'a Snapshot,
    pub prices: &'a Prices<'a>,
    pub settings: &'a Settings,
    pub now: Timestamp,
}
