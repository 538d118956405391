//! What to do about one pod that is to leave.

use jiff::Timestamp;
use model::Pod;

use crate::node::termination::is_forced;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is gone or going.
    Drop,
    /// It may not be disturbed now.
    Wait,
    Evict,
    /// Out of time: past budgets and protection.
    Delete {
        grace_secs: u32,
    },
}

pub fn decide(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> Step {
    if pod.is_terminal() {
        return Step::Drop;
    }
    if let Some(due) = deadline.filter(|_| is_forced(pod, deadline, now)) {
        return Step::Delete {
            grace_secs: grace_left(due, now),
        };
    }
    if pod.is_terminating() {
        Step::Drop
    } else if pod.is_evictable(now) {
        Step::Evict
    } else {
        Step::Wait
    }
}

/// Never zero: that would remove the pod without anybody having stopped it.
fn grace_left(due: Timestamp, now: Timestamp) -> u32 {
    u32::try_from(due.duration_since(now).as_secs()).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use model::pod::{DoNotDisrupt, PodPhase};

    use super::*;
    use model::samples::pod;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    #[track_caller]
    fn check(pod: Pod, deadline: Option<i64>, expected: Step) {
        assert_eq!(decide(&pod, deadline.map(at), at(100)), expected);
    }

    #[test]
    fn a_pod_is_asked_first_and_told_when_time_is_up() {
        let kept = Pod {
            do_not_disrupt: Some(DoNotDisrupt::Always),
            ..pod("p")
        };
        // LC-Q3
        check(pod("p"), None, Step::Evict);
        check(pod("p"), Some(1_000), Step::Evict);
        check(kept.clone(), None, Step::Wait);
        check(
            Pod {
                deletion: Some(at(120)),
                ..pod("p")
            },
            None,
            Step::Drop,
        );
        check(
            Pod {
                phase: PodPhase::Failed,
                ..pod("p")
            },
            Some(0),
            Step::Drop,
        );
        // LC-Q8
        check(kept, Some(110), Step::Delete { grace_secs: 10 });
        // LC-Q12
        check(pod("p"), Some(50), Step::Delete { grace_secs: 1 });
        // LC-N23
        check(
            Pod {
                deletion: Some(at(500)),
                ..pod("p")
            },
            Some(130),
            Step::Delete { grace_secs: 30 },
        );
    }
}
