//! The events that only clusters on EC2 have: what they add to [`controllers::events`].

use controllers::events::EventFact;

/// Every reason, in the order of the alphabet.
pub const EVENTS: &[EventFact] = &[
    EventFact {
        reason: "ResolutionFailed",
        severity: "Warning",
        objects: "EC2NodeClass",
        meaning: "images, subnets, security groups, reservations or the instance profile could not be looked up or made",
        window: "2 min",
    },
    EventFact {
        reason: "WaitingOnNodeClaimTermination",
        severity: "Normal",
        objects: "EC2NodeClass",
        meaning: "the class is to go, and claims still use it",
        window: "2 min",
    },
    EventFact {
        reason: "ZonalShiftActive",
        severity: "Warning",
        objects: "NodePool",
        meaning: "the cluster is shifted out of a zone, and nothing is launched there",
        window: "2 min",
    },
    EventFact {
        reason: "ZonalShiftCleared",
        severity: "Normal",
        objects: "NodePool",
        meaning: "the cluster is back in the zone",
        window: "2 min",
    },
];

#[cfg(test)]
mod tests {
    use super::{EVENTS, EventFact};

    #[test]
    fn every_reason_in_the_sources_is_listed() {
        let reasons = |events: &[EventFact]| -> Vec<&str> { events.iter().map(|event| event.reason).collect() };
        testkit::assert_events_are_listed(&reasons(EVENTS), &reasons(controllers::events::EVENTS));
    }
}
