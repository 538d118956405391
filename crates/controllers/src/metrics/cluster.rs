//! The state of what we know, and the rounds made on it.

use std::{sync::atomic::AtomicU64, time::Duration};

use model::Resources;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Histograms, durations, gauge_value};

type FloatGauge = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

/// One resource of one pool.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct PoolResource {
    pub resource_type: String,
    pub nodepool: String,
}

pub struct ClusterMetrics {
    node_count: Gauge,
    synced: Gauge,
    unsynced_secs: FloatGauge,
    rounds: Histograms<OfController>,
    ignored_pods: Gauge,
    unschedulable_pods: Family<OfController, Gauge>,
    dropped_pods: Family<OfController, Counter>,
    pool_limit: Family<PoolResource, FloatGauge>,
    pool_usage: Family<PoolResource, FloatGauge>,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            node_count: Gauge::default(),
            synced: Gauge::default(),
            unsynced_secs: FloatGauge::default(),
            rounds: Family::new_with_constructor(durations),
            ignored_pods: Gauge::default(),
            unschedulable_pods: Family::default(),
            dropped_pods: Family::default(),
            pool_limit: Family::default(),
            pool_usage: Family::default(),
        }
    }
}

impl ClusterMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_cluster_state_node_count",
            "Machines in memory",
            self.node_count.clone(),
        );
        to.register(
            "karpenter_cluster_state_synced",
            "1 when memory agrees with the API server",
            self.synced.clone(),
        );
        to.register(
            "karpenter_cluster_state_unsynced_time_seconds",
            "For how long memory has not agreed with the API server",
            self.unsynced_secs.clone(),
        );
        to.register(
            "karpenter_scheduler_scheduling_duration_seconds",
            "One run of the solver",
            self.rounds.clone(),
        );
        to.register(
            "karpenter_scheduler_ignored_pods_count",
            "Pods that no solver is asked about",
            self.ignored_pods.clone(),
        );
        to.register(
            "karpenter_scheduler_unschedulable_pods_count",
            "Pods without a placement",
            self.unschedulable_pods.clone(),
        );
        // Upstream has none of this kind: its plans are not audited.
        to.register(
            "karpenter_scheduler_audit_dropped_pods",
            "Pods that lost their placement because the plan would have broken a rule of the cluster",
            self.dropped_pods.clone(),
        );
        to.register(
            "karpenter_nodepools_limit",
            "Limits of node pools",
            self.pool_limit.clone(),
        );
        to.register(
            "karpenter_nodepools_usage",
            "What counts against the limits of node pools",
            self.pool_usage.clone(),
        );
    }

    pub fn synced(&self, synced: bool, nodes: usize, unsynced: Duration) {
        self.synced.set(i64::from(synced));
        self.node_count.set(gauge_value(nodes));
        self.unsynced_secs.set(unsynced.as_secs_f64());
    }

    pub fn round(&self, controller: &'static str, took: Duration, unschedulable: usize) {
        let labels = OfController { controller };
        self.rounds.get_or_create(&labels).observe(took.as_secs_f64());
        self.unschedulable_pods
            .get_or_create(&labels)
            .set(gauge_value(unschedulable));
    }

    pub fn dropped_pods(&self, controller: &'static str, number: usize) {
        let labels = OfController { controller };
        self.dropped_pods
            .get_or_create(&labels)
            .inc_by(number.try_into().unwrap_or(u64::MAX));
    }

    pub fn ignored_pods(&self, number: usize) {
        self.ignored_pods.set(gauge_value(number));
    }

    pub fn pool(&self, nodepool: &str, limits: &Resources, usage: &Resources) {
        for (family, resources) in [(&self.pool_limit, limits), (&self.pool_usage, usage)] {
            for (name, amount) in resources.iter() {
                family
                    .get_or_create(&pool_resource(nodepool, name.as_str()))
                    .set(amount.as_f64());
            }
        }
    }

    pub fn forget_pool(&self, nodepool: &str, limits: &Resources, usage: &Resources) {
        for (family, resources) in [(&self.pool_limit, limits), (&self.pool_usage, usage)] {
            for (name, _) in resources.iter() {
                family.remove(&pool_resource(nodepool, name.as_str()));
            }
        }
    }
}

fn pool_resource(nodepool: &str, resource: &str) -> PoolResource {
    PoolResource {
        resource_type: resource.to_lowercase().replace('-', "_"),
        nodepool: nodepool.to_owned(),
    }
}
