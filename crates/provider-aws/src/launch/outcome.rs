//! What a fleet's answer means.

use std::collections::BTreeSet;

use model::CapacityType;
use provider::ProviderError;

use crate::{
    error::{AwsError, launch_failure},
    ports::{FleetAnswer, FleetError, FleetInstances, FleetOverride},
};

/// Something to keep away from for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lesson {
    /// This type is short in this zone.
    Offering { instance_type: String, zone: String },
    /// Every type that was asked for is short in this zone, inside the placement group.
    ZoneOfGroup { zone: String },
    /// Spot capacity cannot be bought at all.
    NoSpot,
    /// The subnet has no addresses left.
    Subnet(String),
    /// The reservation for this type in this zone is full.
    Reservation { instance_type: String, zone: String },
}

/// What the errors of an answer teach. They count also beside an instance: the fleet tried these first.
pub fn lessons(errors: &[FleetError], capacity_type: CapacityType, in_group: bool) -> Vec<Lesson> {
    let mut lessons = BTreeSet::new();
    for FleetError { error, failed } in errors {
        let place = failed.as_ref().and_then(place);
        if let (true, Some(failed)) = (error.is_subnet_full(), failed)
            && !failed.subnet.is_empty()
        {
            lessons.insert(Lesson::Subnet(failed.subnet.clone()));
        }
        if error.is_spot_role_missing() {
            lessons.insert(Lesson::NoSpot);
        }
        let (true, Some((instance_type, zone))) = (error.is_no_capacity(), place) else {
            continue;
        };
        let is_reserved = capacity_type == CapacityType::Reserved;
        let is_group_full = in_group && error.is_spread_group_full();
        lessons.extend(match (is_reserved, is_group_full) {
            (true, true) => None,
            (true, false) => Some(Lesson::Reservation { instance_type, zone }),
            (false, true) => Some(Lesson::ZoneOfGroup { zone }),
            (false, false) => Some(Lesson::Offering { instance_type, zone }),
        });
    }
    lessons.into_iter().collect()
}

/// Type and zone of the override that failed, if EC2 named both.
fn place(failed: &FleetOverride) -> Option<(String, String)> {
    let zone = failed.zone.clone().filter(|zone| !zone.is_empty())?;
    (!failed.instance_type.is_empty()).then(|| (failed.instance_type.clone(), zone))
}

/// The instance that a fleet of one launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: String,
    pub group: FleetInstances,
}

/// One instance, or why there is none.
pub fn delivery(answer: &FleetAnswer) -> Result<Delivery, ProviderError> {
    let group = answer.instances.iter().find(|group| !group.ids.is_empty());
    match group {
        Some(group) => Ok(Delivery {
            id: group.ids[0].clone(),
            group: group.clone(),
        }),
        None => Err(refusal(&answer.errors)),
    }
}

fn refusal(errors: &[FleetError]) -> ProviderError {
    let texts: BTreeSet<String> = errors.iter().map(|one| one.error.to_string()).collect();
    let details = texts.into_iter().collect::<Vec<_>>().join("; ");
    let is_shortage = |error: &AwsError| error.is_no_capacity() || error.is_spot_role_missing();
    if !errors.is_empty() && errors.iter().all(|one| is_shortage(&one.error)) {
        return ProviderError::InsufficientCapacity { details };
    }
    let details = if details.is_empty() {
        "EC2 named no reason".to_owned()
    } else {
        details
    };
    refused(&details)
}

/// A call that failed as a whole.
pub fn call_failed(error: &AwsError) -> ProviderError {
    refused(&error.to_string())
}

fn refused(details: &str) -> ProviderError {
    let failure = launch_failure(details);
    ProviderError::Refused {
        reason: failure.reason.to_owned(),
        message: format!("{}: {details}", failure.advice),
    }
}

#[cfg(test)]
mod tests {
    use provider::Reason;

    use super::*;

