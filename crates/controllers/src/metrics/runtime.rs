//! The controllers themselves.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Histograms, default_buckets, gauge_value};

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Outcome {
    Success,
    RequeueAfter,
    Error,
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        let word = match self {
            Outcome::Success => "success",
            Outcome::RequeueAfter => "requeue_after",
            Outcome::Error => "error",
        };
        word.encode(encoder)
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    controller: &'static str,
    result: Outcome,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfQueue {
    name: &'static str,
    controller: &'static str,
}

pub struct RuntimeMetrics {
    total: Family<Ended, Counter>,
    errors: Family<OfController, Counter>,
    time: Histograms<OfController>,
    depth: Family<OfQueue, Gauge>,
}

impl Default for RuntimeMetrics {
    fn default() -> Self {
        Self {
            total: Family::default(),
            errors: Family::default(),
            time: Family::new_with_constructor(default_buckets),
            depth: Family::default(),
        }
    }
}

impl RuntimeMetrics {
    pub fn register(&self, to: &mut Registry) {
        to.register(
            "controller_runtime_reconcile",
            "Reconciles by result",
            self.total.clone(),
        );
        to.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that failed",
            self.errors.clone(),
        );
        to.register(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles take",
            self.time.clone(),
        );
        to.register("workqueue_depth", "Keys that wait for work", self.depth.clone());
    }

    pub fn reconciled(&self, controller: &'static str, result: Outcome, took: Duration) {
        self.total.get_or_create(&Ended { controller, result }).inc();
        self.time
            .get_or_create(&OfController { controller })
            .observe(took.as_secs_f64());
        if result == Outcome::Error {
            self.errors.get_or_create(&OfController { controller }).inc();
        }
    }

    pub fn depth(&self, controller: &'static str, depth: usize) {
        let labels = OfQueue {
            name: controller,
            controller,
        };
        self.depth.get_or_create(&labels).set(gauge_value(depth));
    }
}
