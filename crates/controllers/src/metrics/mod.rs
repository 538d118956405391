//! What the process counts, under the names that dashboards and alerts know.
//!
//! One struct per subject, each with its families and its registration; [`Metrics`] holds them all. Labels come from
//! closed lists or from names of objects, never from free text.

mod claims;
mod cloud;
mod cluster;
mod conditions;
pub mod cost;
mod disruption;
mod exposition;
mod interruption;
mod page;
mod pods;
mod rounds;
mod runtime;
mod scene;
#[cfg(any(test, feature = "specimen"))]
pub mod specimen;
mod summary;
#[cfg(test)]
mod tests;
mod text_histogram;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

pub use claims::{ClaimDisrupted, ClaimMetrics, DisruptedWhy, TerminationMode};
pub use cluster::ClusterMetrics;
pub use conditions::ConditionMetrics;
pub use disruption::{Decision, DisruptionMetrics};
pub use exposition::Exposition;
pub use interruption::InterruptionMetrics;
pub use page::Page;
pub use pods::PodMetrics;
pub use rounds::RoundMetrics;
pub use runtime::{Outcome, RuntimeMetrics};
pub use scene::Scene;

/// The kinds whose conditions are followed.
pub mod kinds {
    pub use super::{
        conditions::{Object, Watched},
        scene::kinds::*,
    };
}

/// Seconds: the range from a fast decision to a slow cloud.
const DURATIONS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];
/// Seconds: what Prometheus clients use where nobody says otherwise.
const DEFAULT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

fn durations() -> Histogram {
    Histogram::new(DURATIONS.iter().copied())
}

fn default_buckets() -> Histogram {
    Histogram::new(DEFAULT_BUCKETS.iter().copied())
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Build {
    version: String,
    goversion: String,
    goarch: String,
    commit: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPool {
    nodepool: String,
}

/// All metrics of a process.
#[derive(Default)]
pub struct Metrics {
    pub claims: ClaimMetrics,
    pub cluster: ClusterMetrics,
    pub conditions: ConditionMetrics,
    pub disruption: DisruptionMetrics,
    pub interruption: InterruptionMetrics,
    pub pods: PodMetrics,
    pub rounds: RoundMetrics,
    pub runtime: RuntimeMetrics,
    cloud: cloud::CloudMetrics,
    cost_errors: Family<OfPool, Counter>,
    build: Family<Build, Gauge>,
}

impl Metrics {
    /// Announces every family to a registry. What is not in there is written by [`Exposition`].
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "karpenter_build_info",
            "What this process was built from",
            self.build.clone(),
        );
        registry.register(
            "karpenter_nodepools_cost_tracker_errors",
            "Machines whose price nobody knows, each time they were found",
            self.cost_errors.clone(),
        );
        self.claims.register(registry);
        self.cluster.register(registry);
        self.disruption.register(registry);
        self.interruption.register(registry);
        self.pods.register(registry);
        self.rounds.register(registry);
        self.cloud.register(registry);
        self.runtime.register(registry);
    }

    /// The label names are upstream's, whose language was another.
    pub fn built_from(&self, version: &str, commit: &str) {
        let goarch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let build = Build {
            version: version.to_owned(),
            goversion: format!("rust {}", env!("CARGO_PKG_RUST_VERSION")),
            goarch: goarch.to_owned(),
            commit: commit.to_owned(),
        };
        self.build.get_or_create(&build).set(1);
    }

    /// Machines of a pool whose price nobody knows.
    pub fn cost_errors(&self, nodepool: &str, machines: u32) {
        let labels = OfPool {
            nodepool: nodepool.to_owned(),
        };
        self.cost_errors.get_or_create(&labels).inc_by(machines.into());
    }
}

/// Gauges are 64-bit integers.
fn gauge_value(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
