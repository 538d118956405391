//! What a solver is asked to do.

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;
use model::{PodKey, pod::TopologySpread};

/// Whether preferences of pods are tried to be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// Preferences count as demands until they cannot be met.
    #[default]
    Respect,
    Ignore,
}

/// What happens to a pool that cannot offer as much variety as its `minValues` ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// Nothing is launched from it.
    #[default]
    Strict,
    /// It offers what it has, and the claim says so.
    BestEffort,
}

/// What a node costs per hour beside its price: agents that are paid for by the node, the trouble of having it. More of
/// it makes fewer and larger nodes. Kept in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surcharge(u64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount of dollars per hour, such as 0.02")]
pub struct InvalidSurcharge(String);

impl Surcharge {
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Surcharge {
    type Err = InvalidSurcharge;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dollars: f64 = text.parse().map_err(|_| InvalidSurcharge(text.to_owned()))?;
        // A thousand dollars an hour are beyond any machine.
        if !(0.0..=1000.0).contains(&dollars) {
            return Err(InvalidSurcharge(text.to_owned()));
        }
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

impl fmt::Display for Surcharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dollars())
    }
}

/// Settings of the operator that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub preference_policy: PreferencePolicy,
    pub min_values_policy: MinValuesPolicy,
    /// How many instance types a launch may list. 600 keeps a claim well below the size limit of an API object, and no
    /// cloud makes use of more alternatives than that.
    pub max_instance_types: usize,
    /// Pods that ask for devices through resource claims are left to others, and so are their daemons.
    pub ignore_dra: bool,
    /// Reserved capacity is used at all.
    pub reserved_capacity: bool,
    /// Where reserved capacity runs out, spot and on-demand may stand in. A simulation wants to know what would come
    /// in the end; provisioning waits for the next round instead.
    pub reserved_fallback: bool,
    pub node_surcharge: Surcharge,
    /// For pods without spreads of their own. Whom they count is deduced from services and controllers, so they carry no
    /// selector here.
    pub default_spreads: Arc<[TopologySpread]>,
    /// Machines that are still under `consolidateAfter` take no pods that leave another machine by choice.
    pub enforce_consolidate_after: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            max_instance_types: 600,
            ignore_dra: true,
            reserved_capacity: true,
            reserved_fallback: false,
            node_surcharge: Surcharge::default(),
            default_spreads: Arc::default(),
            enforce_consolidate_after: false,
        }
    }
}

/// One run of the solver: these pods need a place. Their order does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub pods: Vec<PodKey>,
    pub now: Timestamp,
    pub options: Options,
}

impl Round {
    pub fn new(pods: Vec<PodKey>, now: Timestamp) -> Self {
        Self {
            pods,
            now,
            options: Options::default(),
        }
    }
}
