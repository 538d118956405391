//! Calls to the cloud, as the provider's wrapper reports them.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use provider::metered::{Call, Observer};

use super::{Histograms, Metrics, default_buckets};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Made {
    controller: &'static str,
    method: &'static str,
    provider: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Failed {
    controller: &'static str,
    method: &'static str,
    provider: &'static str,
    error: &'static str,
}

pub struct CloudMetrics {
    durations: Histograms<Made>,
    errors: Family<Failed, Counter>,
}

impl Default for CloudMetrics {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(default_buckets),
            errors: Family::default(),
        }
    }
}

impl CloudMetrics {
    pub fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_cloudprovider_duration_seconds",
            "How long calls to the cloud take",
            self.durations.clone(),
        );
        to.register(
            "karpenter_cloudprovider_errors",
            "Calls to the cloud that failed",
            self.errors.clone(),
        );
    }
}

impl Observer for Metrics {
    fn observe(&self, call: Call) {
        let (controller, provider, method) = (call.controller, call.provider, call.method.label());
        let made = Made {
            controller,
            method,
            provider,
        };
        self.cloud
            .durations
            .get_or_create(&made)
            .observe(call.took.as_secs_f64());
        if let Some(error) = call.outcome.error_label() {
            let failed = Failed {
                controller,
                method,
                provider,
                error,
            };
            self.cloud.errors.get_or_create(&failed).inc();
        }
    }
}
