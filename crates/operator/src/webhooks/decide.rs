//! What has to be made anew, and when.
//!
//! ```text
//!   authority    |────────────────── 365 days ──────────────────┼── 60 left: a new one, trusted beside the old ──|
//!   certificate  |── 30 days, renewed with 10 left ──|── … ──|── the first that the new authority signs ──|
//! ```
//!
//! A certificate lives for less than an authority has left when it is replaced, so none outlives who signed it.

use jiff::{SignedDuration, Timestamp};

use super::identity::Identity;

pub const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
pub const CERTIFICATE_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long before its end an authority is replaced.
const AUTHORITY_AHEAD: SignedDuration = SignedDuration::from_hours(60 * 24);
/// How long before its end a certificate is replaced: a leader may be absent for a week.
const CERTIFICATE_AHEAD: SignedDuration = SignedDuration::from_hours(10 * 24);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Keep,
    /// Everything anew: there is nothing, or it is too late for an orderly change.
    Begin,
    RenewAuthority,
    RenewCertificate,
}

/// One step at a time, and the authority first: a new one has to be trusted before it signs.
pub fn decide(found: Option<&Identity>, names: &[String], now: Timestamp) -> Step {
    let Some(found) = found else {
        return Step::Begin;
    };
    let ends = |moment: Timestamp, ahead: SignedDuration| moment.duration_since(now) <= ahead;
    if ends(found.authority_until, SignedDuration::ZERO) {
        Step::Begin
    } else if ends(found.authority_until, AUTHORITY_AHEAD) {
        Step::RenewAuthority
    } else if ends(found.certificate_until, CERTIFICATE_AHEAD) || found.names != names {
        Step::RenewCertificate
    } else {
        Step::Keep
    }
}

#[cfg(test)]
mod tests {
    use clock::VirtualClock;

    use super::*;

    fn names() -> Vec<String> {
        vec!["karpenter.kube-system.svc".to_owned()]
    }

    fn days(days: i64) -> Timestamp {
        VirtualClock::EPOCH + SignedDuration::from_hours(days * 24)
    }

    #[test]
    fn each_is_renewed_before_it_ends_and_the_authority_first() {
        let found = Identity::new(&names(), days(0)).expect("an identity");
        for (day, step) in [
            (0, Step::Keep),
            (19, Step::Keep),
            (20, Step::RenewCertificate),
            (40, Step::RenewCertificate),
            (304, Step::RenewCertificate),
            (305, Step::RenewAuthority),
            (364, Step::RenewAuthority),
            (365, Step::Begin),
        ] {
            assert_eq!(decide(Some(&found), &names(), days(day)), step, "day {day}");
        }
        assert_eq!(decide(None, &names(), days(0)), Step::Begin);
    }

    #[test]
    fn other_names_need_another_certificate() {
        let found = Identity::new(&names(), days(0)).expect("an identity");
        let other = vec!["keeper.karpenter.svc".to_owned()];
        assert_eq!(decide(Some(&found), &other, days(0)), Step::RenewCertificate);
    }

    /// Two years, one look a day: no certificate is offered after its end, by nobody whom one does not trust.
    #[test]
    fn a_certificate_never_outlives_who_signed_it() {
        let mut found = Identity::new(&names(), days(0)).expect("an identity");
        let mut signed_until = found.authority_until;
        let mut steps = [0, 0];
        for day in 0..730 {
            let now = days(day);
            match decide(Some(&found), &names(), now) {
                Step::Keep => {}
                Step::Begin => panic!("day {day}: too late"),
                Step::RenewAuthority => {
                    found = found.with_new_authority(now).expect("an authority");
                    steps[0] += 1;
                }
                Step::RenewCertificate => {
                    found = found.with_new_certificate(&names(), now).expect("a certificate");
                    signed_until = found.authority_until;
                    steps[1] += 1;
                }
            }
            assert!(
                found.certificate_until > now && signed_until > found.certificate_until,
                "day {day}"
            );
        }
        assert_eq!(steps, [2, 36]);
    }
}
