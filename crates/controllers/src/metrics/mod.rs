//! What the process counts, under the names that dashboards and alerts know.
//!
//! One struct per subject, each with its families and its registration; [`Metrics`] holds them all. Labels come from
//! closed lists or from names of objects, never from free text.

mod claims;
mod cloud;
mod cluster;
mod disruption;
mod interruption;
mod runtime;

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

pub use claims::{ClaimDisrupted, ClaimMetrics, DisruptedWhy, TerminationMode};
pub use cluster::{ClusterMetrics, PoolResource};
pub use disruption::{Decision, DisruptionMetrics};
pub use interruption::InterruptionMetrics;
pub use runtime::Outcome;

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

/// All metrics of a process.
#[derive(Default)]
pub struct Metrics {
    pub claims: ClaimMetrics,
    pub cluster: ClusterMetrics,
    pub disruption: DisruptionMetrics,
    pub interruption: InterruptionMetrics,
    cloud: cloud::CloudMetrics,
    runtime: runtime::RuntimeMetrics,
    build: Family<Build, Gauge>,
}

impl Metrics {
    /// Announces every family to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "karpenter_build_info",
            "What this process was built from",
            self.build.clone(),
        );
        self.claims.register(registry);
        self.cluster.register(registry);
        self.disruption.register(registry);
        self.interruption.register(registry);
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

    pub fn reconciled(&self, controller: &'static str, outcome: Outcome, took: Duration) {
        self.runtime.reconciled(controller, outcome, took);
    }

    pub fn workqueue_depth(&self, controller: &'static str, depth: usize) {
        self.runtime.depth(controller, depth);
    }
}

/// Gauges are 64-bit integers.
fn gauge_value(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn names_are_the_ones_that_dashboards_know() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.built_from("1.0.0", "abc");
        metrics.claims.created("provisioned", "general", false);
        metrics.reconciled("nodeclaim.lifecycle", Outcome::Success, Duration::from_millis(3));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string succeeds");
        for line in [
            r#"karpenter_nodeclaims_created_total{reason="provisioned",nodepool="general",min_values_relaxed="false"} 1"#,
            r#"controller_runtime_reconcile_total{controller="nodeclaim.lifecycle",result="success"} 1"#,
            "karpenter_build_info{version=\"1.0.0\"",
            "karpenter_cluster_state_synced 0",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
