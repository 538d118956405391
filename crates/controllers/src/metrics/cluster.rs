//! The state of what we know.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

use super::gauge_value;

#[derive(Default)]
pub struct ClusterMetrics {
    node_count: Gauge,
    synced: Gauge,
    unsynced_secs: Gauge<f64, AtomicU64>,
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
    }

    pub fn synced(&self, synced: bool, nodes: usize, unsynced: Duration) {
        self.synced.set(i64::from(synced));
        self.node_count.set(gauge_value(nodes));
        self.unsynced_secs.set(unsynced.as_secs_f64());
    }
}
