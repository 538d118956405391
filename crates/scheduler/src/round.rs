//! What a solver is asked to do.

use jiff::Timestamp;
use model::PodKey;

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

/// Settings of the operator that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub preference_policy: PreferencePolicy,
    pub min_values_policy: MinValuesPolicy,
    /// How many instance types a launch may list. 600 keeps a claim well below the size limit of an API object, and no
    /// cloud makes use of more alternatives than that.
    pub max_instance_types: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            max_instance_types: 600,
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
