//! How long pods wait: for a decision, for a node, for their start.
//!
//! A pod is followed from the moment it is seen pending until it is ready, ends or goes. What is measured from a
//! decision exists for pods that we decided about only.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{Pod, PodKey, PodUid, pod::PodPhase};
use parking_lot::Mutex;
use prometheus_client::{metrics::histogram::Histogram, registry::Registry};

use super::{
    durations,
    page::{Kind, Page},
    summary::Summary,
};

pub struct PodMetrics {
    waiting: Mutex<BTreeMap<PodKey, Wait>>,
    startup: Summary,
    bound: Histogram,
    provisioning_bound: Histogram,
    provisioning_startup: Histogram,
    decision: Histogram,
}

/// One pod on its way.
#[derive(Clone, Debug)]
struct Wait {
    uid: PodUid,
    created: Timestamp,
    bound: bool,
    /// When we first knew that it needs a node.
    acknowledged: Option<Timestamp>,
    /// When a round first looked at it.
    decided: Option<Timestamp>,
    /// Since when every round has had a place for it.
    schedulable: Option<Timestamp>,
}

impl Default for PodMetrics {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            startup: Summary::new(
                "karpenter_pods_startup_duration_seconds",
                "From the creation of a pod to its being ready",
                "",
            ),
            bound: durations(),
            provisioning_bound: durations(),
            provisioning_startup: durations(),
            decision: durations(),
        }
    }
}

impl PodMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_pods_bound_duration_seconds",
            "From the creation of a pod to its having a node",
            self.bound.clone(),
        );
        to.register(
            "karpenter_pods_provisioning_bound_duration_seconds",
            "From the first plan for a pod to its having a node",
            self.provisioning_bound.clone(),
        );
        to.register(
            "karpenter_pods_provisioning_startup_duration_seconds",
            "From the first plan for a pod to its being ready",
            self.provisioning_startup.clone(),
        );
        to.register(
            "karpenter_pods_scheduling_decision_duration_seconds",
            "From knowing of a pod without a node to the first decision about it",
            self.decision.clone(),
        );
    }

    /// A pod as it is now; `None` when it is gone.
    pub fn saw(&self, key: &PodKey, pod: Option<&Pod>, now: Timestamp) {
        let mut waiting = self.waiting.lock();
        let Some(pod) = pod.filter(|pod| !pod.is_terminal()) else {
            waiting.remove(key);
            return;
        };
        if waiting.get(key).is_some_and(|wait| wait.uid != pod.uid) {
            waiting.remove(key);
        }
        if !waiting.contains_key(key) {
            if pod.phase != PodPhase::Pending {
                return;
            }
            // What happened before we looked is not measured.
            let wait = Wait {
                uid: pod.uid.clone(),
                created: pod.created,
                bound: pod.node.is_some(),
                acknowledged: None,
                decided: None,
                schedulable: None,
            };
            waiting.insert(key.clone(), wait);
        }
        let Some(wait) = waiting.get_mut(key) else { return };
        if pod.is_provisionable() {
            wait.acknowledged.get_or_insert(now);
        }
        if pod.node.is_some() && !wait.bound {
            wait.bound = true;
            self.bound.observe(secs(wait.created, now));
            if let Some(since) = wait.schedulable {
                self.provisioning_bound.observe(secs(since, now));
            }
        }
        if pod.ready {
            self.startup.observe("", secs(wait.created, now), now);
            if let Some(since) = wait.schedulable {
                self.provisioning_startup.observe(secs(since, now));
            }
            waiting.remove(key);
        }
    }

    /// A round has looked at a pod, and had a place for it or not.
    pub fn decided(&self, pod: &PodKey, has_place: bool, now: Timestamp) {
        let mut waiting = self.waiting.lock();
        let Some(wait) = waiting.get_mut(pod).filter(|wait| !wait.bound) else {
            return;
        };
        if wait.decided.is_none() {
            wait.decided = Some(now);
            if let Some(since) = wait.acknowledged {
                self.decision.observe(secs(since, now));
            }
        }
        if has_place {
            wait.schedulable.get_or_insert(now);
        } else {
            wait.schedulable = None;
        }
    }

    pub(super) fn write(&self, page: &mut Page, now: Timestamp) {
        self.startup.write(page, now);
        let waiting = self.waiting.lock();
        let mut gauge = |name: &'static str, help: &str, since: &dyn Fn(&Wait) -> Option<Timestamp>| {
            let mut family = page.family(name, Kind::Gauge, help);
            for (pod, wait) in waiting.iter() {
                if let Some(since) = since(wait) {
                    family.sample(
                        &[("name", &*pod.name), ("namespace", &*pod.namespace)],
                        secs(since, now),
                    );
                }
            }
        };
        gauge(
            "karpenter_pods_unstarted_time_seconds",
            "Age of pods that are not ready yet",
            &|wait| Some(wait.created),
        );
        gauge(
            "karpenter_pods_unbound_time_seconds",
            "Age of pods that have no node yet",
            &|wait| (!wait.bound).then_some(wait.created),
        );
        gauge(
            "karpenter_pods_provisioning_unstarted_time_seconds",
            "Time since the first plan for pods that are not ready yet",
            &|wait| wait.schedulable,
        );
        gauge(
            "karpenter_pods_provisioning_unbound_time_seconds",
            "Time since the first plan for pods that have no node yet",
            &|wait| wait.schedulable.filter(|_| !wait.bound),
        );
        gauge(
            "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
            "Time since we know of pods without a node that no round has looked at",
            &|wait| wait.acknowledged.filter(|_| wait.decided.is_none() && !wait.bound),
        );
    }
}

