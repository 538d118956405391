//! Who leaves a node next.
//!
//! Pods leave by tiers, each only when the one before is gone: what others lean on goes last. A deadline overtakes the
//! tiers: a pod that needs its whole grace period to be gone in time is told at once.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::{
    Pod,
    pod::{DoNotDisrupt, STUCK_AFTER},
};

/// Pods that a drain acts on now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drain {
    /// To be deleted, whatever budgets and annotations say.
    pub force: Vec<Arc<Pod>>,
    /// To be evicted, budgets permitting.
    pub evict: Vec<Arc<Pod>>,
    /// Everyone who has to be gone, those above included.
    pub waiting: usize,
    /// When this will have changed although nothing was heard: time alone ends protection and patience.
    pub changes: Option<Timestamp>,
}

pub fn plan(pods: &[Arc<Pod>], deadline: Option<Timestamp>, now: Timestamp) -> Drain {
    let waiting: Vec<_> = pods.iter().filter(|pod| pod.is_waiting_eviction(now)).collect();
    let (force, graceful): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(|pod| is_forced(pod, deadline, now));
    let current = graceful.iter().map(|pod| tier(pod)).min();
    let next = graceful
        .into_iter()
        .filter(|pod| Some(tier(pod)) == current && pod.is_evictable(now));
    Drain {
        evict: next.cloned().collect(),
        force: force.into_iter().cloned().collect(),
        waiting: waiting.len(),
        changes: waiting.iter().filter_map(|pod| changes(pod, deadline, now)).min(),
    }
}

/// The next moment at which a pod is treated otherwise than now.
fn changes(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    /// Comparisons with these moments are strict.
    const TICK: SignedDuration = SignedDuration::from_millis(1);
    let after = |moment: Timestamp, span: SignedDuration| moment.saturating_add(span).unwrap_or(Timestamp::MAX);
    let given_up = pod.deletion.map(|due| after(due, STUCK_AFTER + TICK));
    let forced = deadline.filter(|_| !pod.is_terminating()).map(|due| {
        let latest = due
            .saturating_sub(pod.shape.termination_grace)
            .unwrap_or(Timestamp::MIN);
        after(latest, TICK)
    });
    let unprotected = match (&pod.do_not_disrupt, pod.started) {
        (Some(DoNotDisrupt::For(time)), Some(start)) => Some(after(start, *time)),
        _ => None,
    };
    let moments = [given_up, forced, unprotected].into_iter().flatten();
    moments.filter(|moment| *moment > now).min()
}

/// Out of time: a pod that would outlast the deadline, or that would if it were told any later.
pub fn is_forced(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(deadline) = deadline else { return false };
    match pod.deletion {
        Some(due) => due > deadline,
        None => {
            now > deadline
                .saturating_sub(pod.shape.termination_grace)
                .unwrap_or(Timestamp::MIN)
        }
    }
}

fn tier(pod: &Pod) -> (bool, bool) {
    (pod.shape.is_critical(), pod.is_daemon())
}

#[cfg(test)]
mod tests {
    use model::{
        Taint, Toleration,
        pod::{PodOwner, PodPhase, PodShape},
    };

    use super::*;
    use model::samples::pod;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn shaped(name: &str, change: impl FnOnce(&mut PodShape)) -> Pod {
        let pod = pod(name);
        let mut shape = (*pod.shape).clone();
        change(&mut shape);
        Pod {
            shape: Arc::new(shape),
            node: Some("n".into()),
            ..pod
        }
    }

    fn plain(name: &str) -> Pod {
        shaped(name, |_| {})
    }

    fn critical(name: &str) -> Pod {
        shaped(name, |shape| shape.priority_class = Some("system-node-critical".into()))
    }

    fn daemon(pod: Pod) -> Pod {
        Pod {
            owner: PodOwner::DaemonSet,
            ..pod
        }
    }

