//! Whether a claim is too old.

use jiff::{SignedDuration, Timestamp};
use model::Claim;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Keep,
    CheckAgain(SignedDuration),
    Expire,
}

pub fn decide(claim: &Claim, now: Timestamp) -> Step {
    let (None, Some(age)) = (claim.deleting, claim.expire_after) else {
        return Step::Keep;
    };
    let due = claim.created.saturating_add(age).unwrap_or(Timestamp::MAX);
    if due <= now {
        Step::Expire
    } else {
        Step::CheckAgain(due.duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::samples::claim;

    #[track_caller]
    fn check(expire_after: Option<i64>, deleting: bool, age: i64, expected: Step) {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(age);
        let claim = Claim {
            created: Timestamp::UNIX_EPOCH,
            expire_after: expire_after.map(SignedDuration::from_secs),
            deleting: deleting.then_some(now),
            ..claim("c")
        };
        assert_eq!(decide(&claim, now), expected);
    }

    #[test]
    fn age_alone_decides() {
        // LC-X1, LC-X3
        check(Some(60), false, 60, Step::Expire);
        // LC-X2
        check(None, false, 1_000_000, Step::Keep);
        check(Some(60), false, 45, Step::CheckAgain(SignedDuration::from_secs(15)));
        // LC-X4
        check(Some(60), true, 61, Step::Keep);
    }
}
