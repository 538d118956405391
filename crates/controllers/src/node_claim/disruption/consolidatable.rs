//! Whether a node has been left alone long enough.

use jiff::{SignedDuration, Timestamp};
use model::{Claim, Pool};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Set,
    Clear,
    /// Not yet; look again after this time.
    ClearUntil(SignedDuration),
}

pub fn decide(claim: &Claim, pool: &Pool, now: Timestamp) -> Mark {
    let (Some(wait), Some(initialized), false) = (
        pool.disruption.consolidate_after,
        claim.initialized_at,
        pool.is_static(),
    ) else {
        return Mark::Clear;
    };
    let since = claim.last_pod_event.unwrap_or(initialized);
    let due = since.saturating_add(wait).unwrap_or(Timestamp::MAX);
    if wait.is_zero() || due <= now {
        Mark::Set
    } else {
        Mark::ClearUntil(due.duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use model::{Claim, pool::Disruption};

    use super::*;
    use model::samples::{claim, pool};

    fn at(secs: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs)
    }

    #[track_caller]
    fn check(after: Option<i64>, initialized: Option<i64>, pod_event: Option<i64>, expected: Mark) {
        let pool = pool("p");
        let pool = Pool {
            disruption: Disruption {
                consolidate_after: after.map(SignedDuration::from_secs),
                ..pool.disruption.clone()
            },
            ..pool
        };
        let claim = Claim {
            initialized_at: initialized.map(at),
            last_pod_event: pod_event.map(at),
            ..claim("c")
        };
        assert_eq!(decide(&claim, &pool, at(100)), expected);
    }

    #[test]
    fn a_node_is_marked_once_it_was_left_alone_long_enough() {
        // DI-K1, DI-K2
        check(Some(30), Some(10), Some(70), Mark::Set);
        check(Some(30), Some(70), None, Mark::Set);
        check(Some(0), Some(100), Some(100), Mark::Set);
        // DI-K3
        check(
            Some(30),
            Some(10),
            Some(80),
            Mark::ClearUntil(SignedDuration::from_secs(10)),
        );
        // DI-K4
        check(None, Some(10), None, Mark::Clear);
        check(Some(30), None, None, Mark::Clear);
    }

    /// DI-K5.
    #[test]
    fn a_static_pool_is_never_marked() {
        let pool = Pool {
            replicas: Some(3),
            ..pool("p")
        };
        let claim = Claim {
            initialized_at: Some(at(0)),
            ..claim("c")
        };
        assert_eq!(decide(&claim, &pool, at(1_000_000)), Mark::Clear);
    }
}
