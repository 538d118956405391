//! How long a claim may take to come to life.

use api::conditions::{Conditions, node_claim as condition};
use jiff::{SignedDuration, Timestamp};

use super::act::wait_until;
use crate::context::Knobs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub launch: SignedDuration,
    pub registration: SignedDuration,
}

impl Limits {
    pub fn of(knobs: &Knobs) -> Self {
        let signed = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        Self {
            launch: signed(knobs.launch_timeout),
            registration: signed(knobs.registration_timeout),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    Launch,
    Registration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    CheckAgain(SignedDuration),
    Overdue(Overdue),
}

/// Deadlines run from the moment a condition became what it is, not from the claim's creation: a claim that was held up
/// at one step has its full time at the next.
pub fn decide(conditions: &Conditions, limits: Limits, now: Timestamp) -> Liveness {
    if conditions.is_true(condition::REGISTERED) {
        return Liveness::Alive;
    }
    let due = |name, limit| {
        let since = conditions
            .get(name)
            .map_or(now, |condition| condition.last_transition_time.0);
        since.saturating_add(limit).unwrap_or(Timestamp::MAX)
    };
    let registration = due(condition::REGISTERED, limits.registration);
    let mut next = registration;
    if !conditions.is_true(condition::LAUNCHED) {
        let launch = due(condition::LAUNCHED, limits.launch);
        if launch <= now {
            return Liveness::Overdue(Overdue::Launch);
        }
        next = next.min(launch);
    }
    if registration <= now {
        return Liveness::Overdue(Overdue::Registration);
    }
    Liveness::CheckAgain(wait_until(next, now))
}

#[cfg(test)]
mod tests {
    use api::v1::NodeClaim;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(mins: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(mins)
    }

    /// A claim created at minute zero that launched or registered at the given minutes.
    #[track_caller]
    fn check(launched: Option<i64>, registered: Option<i64>, now: i64, expected: Liveness) {
        let mut claim = NodeClaim::default();
        claim.metadata.creation_timestamp = Some(Time(at(0)));
        let mut conditions = Conditions::of(&claim, at(0));
        if let Some(when) = launched {
            conditions.set_true(condition::LAUNCHED, at(when));
        }
        if let Some(when) = registered {
            conditions.set_true(condition::REGISTERED, at(when));
        }
        let limits = Limits {
            launch: SignedDuration::from_mins(5),
            registration: SignedDuration::from_mins(15),
        };
        assert_eq!(decide(&conditions, limits, at(now)), expected);
    }

    #[test]
    fn deadlines_hold_until_registration() {
        let again = |mins| Liveness::CheckAgain(SignedDuration::from_mins(mins));
        // LC-V4, LC-V3
        check(None, None, 1, again(4));
        check(None, None, 5, Liveness::Overdue(Overdue::Launch));
        // LC-V1
        check(Some(1), None, 14, again(1));
        check(Some(1), None, 15, Liveness::Overdue(Overdue::Registration));
        // LC-V2
        check(Some(1), Some(2), 20, Liveness::Alive);
    }

    /// LC-V5.
    #[test]
    fn a_launch_may_take_as_long_as_the_settings_say() {
        let knobs = Knobs {
            launch_timeout: std::time::Duration::from_secs(60),
            ..Knobs::default()
        };
        let conditions = Conditions::of(&NodeClaim::default(), at(0));
        assert_eq!(
            decide(&conditions, Limits::of(&knobs), at(1)),
            Liveness::Overdue(Overdue::Launch)
        );
    }

    /// LC-V6.
    #[test]
    fn timers_follow_the_transition() {
        let mut claim = NodeClaim::default();
        claim.metadata.creation_timestamp = Some(Time(at(0)));
        let mut conditions = Conditions::of(&claim, at(0));
        conditions.set_true(condition::LAUNCHED, at(1));
        conditions.set_false(condition::REGISTERED, "MultipleNodesFound", "", at(10));
        let limits = Limits::of(&Knobs::default());
        assert_eq!(
            decide(&conditions, limits, at(16)),
            Liveness::CheckAgain(SignedDuration::from_mins(9))
        );
    }
}
