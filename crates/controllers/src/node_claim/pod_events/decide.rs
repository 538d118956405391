//! Which changes of a pod count as coming to a node or leaving it.

use jiff::{SignedDuration, Timestamp};
use model::Pod;

/// Stamps are at least this far apart. Shorter than the time that a disruption waits before it acts, so that a pod that
/// came in between is seen.
const BETWEEN_STAMPS: SignedDuration = SignedDuration::from_secs(10);

pub fn is_due(noted: Option<Timestamp>, now: Timestamp) -> bool {
    noted.is_none_or(|noted| now.duration_since(noted) >= BETWEEN_STAMPS)
}

/// Being bound, turning terminal, turning terminating, or going without having said so.
///
/// A pod that is seen for the first time, on its node already, is news only if it is younger than the last stamp: else
/// a restart of the controller would restart every wait in the cluster.
pub fn is_news(old: Option<&Pod>, new: Option<&Pod>, noted: Option<Timestamp>) -> bool {
    let Some(pod) = new.or(old) else { return false };
    if pod.is_daemon() {
        return false;
    }
    match (old, new) {
        (Some(old), Some(new)) => {
            (old.node.is_none() && new.node.is_some())
                || (!old.is_terminal() && new.is_terminal())
                || (!old.is_terminating() && new.is_terminating())
        }
        (None, Some(new)) => new.node.is_some() && new.is_active() && noted.is_none_or(|noted| noted < new.created),
        (Some(old), None) => old.is_active(),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use model::pod::{PodOwner, PodPhase};

    use super::*;
    use model::samples::pod;

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    fn bound() -> Pod {
        Pod {
            node: Some("n".into()),
            created: at(50),
            ..pod("p")
        }
    }

    #[track_caller]
    fn check(old: Option<Pod>, new: Option<Pod>, expected: bool) {
        assert_eq!(is_news(old.as_ref(), new.as_ref(), Some(at(60))), expected);
    }

    /// LC-Y4.
    #[test]
    fn coming_and_leaving_count() {
        let done = Pod {
            phase: PodPhase::Succeeded,
            ..bound()
        };
        let leaving = Pod {
            deletion: Some(at(70)),
            ..bound()
        };
        check(Some(pod("p")), Some(bound()), true);
        check(Some(bound()), Some(bound()), false);
        check(Some(bound()), Some(done.clone()), true);
        check(Some(bound()), Some(leaving.clone()), true);
        check(Some(bound()), None, true);
        check(Some(leaving), None, false);
        check(Some(done), None, false);
        check(
            Some(pod("p")),
            Some(Pod {
                owner: PodOwner::DaemonSet,
                ..bound()
            }),
            false,
        );
    }

    #[test]
    fn a_restart_does_not_restart_the_waits() {
        check(None, Some(bound()), false);
        check(
            None,
            Some(Pod {
                created: at(61),
                ..bound()
            }),
            true,
        );
        assert!(is_news(None, Some(&bound()), None));
    }

    /// LC-Y6.
    #[test]
    fn stamps_are_ten_seconds_apart() {
        assert!(is_due(None, at(0)));
        assert!(!is_due(Some(at(0)), at(9)));
        assert!(is_due(Some(at(0)), at(10)));
    }
}
