//! What has to go because nothing needs it any more. Decisions only; who carries them out is elsewhere.

use std::collections::BTreeSet;

use api::aws::{CapacityReservation, ReservationState};
use model::{CapacityType, ClaimName};

use crate::{machine::Purchase, ports::ProfileInfo};

/// Profiles that neither a claim nor a class uses, and that nobody is about to use.
pub fn unused_profiles<'a>(
    listed: &'a [ProfileInfo],
    of_claims: &BTreeSet<String>,
    of_classes: &BTreeSet<String>,
    is_protected: impl Fn(&str) -> bool,
) -> Vec<&'a str> {
    let is_used = |name: &str| of_claims.contains(name) || of_classes.contains(name) || is_protected(name);
    let names = listed.iter().map(|profile| profile.name.as_str());
    names.filter(|name| !is_used(name)).collect()
}

/// What a claim or a node says about its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled<'a> {
    pub capacity_type: Option<&'a str>,
    pub deleting: bool,
}

/// Whether an object still says `reserved` of an instance whose reservation has ended. EC2 then bills it on demand, and
/// nothing ever makes it reserved again.
pub fn is_to_be_demoted(labelled: &Labelled<'_>, purchase: &Purchase) -> bool {
    *purchase == Purchase::OnDemand
        && !labelled.deleting
        && labelled.capacity_type == Some(CapacityType::Reserved.as_str())
}

/// Claims in reservations that are about to end.
pub fn expiring<'a>(
    claims: impl IntoIterator<Item = (&'a ClaimName, &'a str)>,
    reservations: &[CapacityReservation],
) -> Vec<&'a ClaimName> {
    let ending: BTreeSet<&str> = reservations
        .iter()
        .filter(|reservation| reservation.state == Some(ReservationState::Expiring))
        .map(|reservation| reservation.id.as_str())
        .collect();
    let concerned = claims
        .into_iter()
        .filter(|(_, reservation)| ending.contains(reservation));
    concerned.map(|(claim, _)| claim).collect()
}

#[cfg(test)]
mod tests {
    use api::aws::{InstanceMatchCriteria, ReservationType};

    use super::*;

    /// AW24.5.13
    #[test]
    fn profiles_that_are_used_or_protected_stay() {
        let profile = |name: &str| ProfileInfo {
            name: name.to_owned(),
            roles: Vec::new(),
        };
        let listed = ["claim", "class", "protected", "unused"].map(profile);
        let one = |name: &str| [name.to_owned()].into();
        let unused = unused_profiles(&listed, &one("claim"), &one("class"), |name| name == "protected");
        assert_eq!(unused, ["unused"]);
    }

    /// AW24.14.7
    #[test]
    fn what_fell_out_of_its_reservation_is_demoted_once_and_never_promoted() {
        let reserved = Purchase::Reserved {
            reservation: "cr-1".to_owned(),
            capacity_block: false,
            interruptible: false,
        };
        let labelled = |capacity_type, deleting| Labelled {
            capacity_type: Some(capacity_type),
            deleting,
        };
        assert!(is_to_be_demoted(&labelled("reserved", false), &Purchase::OnDemand));
        assert!(!is_to_be_demoted(&labelled("reserved", true), &Purchase::OnDemand));
        assert!(!is_to_be_demoted(&labelled("on-demand", false), &Purchase::OnDemand));
        assert!(!is_to_be_demoted(&labelled("reserved", false), &reserved));
        assert!(!is_to_be_demoted(&labelled("on-demand", false), &reserved));
    }

    /// AW24.14.8
    #[test]
    fn claims_leave_a_reservation_that_is_about_to_end() {
        let reservation = |id: &str, state| CapacityReservation {
            availability_zone: "a".to_owned(),
            end_time: None,
            id: id.to_owned(),
            instance_match_criteria: InstanceMatchCriteria::Open,
            instance_type: "m5.large".to_owned(),
            owner_id: "1".to_owned(),
            reservation_type: Some(ReservationType::CapacityBlock),
            interruptible: None,
            state: Some(state),
        };
        let reservations = [
            reservation("cr-1", ReservationState::Expiring),
            reservation("cr-2", ReservationState::Active),
        ];
        let (one, two) = (ClaimName::from("one"), ClaimName::from("two"));
        let claims = [(&one, "cr-1"), (&two, "cr-2")];
        assert_eq!(expiring(claims, &reservations), [&one]);
    }
}
