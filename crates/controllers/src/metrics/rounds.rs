//! Rounds of the solver.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use scheduler::EffectiveZone;
use tokio::time::Instant;

use super::{
    Histograms, durations, gauge_value,
    page::{Kind, Page},
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

pub struct RoundMetrics {
    durations: Histograms<OfController>,
    ignored_pods: Gauge,
    unschedulable_pods: Family<OfController, Gauge>,
    dropped_pods: Family<OfController, Counter>,
    under_way: Mutex<BTreeMap<&'static str, Round>>,
    zones: Mutex<BTreeMap<&'static str, BTreeMap<String, usize>>>,
}

/// The last round of a controller.
struct Round {
    id: String,
    pods: usize,
    /// `None` once it is over.
    since: Option<Instant>,
}

/// A round that is under way; it is over when this is dropped.
pub struct UnderWay<'a> {
    metrics: &'a RoundMetrics,
    controller: &'static str,
    begun: Instant,
}

impl Default for RoundMetrics {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(durations),
            ignored_pods: Gauge::default(),
            unschedulable_pods: Family::default(),
            dropped_pods: Family::default(),
            under_way: Mutex::default(),
            zones: Mutex::default(),
        }
    }
}

impl RoundMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_scheduler_scheduling_duration_seconds",
            "One run of the solver",
            self.durations.clone(),
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
    }

    pub(super) fn write(&self, page: &mut Page, now: Instant) {
        let under_way = self.under_way.lock();
        let labels = |controller: &&'static str, round: &Round| {
            [
                ("controller", (*controller).to_owned()),
                ("scheduling_id", round.id.clone()),
            ]
        };
        let help = "Pods in the run of the solver that is under way";
        let mut family = page.family("karpenter_scheduler_queue_depth", Kind::Gauge, help);
        for (controller, round) in under_way.iter() {
            let left = if round.since.is_some() { round.pods } else { 0 };
            family.sample(&labels(controller, round), left as f64);
        }
        let help = "Age of the run of the solver that is under way";
        let mut family = page.family("karpenter_scheduler_unfinished_work_seconds", Kind::Gauge, help);
        for (controller, round) in under_way.iter() {
            if let Some(since) = round.since {
                let age = now.saturating_duration_since(since).as_secs_f64();
                family.sample(&labels(controller, round), age);
            }
        }
        let help = "Pending pods by the only zone that they can go to";
        let name = "karpenter_scheduler_pending_pods_by_effective_zone_count";
        let mut family = page.family(name, Kind::Gauge, help);
        for (controller, zones) in self.zones.lock().iter() {
            for (zone, pods) in zones {
                family.sample(&[("controller", *controller), ("zone", zone.as_str())], *pods as f64);
            }
        }
    }

    /// A round begins; what the controller's last one came to is forgotten.
    pub fn begin(&self, controller: &'static str, id: String, pods: usize) -> UnderWay<'_> {
        let begun = Instant::now();
        let round = Round {
            id,
            pods,
            since: Some(begun),
        };
        self.under_way.lock().insert(controller, round);
        self.zones.lock().remove(controller);
        UnderWay {
            metrics: self,
            controller,
            begun,
        }
    }

    pub fn unschedulable(&self, controller: &'static str, pods: usize) {
        self.unschedulable_pods
            .get_or_create(&OfController { controller })
            .set(gauge_value(pods));
    }

    pub fn zones(&self, controller: &'static str, zones: &BTreeMap<EffectiveZone, usize>) {
        let zones = zones.iter().map(|(zone, pods)| (zone.to_string(), *pods));
        self.zones.lock().insert(controller, zones.collect());
    }

    pub fn ignored(&self, pods: usize) {
        self.ignored_pods.set(gauge_value(pods));
    }

    pub fn dropped(&self, controller: &'static str, pods: usize) {
        self.dropped_pods
            .get_or_create(&OfController { controller })
            .inc_by(pods as u64);
    }
}

impl UnderWay<'_> {
    /// How long it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let labels = OfController {
            controller: self.controller,
        };
        let took = self.begun.elapsed().as_secs_f64();
        self.metrics.durations.get_or_create(&labels).observe(took);
        if let Some(round) = self.metrics.under_way.lock().get_mut(self.controller) {
            round.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SC15.1.13: a round is seen with its pods while it is under way, and is timed when it is over.
    #[test]
    fn a_round_is_seen_while_it_is_under_way() {
        let metrics = RoundMetrics::default();
        let depth = |metrics: &RoundMetrics| {
            let mut page = Page::default();
            metrics.write(&mut page, Instant::now());
            let text = page.finish();
            let line = text
                .lines()
                .find(|line| line.starts_with("karpenter_scheduler_queue_depth{"));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        };
        assert_eq!(depth(&metrics), None);
        let round = metrics.begin("provisioner", "1".to_owned(), 1000);
        assert_eq!(depth(&metrics), Some(1000.0));
        drop(round);
        assert_eq!(depth(&metrics), Some(0.0));
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes everything");
        let timed = "karpenter_scheduler_scheduling_duration_seconds_count{controller=\"provisioner\"} 1";
        assert!(text.contains(timed), "{text}");
    }
}