    fn failed(code: &str, message: &str) -> FleetError {
        FleetError {
            error: AwsError::new(code, message),
            failed: Some(FleetOverride {
                instance_type: "m5.large".to_owned(),
                subnet: "subnet-a".to_owned(),
                zone: Some("a".to_owned()),
                ..FleetOverride::default()
            }),
        }
    }

    fn offering() -> Lesson {
        Lesson::Offering {
            instance_type: "m5.large".to_owned(),
            zone: "a".to_owned(),
        }
    }

    /// AW24.11.2, AW24.11.3, AW24.11.4, AW24.11.5, AW24.11.7
    #[test]
    fn errors_teach_what_to_keep_away_from() {
        use CapacityType::{OnDemand, Reserved, Spot};
        let table = [
            (failed("InsufficientInstanceCapacity", ""), Spot, vec![offering()]),
            (failed("MaxFleetCountExceeded", ""), OnDemand, vec![offering()]),
            (failed("RequestLimitExceeded", ""), OnDemand, vec![]),
            (failed("SomethingNew", ""), OnDemand, vec![]),
            (
                failed("AuthFailure.ServiceLinkedRoleCreationNotPermitted", ""),
                Spot,
                vec![Lesson::NoSpot],
            ),
            (
                failed("InsufficientFreeAddressesInSubnet", ""),
                OnDemand,
                vec![offering(), Lesson::Subnet("subnet-a".to_owned())],
            ),
            (
                failed("ReservationCapacityExceeded", ""),
                Reserved,
                vec![Lesson::Reservation {
                    instance_type: "m5.large".to_owned(),
                    zone: "a".to_owned(),
                }],
            ),
            (failed("RequestLimitExceeded", ""), Reserved, vec![]),
        ];
        for (error, capacity_type, expected) in table {
            assert_eq!(
                lessons(std::slice::from_ref(&error), capacity_type, false),
                expected,
                "{error:?}"
            );
        }
        let full = failed(
            "InsufficientInstanceCapacity",
            "limit of instances in this spread placement group",
        );
        let zone = Lesson::ZoneOfGroup { zone: "a".to_owned() };
        assert_eq!(lessons(std::slice::from_ref(&full), OnDemand, true), [zone]);
        assert_eq!(lessons(std::slice::from_ref(&full), OnDemand, false), [offering()]);
        let bare = FleetError { failed: None, ..full };
        assert_eq!(
            lessons(&[bare], OnDemand, true),
            [],
            "EC2 does not always say what failed"
        );
    }

    /// AW24.11.1, AW24.11.3, AW24.11.5, AW24.11.6
    #[test]
    fn without_an_instance_the_errors_decide() {
        let reason = |errors: Vec<FleetError>| {
            let instances = Vec::new();
            delivery(&FleetAnswer { instances, errors }).unwrap_err().reason()
        };
        let provider = |word: &str| Reason::Provider(word.to_owned());
        let short = || failed("InsufficientInstanceCapacity", "");
        assert_eq!(
            reason(vec![short(), failed("MaxFleetCountExceeded", "")]),
            Reason::InsufficientCapacity
        );
        assert_eq!(
            reason(vec![failed("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "")]),
            Reason::InsufficientCapacity
        );
        assert_eq!(
            reason(vec![short(), failed("RequestLimitExceeded", "")]),
            provider("RequestLimitExceeded")
        );
        assert_eq!(reason(vec![failed("UnheardOf", "x")]), provider("LaunchFailed"));
        assert_eq!(reason(vec![]), provider("LaunchFailed"));
        let unauthorized = call_failed(&AwsError::new("UnauthorizedOperation", "no"));
        assert_eq!(unauthorized.reason(), provider("Unauthorized"));
        let launched = FleetAnswer {
            instances: vec![FleetInstances {
                ids: vec!["i-1".to_owned()],
                ..FleetInstances::default()
            }],
            errors: vec![short()],
        };
        assert_eq!(
            delivery(&launched).unwrap().id,
            "i-1",
            "an instance counts whatever failed before"
        );
    }
}
