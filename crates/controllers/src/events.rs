//! The events that people find on objects: the list behind the reference in the book.
//!
//! An event's wording and rate live beside the decision that it reports; this list says which there are. A test holds
//! it against the sources.

/// One reason, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFact {
    pub reason: &'static str,
    /// `Normal` or `Warning`.
    pub severity: &'static str,
    /// The kinds that it is found on.
    pub objects: &'static str,
    pub meaning: &'static str,
    /// Within which time it is not repeated.
    pub window: &'static str,
}

const fn event(
    reason: &'static str,
    severity: &'static str,
    objects: &'static str,
    meaning: &'static str,
    window: &'static str,
) -> EventFact {
    EventFact {
        reason,
        severity,
        objects,
        meaning,
        window,
    }
}

const TWO_MINUTES: &str = "2 min";

/// Every reason, in the order of the alphabet.
pub const EVENTS: &[EventFact] = &[
    event(
        "AwaitingVolumeDetachment",
        "Normal",
        "Node",
        "the node is drained and waits for its volumes to be detached",
        TWO_MINUTES,
    ),
    event(
        "CapacityReservationInstanceInterrupted",
        "Warning",
        "NodeClaim, Node",
        "the owner of a reservation takes its machine back",
        TWO_MINUTES,
    ),
    event(
        "ConsolidationApproved",
        "Normal",
        "Node, NodeClaim, NodePool",
        "the score of a consolidation passed the threshold of policy Balanced",
        TWO_MINUTES,
    ),
    event(
        "ConsolidationCandidate",
        "Normal",
        "Node, NodeClaim",
        "a consolidation that is considered, and what it would save",
        TWO_MINUTES,
    ),
    event(
        "ConsolidationRejected",
        "Normal",
        "Node, NodeClaim",
        "a consolidation that was considered and dropped, and why",
        TWO_MINUTES,
    ),
    event(
        "Disrupted",
        "Normal",
        "Pod",
        "the pod was deleted to meet the end of its node, past every budget",
        TWO_MINUTES,
    ),
    event(
        "DisruptionBlocked",
        "Normal",
        "Node, NodeClaim, NodePool",
        "something keeps the node where it is, or the pool's budget allows nothing",
        "2 min; 1 min on a NodePool",
    ),
    event(
        "DisruptionLaunching",
        "Normal",
        "NodeClaim",
        "a replacement is launched before a node goes",
        TWO_MINUTES,
    ),
    event(
        "DisruptionTerminating",
        "Normal",
        "Node, NodeClaim",
        "the node goes, and why",
        TWO_MINUTES,
    ),
    event(
        "DisruptionWaitingReadiness",
        "Normal",
        "NodeClaim",
        "a node waits for its replacement to be ready",
        TWO_MINUTES,
    ),
    event(
        "DoNotDisruptGracePeriodElapsed",
        "Normal",
        "Pod",
        "the time for which the pod was protected is over",
        TWO_MINUTES,
    ),
    event(
        "DoNotDisruptUntil",
        "Normal",
        "Pod",
        "until when the pod is protected",
        TWO_MINUTES,
    ),
    event(
        "Evicted",
        "Normal",
        "Pod",
        "the pod was asked to leave its node, and why",
        TWO_MINUTES,
    ),
    event(
        "FailedConsistencyCheck",
        "Warning",
        "NodeClaim",
        "the node is not what the claim asked for",
        TWO_MINUTES,
    ),
    event(
        "FailedDraining",
        "Warning",
        "Node",
        "pods keep the node from being empty",
        TWO_MINUTES,
    ),
    event(
        "FailedScheduling",
        "Warning",
        "Pod",
        "no node, there or to be launched, would take the pod, and why",
        "5 min",
    ),
    event(
        "Finalized",
        "Normal",
        "NodeClaim, Node",
        "the object is gone, and so is everything behind it",
        TWO_MINUTES,
    ),
    event(
        "InstanceStopping",
        "Warning",
        "NodeClaim, Node",
        "the machine is being stopped",
        TWO_MINUTES,
    ),
    event(
        "InstanceTerminating",
        "Warning",
        "NodeClaim, Node",
        "the machine is being terminated by somebody else",
        TWO_MINUTES,
    ),
    event(
        "InstanceUnhealthy",
        "Warning",
        "NodeClaim, Node",
        "the cloud takes the machine for ill",
        TWO_MINUTES,
    ),
    event(
        "InsufficientCapacityError",
        "Warning",
        "NodeClaim",
        "the cloud has none of the machines that the claim would take; the claim is deleted",
        TWO_MINUTES,
    ),
    event(
        "InvalidDoNotDisruptAnnotation",
        "Warning",
        "Pod",
        "the value of karpenter.sh/do-not-disrupt cannot be read and protects nobody",
        TWO_MINUTES,
    ),
    event(
        "InvalidTerminationTimestamp",
        "Warning",
        "NodeClaim",
        "the time at which the termination is to be forced cannot be read",
        TWO_MINUTES,
    ),
    event(
        "NameConflict",
        "Warning",
        "Provisioner, AWSNodeTemplate",
        "an object of v1 has the name of the one that this would become, and is left as it is",
        TWO_MINUTES,
    ),
    event(
        "NoCompatibleInstanceTypes",
        "Warning",
        "NodePool",
        "the pool's requirements leave nothing that could be launched",
        "1 min",
    ),
    event(
        "NodeClassNotReady",
        "Warning",
        "NodeClaim",
        "the claim's node class cannot be used; the claim is deleted",
        TWO_MINUTES,
    ),
    event(
        "NodeRepairBlocked",
        "Warning",
        "Node, NodeClaim, NodePool",
        "too many nodes are ill for any of them to be replaced",
        "15 min",
    ),
    event(
        "Nominated",
        "Normal",
        "Pod",
        "the node or node claim that the pod is expected on",
        "2 min, and 5 per second over all pods after the first 10",
    ),
    event(
        "SpotInterrupted",
        "Warning",
        "NodeClaim, Node",
        "the cloud takes a spot machine back",
        TWO_MINUTES,
    ),
    event(
        "SpotRebalanceRecommendation",
        "Normal",
        "NodeClaim, Node",
        "the cloud may take a spot machine back soon",
        TWO_MINUTES,
    ),
    event(
        "TerminatingOnInterruption",
        "Warning",
        "NodeClaim, Node",
        "the claim is deleted because the cloud takes its machine back",
        TWO_MINUTES,
    ),
    event(
        "TerminationGracePeriodExpiring",
        "Warning",
        "Node, NodeClaim",
        "when the last pods will be deleted",
        TWO_MINUTES,
    ),
    event(
        "Unconsolidatable",
        "Normal",
        "Node, NodeClaim",
        "why consolidation leaves the node alone",
        "15 min",
    ),
    event(
        "UnregisteredTaintMissing",
        "Warning",
        "NodeClaim",
        "the node joined without the taint karpenter.sh/unregistered",
        TWO_MINUTES,
    ),
    event(
        "ValidationFailed",
        "Warning",
        "Provisioner, AWSNodeTemplate, EC2NodeClass",
        "the object cannot be converted, or EC2 could not be asked whether the class can launch anything",
        TWO_MINUTES,
    ),
];

#[cfg(test)]
mod tests {
    use super::EVENTS;

    #[test]
    fn every_reason_in_the_sources_is_listed() {
        let listed: Vec<&str> = EVENTS.iter().map(|event| event.reason).collect();
        testkit::assert_events_are_listed(&listed, &[]);
    }
}