    /// The plan at second 100 as names: forced, evicted, number waiting.
    #[track_caller]
    fn check(pods: Vec<Pod>, deadline: Option<i64>, force: &[&str], evict: &[&str], waiting: usize) {
        let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
        let drain = plan(&pods, deadline.map(at), at(100));
        let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.key.name.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (names(&drain.force), names(&drain.evict), drain.waiting),
            (
                force.iter().map(ToString::to_string).collect(),
                evict.iter().map(ToString::to_string).collect(),
                waiting,
            )
        );
    }

    /// LC-N12, LC-N13.
    #[test]
    fn tiers_leave_one_after_the_other() {
        let all = [plain("a"), daemon(plain("b")), critical("c"), daemon(critical("d"))];
        for first in 0..4 {
            let pods = all[first..].to_vec();
            let name = pods[0].key.name.to_string();
            check(pods, None, &[], &[&name], 4 - first);
        }
        let terminating = Pod {
            deletion: Some(at(110)),
            ..plain("a")
        };
        check(vec![terminating, daemon(plain("b"))], None, &[], &[], 2);
    }

    #[test]
    fn who_will_not_leave_is_not_waited_for() {
        // LC-N7, LC-N10, LC-N14, LC-N18
        let tolerant = shaped("t", |shape| {
            shape.tolerations = vec![Toleration::of_key(Taint::disrupted().key)];
        });
        let done = Pod {
            phase: PodPhase::Succeeded,
            ..plain("done")
        };
        let mirror = Pod {
            owner: PodOwner::Node,
            ..plain("mirror")
        };
        let stuck = Pod {
            deletion: Some(at(39)),
            ..plain("stuck")
        };
        check(vec![tolerant, done, mirror, stuck], None, &[], &[], 0);
    }

    #[test]
    fn who_may_not_be_disturbed_is_waited_for() {
        // LC-N8, LC-N9, LC-N28
        let kept = Pod {
            do_not_disrupt: Some(DoNotDisrupt::Always),
            ..plain("kept")
        };
        let timed = Pod {
            do_not_disrupt: Some(DoNotDisrupt::For(SignedDuration::from_secs(60))),
            started: Some(at(40)),
            ..plain("timed")
        };
        let ownerless = Pod {
            owner: PodOwner::Nobody,
            ..plain("ownerless")
        };
        let unschedulable = shaped("unschedulable", |shape| {
            shape.tolerations = vec![Toleration::of_key("node.kubernetes.io/unschedulable")];
        });
        check(
            vec![kept, timed, ownerless, unschedulable],
            None,
            &[],
            &["timed", "ownerless", "unschedulable"],
            4,
        );
    }

    #[test]
    fn a_deadline_overtakes_tiers_and_protection() {
        let graceful = |pod: Pod, secs: i64| {
            let mut shape = (*pod.shape).clone();
            shape.termination_grace = SignedDuration::from_secs(secs);
            Pod {
                shape: Arc::new(shape),
                ..pod
            }
        };
        let kept = Pod {
            do_not_disrupt: Some(DoNotDisrupt::Always),
            ..graceful(plain("kept"), 300)
        };
        // LC-N20: the grace of the pod is longer than what is left.
        check(vec![kept], Some(399), &["kept"], &[], 1);
        // LC-N22
        check(vec![graceful(plain("a"), 60)], Some(160), &[], &["a"], 1);
        check(vec![graceful(plain("a"), 60)], Some(159), &["a"], &[], 1);
        // LC-N21
        check(
            vec![graceful(plain("a"), 1), graceful(critical("c"), 300)],
            Some(200),
            &["c"],
            &["a"],
            2,
        );
        // LC-N23
        check(
            vec![Pod {
                deletion: Some(at(300)),
                ..plain("slow")
            }],
            Some(200),
            &["slow"],
            &[],
            1,
        );
        check(
            vec![Pod {
                deletion: Some(at(150)),
                ..plain("in-time")
            }],
            Some(200),
            &[],
            &[],
            1,
        );
    }

    /// Between two changes of the cluster nothing has to be looked at before the moment that the plan names.
    #[test]
    fn a_plan_says_when_time_alone_changes_it() {
        let changes = |pod: Pod, deadline: Option<i64>| {
            let drain = plan(&[Arc::new(pod)], deadline.map(at), at(100));
            drain
                .changes
                .map(|moment| moment.duration_since(Timestamp::UNIX_EPOCH).as_millis())
        };
        assert_eq!(changes(plain("a"), None), None);
        let leaving = Pod {
            deletion: Some(at(110)),
            ..plain("a")
        };
        assert_eq!(changes(leaving, None), Some(170_001));
        let timed = Pod {
            do_not_disrupt: Some(DoNotDisrupt::For(SignedDuration::from_secs(60))),
            started: Some(at(90)),
            ..plain("a")
        };
        assert_eq!(changes(timed, None), Some(150_000));
        let half_a_minute = shaped("a", |shape| shape.termination_grace = SignedDuration::from_secs(30));
        assert_eq!(changes(half_a_minute.clone(), Some(200)), Some(170_001));
        assert_eq!(changes(half_a_minute, Some(120)), None, "it is forced by now");
    }
}
