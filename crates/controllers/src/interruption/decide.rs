//! What follows from each kind of notice.

use provider::NoticeKind;

use crate::{metrics::DisruptedWhy, outbox::Severity};

/// What people are told, and whether the claim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub severity: Severity,
    /// The reason of the event on claim and node.
    pub reason: &'static str,
    pub message: &'static str,
    pub removal: Option<DisruptedWhy>,
}

/// operations.md 9 and 12.1.
pub fn decide(kind: NoticeKind) -> Response {
    let removal = |reason, message| Response {
        severity: Severity::Warning,
        reason,
        message,
        removal: Some(DisruptedWhy::Interrupted(kind)),
    };
    match kind {
        NoticeKind::SpotInterrupted => removal("SpotInterrupted", "The cloud will take this spot instance back"),
        NoticeKind::ReservationInterrupted => removal(
            "CapacityReservationInstanceInterrupted",
            "The owner of the capacity reservation will take this instance back",
        ),
        NoticeKind::InstanceStopped => removal("InstanceStopping", "The instance is stopping"),
        NoticeKind::InstanceTerminated => removal("InstanceTerminating", "The instance is terminating"),
        NoticeKind::ScheduledChange => removal(
            "InstanceUnhealthy",
            "The cloud has announced maintenance of the instance",
        ),
        NoticeKind::RebalanceRecommended => Response {
            severity: Severity::Normal,
            reason: "SpotRebalanceRecommendation",
            message: "The cloud expects that this spot instance may be interrupted",
            removal: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_but_a_recommendation_ends_the_claim_under_its_own_label() {
        for kind in NoticeKind::ALL {
            let response = decide(kind);
            let label = response.removal.map(DisruptedWhy::as_str);
            match kind {
                NoticeKind::RebalanceRecommended => assert_eq!((label, response.severity), (None, Severity::Normal)),
                _ => assert_eq!((label, response.severity), (Some(kind.label()), Severity::Warning)),
            }
        }
    }
}