fn secs(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use model::samples;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn pending() -> Pod {
        Pod {
            unschedulable: true,
            ..samples::pod("web")
        }
    }

    fn bound() -> Pod {
        Pod {
            node: Some("n".into()),
            unschedulable: false,
            ..samples::pod("web")
        }
    }

    /// The families that are shown for the pod, without their common prefix, and what they say.
    fn shown(metrics: &PodMetrics, secs: i64) -> Vec<String> {
        let mut page = Page::default();
        metrics.write(&mut page, at(secs));
        let text = page.finish();
        let samples = text.lines().filter(|line| line.contains("_time_seconds{"));
        let short = samples.map(|line| line.replace("karpenter_pods_", ""));
        short
            .map(|line| line.replace("_time_seconds{name=\"web\",namespace=\"default\"}", ""))
            .collect()
    }

    /// LC-M7, LC-M8.
    #[test]
    fn a_pod_is_shown_for_as_long_as_it_waits() {
        let metrics = PodMetrics::default();
        let saw = |pod: Option<&Pod>, secs| metrics.saw(&pending().key, pod, at(secs));
        saw(Some(&pending()), 10);
        assert_eq!(
            shown(&metrics, 15),
            ["unstarted 15", "unbound 15", "provisioning_scheduling_undecided 5"]
        );
        metrics.decided(&pending().key, true, at(20));
        assert_eq!(
            shown(&metrics, 25),
            [
                "unstarted 25",
                "unbound 25",
                "provisioning_unstarted 5",
                "provisioning_unbound 5"
            ]
        );
        metrics.decided(&pending().key, false, at(26));
        assert_eq!(
            shown(&metrics, 27),
            ["unstarted 27", "unbound 27"],
            "a refusal takes the promise back"
        );
        metrics.decided(&pending().key, true, at(30));
        saw(Some(&bound()), 40);
        assert_eq!(shown(&metrics, 41), ["unstarted 41", "provisioning_unstarted 11"]);
        let ready = Pod {
            phase: PodPhase::Running,
            ready: true,
            ..bound()
        };
        saw(Some(&ready), 50);
        assert!(shown(&metrics, 51).is_empty());
        let mut page = Page::default();
        metrics.write(&mut page, at(51));
        assert!(page.finish().contains("karpenter_pods_startup_duration_seconds_sum 50"));
    }

    /// LC-M7: terminal, deleted, and running before we came.
    #[test]
    fn a_pod_that_waits_no_more_is_not_shown() {
        let metrics = PodMetrics::default();
        let key = pending().key;
        metrics.saw(&key, Some(&pending()), at(0));
        let failed = Pod {
            phase: PodPhase::Failed,
            ..pending()
        };
        metrics.saw(&key, Some(&failed), at(1));
        assert!(shown(&metrics, 2).is_empty());
        metrics.saw(&key, Some(&pending()), at(3));
        metrics.saw(&key, None, at(4));
        assert!(shown(&metrics, 5).is_empty());
        let running = Pod {
            phase: PodPhase::Running,
            ..bound()
        };
        metrics.saw(&key, Some(&running), at(6));
        assert!(shown(&metrics, 7).is_empty());
    }

    /// LC-U23: the first moment counts, a bound pod is past deciding about, and a pod that comes again begins anew.
    #[test]
    fn a_pods_time_counts_from_its_first_plan() {
        let metrics = PodMetrics::default();
        let key = pending().key;
        let planned = |secs: i64| {
            let lines = shown(&metrics, secs).into_iter();
            lines
                .filter(|line| line.starts_with("provisioning_unstarted"))
                .collect::<Vec<_>>()
        };
        metrics.saw(&key, Some(&pending()), at(0));
        metrics.decided(&key, true, at(10));
        metrics.decided(&key, true, at(20));
        assert_eq!(planned(30), ["provisioning_unstarted 20"]);
        metrics.saw(&key, Some(&bound()), at(40));
        metrics.decided(&key, false, at(50));
        assert_eq!(planned(60), ["provisioning_unstarted 50"]);
        metrics.saw(&key, None, at(70));
        metrics.saw(&key, Some(&pending()), at(80));
        assert!(planned(90).is_empty());
    }
}
