//! The controllers themselves: their runs and their queues, under the names of the runtime that upstream uses.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;

use super::{
    Histograms, gauge_value,
    page::{Kind, Page},
};

/// Seconds: the runtime's own buckets for runs, which end earlier than ours.
const RUNS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

fn runs() -> Histogram {
    Histogram::new(RUNS.iter().copied())
}

/// Seconds: ten nanoseconds to a quarter of an hour, a power of ten each.
fn queue_waits() -> Histogram {
    Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Outcome {
    Success,
    RequeueAfter,
    Error,
    /// An error that is not tried again.
    TerminalError,
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        let word = match self {
            Outcome::Success => "success",
            Outcome::RequeueAfter => "requeue_after",
            Outcome::Error | Outcome::TerminalError => "error",
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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Waiting {
    name: &'static str,
    controller: &'static str,
    priority: &'static str,
}

pub struct RuntimeMetrics {
    total: Family<Ended, Counter>,
    errors: Family<OfController, Counter>,
    terminal_errors: Family<OfController, Counter>,
    timeouts: Family<OfController, Counter>,
    panics: Family<OfController, Counter>,
    webhook_panics: Counter,
    conversion_panics: Counter,
    time: Histograms<OfController>,
    most: Family<OfController, Gauge>,
    active: Family<OfController, Gauge>,
    depth: Family<Waiting, Gauge>,
    adds: Family<OfQueue, Counter>,
    retries: Family<OfQueue, Counter>,
    queued: Histograms<OfQueue>,
    work: Histograms<OfQueue>,
    /// When the runs that are under way began, by the controller.
    running: Mutex<BTreeMap<&'static str, Vec<Instant>>>,
}

impl Default for RuntimeMetrics {
    fn default() -> Self {
        Self {
            total: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            timeouts: Family::default(),
            panics: Family::default(),
            webhook_panics: Counter::default(),
            conversion_panics: Counter::default(),
            time: Family::new_with_constructor(runs),
            most: Family::default(),
            active: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queued: Family::new_with_constructor(queue_waits),
            work: Family::new_with_constructor(queue_waits),
            running: Mutex::default(),
        }
    }
}

impl RuntimeMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
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
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed and are not tried again",
            self.terminal_errors.clone(),
        );
        to.register(
            "controller_runtime_reconcile_timeouts",
            "Reconciles that were ended because they took too long; ours end their requests instead",
            self.timeouts.clone(),
        );
        to.register(
            "controller_runtime_reconcile_panics",
            "Reconciles that broke down; ours end the process instead",
            self.panics.clone(),
        );
        to.register(
            "controller_runtime_webhook_panics",
            "Webhooks that broke down; there are none",
            self.webhook_panics.clone(),
        );
        to.register(
            "controller_runtime_conversion_webhook_panics",
            "Conversions that broke down; there are none",
            self.conversion_panics.clone(),
        );
        to.register(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles take",
            self.time.clone(),
        );
        to.register(
            "controller_runtime_max_concurrent_reconciles",
            "Reconciles that a controller may have under way",
            self.most.clone(),
        );
        to.register(
            "controller_runtime_active_workers",
            "Reconciles that a controller has under way",
            self.active.clone(),
        );
        to.register("workqueue_depth", "Keys that wait for work", self.depth.clone());
        to.register("workqueue_adds", "Keys that were added", self.adds.clone());
        to.register(
            "workqueue_retries",
            "Keys that were added again because of a failure",
            self.retries.clone(),
        );
        to.register(
            "workqueue_queue_duration_seconds",
            "How long keys wait for work",
            self.queued.clone(),
        );
        to.register(
            "workqueue_work_duration_seconds",
            "How long keys are worked on",
            self.work.clone(),
        );
    }

    pub(super) fn write(&self, page: &mut Page, now: Instant) {
        let running = self.running.lock();
        let labels = |controller: &&'static str| [("name", *controller), ("controller", *controller)];
        let secs = |since: &Instant| now.saturating_duration_since(*since).as_secs_f64();
        let help = "How long the runs that are under way have taken so far, added up";
        let mut family = page.family("workqueue_unfinished_work_seconds", Kind::Gauge, help);
        for (controller, begun) in running.iter() {
            family.sample(
                &labels(controller),
                begun.iter().map(secs).fold(0.0, |sum, secs| sum + secs),
            );
        }
        let help = "How long the longest run that is under way has taken so far";
        let mut family = page.family("workqueue_longest_running_processor_seconds", Kind::Gauge, help);
        for (controller, begun) in running.iter() {
            family.sample(&labels(controller), begun.iter().map(secs).fold(0.0, f64::max));
        }
    }

    /// Makes the series of a controller exist before anything happens to it, so that rates over them are right.
    pub fn announce(&self, controller: &'static str, concurrency: usize) {
        let of = OfController { controller };
        self.most.get_or_create(&of).set(gauge_value(concurrency));
        self.active.get_or_create(&of).set(0);
        for counter in [&self.errors, &self.terminal_errors, &self.timeouts, &self.panics] {
            drop(counter.get_or_create(&of));
        }
        for result in [Outcome::Success, Outcome::RequeueAfter, Outcome::Error] {
            drop(self.total.get_or_create(&Ended { controller, result }));
        }
        drop(self.adds.get_or_create(&queue(controller)));
        drop(self.retries.get_or_create(&queue(controller)));
        self.running.lock().entry(controller).or_default();
        self.depth(controller, 0);
    }

    pub fn added(&self, controller: &'static str) {
        self.adds.get_or_create(&queue(controller)).inc();
    }

    pub fn retried(&self, controller: &'static str) {
        self.retries.get_or_create(&queue(controller)).inc();
    }

    pub fn started(&self, controller: &'static str, queued: Duration, now: Instant) {
        self.queued
            .get_or_create(&queue(controller))
            .observe(queued.as_secs_f64());
        self.active.get_or_create(&OfController { controller }).inc();
        self.running.lock().entry(controller).or_default().push(now);
    }

    pub fn reconciled(&self, controller: &'static str, result: Outcome, started: Instant, took: Duration) {
        self.total.get_or_create(&Ended { controller, result }).inc();
        let of = OfController { controller };
        self.time.get_or_create(&of).observe(took.as_secs_f64());
        self.work.get_or_create(&queue(controller)).observe(took.as_secs_f64());
        self.active.get_or_create(&of).dec();
        if let Some(running) = self.running.lock().get_mut(controller)
            && let Some(place) = running.iter().position(|begun| *begun == started)
        {
            running.swap_remove(place);
        }
        if matches!(result, Outcome::Error | Outcome::TerminalError) {
            self.errors.get_or_create(&of).inc();
        }
        if result == Outcome::TerminalError {
            self.terminal_errors.get_or_create(&of).inc();
        }
    }

    pub fn depth(&self, controller: &'static str, depth: usize) {
        // Our queues know no priorities.
        let labels = Waiting {
            name: controller,
            controller,
            priority: "",
        };
        self.depth.get_or_create(&labels).set(gauge_value(depth));
    }
}

fn queue(controller: &'static str) -> OfQueue {
    OfQueue {
        name: controller,
        controller,
    }
}
