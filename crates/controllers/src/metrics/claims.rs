//! Node claims, nodes and pods over their lives.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use provider::NoticeKind;

use super::{Histograms, page::Page, summary::Summary};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Created {
    reason: String,
    nodepool: String,
    min_values_relaxed: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Terminated {
    nodepool: String,
    capacity_type: String,
    zone: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NodeAt {
    nodepool: String,
    zone: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPool {
    nodepool: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WithCode {
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WithReason {
    reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ill {
    condition: String,
    nodepool: String,
    capacity_type: String,
    image_id: String,
}

/// Why we decided to remove a claim.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum DisruptedWhy {
    Drifted,
    Empty,
    Underutilized,
    Expired,
    GarbageCollected,
    InsufficientCapacity,
    NodeClassNotReady,
    LaunchTimeout,
    RegistrationTimeout,
    Unhealthy,
    Interrupted(NoticeKind),
    /// The provider's own check of the machine failed, in the provider's word for that check.
    Diagnosed(&'static str),
}

impl DisruptedWhy {
    pub fn as_str(self) -> &'static str {
        match self {
            DisruptedWhy::Drifted => "drifted",
            DisruptedWhy::Empty => "empty",
            DisruptedWhy::Underutilized => "underutilized",
            DisruptedWhy::Expired => "expired",
            DisruptedWhy::GarbageCollected => "garbage_collected",
            DisruptedWhy::InsufficientCapacity => "insufficient_capacity",
            DisruptedWhy::NodeClassNotReady => "nodeclass_not_ready",
            DisruptedWhy::LaunchTimeout => "launch_timeout",
            DisruptedWhy::RegistrationTimeout => "registration_timeout",
            DisruptedWhy::Unhealthy => "unhealthy",
            DisruptedWhy::Interrupted(kind) => kind.label(),
            DisruptedWhy::Diagnosed(check) => check,
        }
    }
}

impl EncodeLabelValue for DisruptedWhy {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.as_str().encode(encoder)
    }
}

/// How long the pods of a claim may take to leave.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum TerminationMode {
    Graceful,
    Eventual,
    Forceful,
}

impl TerminationMode {
    pub fn of(grace: Option<SignedDuration>) -> Self {
        match grace {
            None => TerminationMode::Graceful,
            Some(grace) if grace.is_positive() => TerminationMode::Eventual,
            Some(_) => TerminationMode::Forceful,
        }
    }
}

impl EncodeLabelValue for TerminationMode {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        let word = match self {
            TerminationMode::Graceful => "graceful",
            TerminationMode::Eventual => "eventual",
            TerminationMode::Forceful => "forceful",
        };
        word.encode(encoder)
    }
}

/// A claim that we decided to remove.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ClaimDisrupted {
    pub reason: DisruptedWhy,
    pub nodepool: String,
    pub capacity_type: String,
    /// Snake case; empty where no consolidation was at work.
    pub consolidation_policy: String,
    pub termination_mode: TerminationMode,
}

fn powers_of_two<const N: u16>() -> Histogram {
    Histogram::new((0..N).map(|n| f64::from(1_u32 << n)))
}

fn lifetimes() -> Histogram {
    const HOUR: f64 = 3_600.0;
    let hours = [0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0];
    let days = [1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
    Histogram::new(
        hours
            .into_iter()
            .map(|h| h * HOUR)
            .chain(days.into_iter().map(|d| d * 24.0 * HOUR)),
    )
}

pub struct ClaimMetrics {
    created: Family<Created, Counter>,
    terminated: Family<Terminated, Counter>,
    disrupted: Family<ClaimDisrupted, Counter>,
    pods_disrupted: Family<ClaimDisrupted, Counter>,
    unhealthy: Family<Ill, Counter>,
    termination: Histograms<OfPool>,
    instance_termination: Histograms<OfPool>,
    nodes_created: Family<NodeAt, Counter>,
    nodes_terminated: Family<NodeAt, Counter>,
    nodes_drained: Family<OfPool, Counter>,
    nodes_lifetime: Histograms<OfPool>,
    nodes_termination: Summary,
    evictions: Family<WithCode, Counter>,
    pods_drained: Family<WithReason, Counter>,
}

impl Default for ClaimMetrics {
    fn default() -> Self {
        Self {
            created: Family::default(),
            terminated: Family::default(),
            disrupted: Family::default(),
            pods_disrupted: Family::default(),
            unhealthy: Family::default(),
            termination: Family::new_with_constructor(powers_of_two::<12>),
            instance_termination: Family::new_with_constructor(powers_of_two::<11>),
            nodes_created: Family::default(),
            nodes_terminated: Family::default(),
            nodes_drained: Family::default(),
            nodes_lifetime: Family::new_with_constructor(lifetimes),
            nodes_termination: Summary::new(
                "karpenter_nodes_termination_duration_seconds",
                "From the deletion of a node to its end",
                "nodepool",
            ),
            evictions: Family::default(),
            pods_drained: Family::default(),
        }
    }
}

impl ClaimMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_nodeclaims_created",
            "Node claims created",
            self.created.clone(),
        );
        to.register(
            "karpenter_nodeclaims_terminated",
            "Node claims that are gone",
            self.terminated.clone(),
        );
        to.register(
            "karpenter_nodeclaims_disrupted",
            "Node claims that we decided to remove",
            self.disrupted.clone(),
        );
        to.register(
            "karpenter_pods_disruption_initiated",
            "Pods that have to move because their node claim is removed",
            self.pods_disrupted.clone(),
        );
        to.register(
            "karpenter_nodeclaims_unhealthy_disrupted",
            "Node claims removed because their node was ill",
            self.unhealthy.clone(),
        );
        to.register(
            "karpenter_nodeclaims_termination_duration_seconds",
            "From the deletion of a node claim to its end",
            self.termination.clone(),
        );
        to.register(
            "karpenter_nodeclaims_instance_termination_duration_seconds",
            "From the deletion of a node claim to the end of its instance",
            self.instance_termination.clone(),
        );
        to.register(
            "karpenter_nodes_created",
            "Nodes registered",
            self.nodes_created.clone(),
        );
        to.register(
            "karpenter_nodes_terminated",
            "Nodes removed",
            self.nodes_terminated.clone(),
        );
        to.register(
            "karpenter_nodes_drained",
            "Drains completed",
            self.nodes_drained.clone(),
        );
        to.register(
            "karpenter_nodes_lifetime_duration_seconds",
            "Age of nodes at their end",
            self.nodes_lifetime.clone(),
        );
        to.register(
            "karpenter_pods_eviction_requests",
            "Eviction requests by status",
            self.evictions.clone(),
        );
        to.register("karpenter_pods_drained", "Pods drained", self.pods_drained.clone());
    }

    pub fn created(&self, reason: &str, nodepool: &str, min_values_relaxed: bool) {
        let labels = Created {
            reason: reason.to_owned(),
            nodepool: nodepool.to_owned(),
            min_values_relaxed: min_values_relaxed.to_string(),
        };
        self.created.get_or_create(&labels).inc();
    }

    pub fn terminated(&self, nodepool: &str, capacity_type: &str, zone: &str, took: SignedDuration) {
        let labels = Terminated {
            nodepool: nodepool.to_owned(),
            capacity_type: capacity_type.to_owned(),
            zone: zone.to_owned(),
        };
        self.terminated.get_or_create(&labels).inc();
        self.termination
            .get_or_create(&of(nodepool))
            .observe(took.as_secs_f64());
    }

    pub fn instance_terminated(&self, nodepool: &str, took: SignedDuration) {
        self.instance_termination
            .get_or_create(&of(nodepool))
            .observe(took.as_secs_f64());
    }

    pub fn disrupted(&self, labels: &ClaimDisrupted, pods: usize) {
        self.disrupted.get_or_create(labels).inc();
        self.pods_disrupted.get_or_create(labels).inc_by(pods as u64);
    }

    /// `condition` is the type of the node condition, which the label has in snake case.
    pub fn unhealthy(&self, condition: &str, nodepool: &str, capacity_type: &str, image_id: &str) {
        let labels = Ill {
            condition: snake_case(condition),
            nodepool: nodepool.to_owned(),
            capacity_type: capacity_type.to_owned(),
            image_id: image_id.to_owned(),
        };
        self.unhealthy.get_or_create(&labels).inc();
    }

    pub fn node_created(&self, nodepool: &str, zone: &str) {
        self.nodes_created.get_or_create(&node_at(nodepool, zone)).inc();
    }

    pub fn node_terminated(&self, nodepool: &str, zone: &str, lived: Duration) {
        self.nodes_terminated.get_or_create(&node_at(nodepool, zone)).inc();
        self.nodes_lifetime
            .get_or_create(&of(nodepool))
            .observe(lived.as_secs_f64());
    }

    pub fn node_termination_took(&self, nodepool: &str, took: SignedDuration, now: Timestamp) {
        self.nodes_termination.observe(nodepool, took.as_secs_f64(), now);
    }

    pub(super) fn write(&self, page: &mut Page, now: Timestamp) {
        self.nodes_termination.write(page, now);
    }

    pub fn node_drained(&self, nodepool: &str) {
        self.nodes_drained.get_or_create(&of(nodepool)).inc();
    }

    pub fn eviction(&self, code: u16) {
        self.evictions.get_or_create(&WithCode { code: code.to_string() }).inc();
    }

    pub fn pod_drained(&self, reason: &str) {
        self.pods_drained
            .get_or_create(&WithReason {
                reason: reason.to_owned(),
            })
            .inc();
    }
}

fn snake_case(words: &str) -> String {
    let letters: Vec<char> = words.chars().collect();
    let mut text = String::with_capacity(words.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && !letters[at - 1].is_ascii_uppercase();
        let before_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if at > 0 && letter.is_ascii_uppercase() && (after_small || before_small) {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn of(nodepool: &str) -> OfPool {
    OfPool {
        nodepool: nodepool.to_owned(),
    }
}

fn node_at(nodepool: &str, zone: &str) -> NodeAt {
    NodeAt {
        nodepool: nodepool.to_owned(),
        zone: zone.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn condition_types_become_label_values() {
        let labels = ["Ready", "DiskPressure", "AcceleratedHardwareReady", "PIDPressure"].map(snake_case);
        assert_eq!(
            labels,
            ["ready", "disk_pressure", "accelerated_hardware_ready", "pid_pressure"]
        );
    }
}
