//! A pod as decisions see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    Labels,
    ids::{NodeName, PodKey, PodUid},
    requirement::Requirement,
    resources::Resources,
    snapshot::DisruptionBudget,
    taint::{Taint, Toleration},
    workload::ControllerKey,
};

/// A pod that terminates for this much longer than it was granted has nobody to finish it.
pub const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// Who created a pod, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodOwner {
    Nobody,
    DaemonSet,
    StatefulSet,
    /// A mirror pod of a static manifest: the node itself owns it.
    Node,
    /// Nobody yet: it stands for a pod that a capacity buffer keeps room for, and no server knows it.
    CapacityBuffer,
    Other,
}

/// `karpenter.sh/do-not-disrupt` on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoNotDisrupt {
    Always,
    /// From the pod's start for this long.
    For(SignedDuration),
    /// A value that means nothing; it protects nobody and is reported.
    Invalid(String),
}

/// One port that a pod takes on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// `0.0.0.0` when the pod does not say.
    pub ip: String,
    pub port: u16,
    pub protocol: String,
}

impl HostPort {
    /// Whether both cannot be had on one node.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let wild = |ip: &str| ip == "0.0.0.0" || ip == "::";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || wild(&self.ip) || wild(&other.ip))
    }
}

/// One term of a node affinity: all of these at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeTerm {
    /// Zero for required terms.
    pub weight: i32,
    pub requirements: Vec<Requirement>,
}

/// A selection of pods by labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// All of them must hold. A missing label satisfies `NotIn` and `DoesNotExist`.
    pub requirements: Vec<Requirement>,
}

impl LabelSelector {
    pub fn matches(&self, labels: &Labels) -> bool {
        use crate::requirement::Operator;
        self.requirements
            .iter()
            .all(|requirement| match labels.get(requirement.key.as_str()) {
                Some(value) => requirement.has(value.as_str()),
                None => matches!(requirement.operator(), Operator::NotIn | Operator::DoesNotExist),
            })
    }
}

/// A rule about neighbours: required or preferred, towards or away from the selected pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodTerm {
    pub topology_key: String,
    pub selector: Option<LabelSelector>,
    pub namespaces: BTreeSet<String>,
    pub namespace_selector: Option<LabelSelector>,
    pub match_label_keys: Vec<String>,
    pub mismatch_label_keys: Vec<String>,
    /// Zero for required terms.
    pub weight: i32,
}

/// A spread over the domains of a topology key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopologySpread {
    pub topology_key: String,
    pub max_skew: u32,
    pub min_domains: Option<u32>,
    /// `DoNotSchedule`; otherwise `ScheduleAnyway`.
    pub required: bool,
    pub selector: Option<LabelSelector>,
    pub match_label_keys: Vec<String>,
    /// `nodeAffinityPolicy: Honor`, which is the default.
    pub honor_affinity: bool,
    /// `nodeTaintsPolicy: Honor`; the default is to ignore taints.
    pub honor_taints: bool,
}

/// A volume as the pod names it; what it means is found through the snapshot's volumes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodVolume {
    /// A claim by name in the pod's namespace.
    Claim(String),
    /// A generic ephemeral volume: its claim is named after the pod and this volume.
    Ephemeral {
        volume: String,
        storage_class: Option<String>,
    },
}

/// A pod's use of a resource claim: dynamic resource allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodClaim {
    /// What the pod calls it.
    pub name: String,
    pub source: PodClaimSource,
}

/// Where a pod's resource claim comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodClaimSource {
    /// A claim by name in the pod's namespace.
    Claim(String),
    /// One is made for the pod from a template; [`Pod::generated_claims`] knows its name.
    Template,
}

/// The affinity rules of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affinity {
    /// Alternatives: one of them must hold. Empty when the pod has none.
    pub required_nodes: Vec<NodeTerm>,
    pub preferred_nodes: Vec<NodeTerm>,
    pub required_pods: Vec<PodTerm>,
    pub preferred_pods: Vec<PodTerm>,
    pub required_anti: Vec<PodTerm>,
    pub preferred_anti: Vec<PodTerm>,
}

/// What all pods of one template share. Pods of one workload point to the same value where the index can tell, which
/// lets the solver treat them as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodShape {
    pub labels: Labels,
    /// What the pod asks for, init containers, sidecars and overhead included, and one `pods`.
    pub requests: Resources,
    pub node_selector: Vec<Requirement>,
    pub affinity: Affinity,
    pub spreads: Vec<TopologySpread>,
    pub tolerations: Vec<Toleration>,
    pub host_ports: Vec<HostPort>,
    pub volumes: Vec<PodVolume>,
    pub priority: i32,
    pub priority_class: Option<Arc<str>>,
    pub scheduler_name: Arc<str>,
    pub resource_claims: Vec<PodClaim>,
    /// A container, or an init container, says that it uses a resource claim.
    pub containers_claim: bool,
    pub termination_grace: SignedDuration,
}

impl PodShape {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }

    /// Needs dynamic resource allocation.
    pub fn claims_devices(&self) -> bool {
        self.containers_claim || !self.resource_claims.is_empty()
    }

    /// `system-cluster-critical` and `system-node-critical` pods leave a node last.
    pub fn is_critical(&self) -> bool {
        matches!(
            self.priority_class.as_deref(),
            Some("system-cluster-critical" | "system-node-critical")
        )
    }
}

/// A pod as decisions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub key: PodKey,
    pub uid: PodUid,
    pub shape: Arc<PodShape>,
    pub owner: PodOwner,
    /// The controller that made it, if it is of a kind with a selector.
    pub controller: Option<ControllerKey>,
    pub phase: PodPhase,
    pub ready: bool,
    pub node: Option<NodeName>,
    pub nominated_node: Option<NodeName>,
    pub created: Timestamp,
    pub started: Option<Timestamp>,
    /// When its deletion is due to be finished, for a pod that is terminating.
    pub deletion: Option<Timestamp>,
    /// The scheduler found no place: condition PodScheduled with reason Unschedulable.
    pub unschedulable: bool,
    /// Has no node and must not be given one: condition PodScheduled is there with another reason, or what the pod asks
    /// for cannot be read.
    pub scheduling_gated: bool,
    pub do_not_disrupt: Option<DoNotDisrupt>,
    /// `controller.kubernetes.io/pod-deletion-cost`.
    pub deletion_cost: f64,
    /// The resource claims made for this pod, by what the pod calls them. `None` where none turned out to be needed; an
    /// entry is missing until its claim has been made.
    pub generated_claims: BTreeMap<String, Option<String>>,
}

impl Pod {
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    pub fn is_terminating(&self) -> bool {
        self.deletion.is_some()
    }

    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.is_terminating()
    }

    pub fn is_daemon(&self) -> bool {
        self.owner == PodOwner::DaemonSet
    }

    pub fn is_mirror(&self) -> bool {
        self.owner == PodOwner::Node
    }

    /// Exists only in our mind, for the sake of a capacity buffer.
    pub fn is_virtual(&self) -> bool {
        self.owner == PodOwner::CapacityBuffer
    }

    /// Will be somewhere else once its node is gone.
    pub fn is_reschedulable(&self) -> bool {
        (self.is_active() || (self.is_terminating() && !self.is_terminal() && self.owner == PodOwner::StatefulSet))
            && !self.is_daemon()
            && !self.is_mirror()
    }

    /// Waits for a node that only we can bring.
    pub fn is_provisionable(&self) -> bool {
        self.unschedulable && self.is_unplaced()
    }

    /// Has no node, and none is on its way.
    pub fn is_unplaced(&self) -> bool {
        self.node.is_none()
            && self.nominated_node.is_none()
            && !self.scheduling_gated
            && self.is_active()
            && !self.is_daemon()
            && !self.is_mirror()
    }

    /// Protected by `karpenter.sh/do-not-disrupt` at this moment.
    pub fn is_protected(&self, now: Timestamp) -> bool {
        self.is_active()
            && match &self.do_not_disrupt {
                Some(DoNotDisrupt::Always) => true,
                Some(DoNotDisrupt::For(time)) => self.started.is_none_or(|start| now < start + *time),
                Some(DoNotDisrupt::Invalid(_)) | None => false,
            }
    }

    pub fn tolerates_disruption(&self) -> bool {
        self.shape.tolerates(&Taint::disrupted())
    }

    /// May be sent away by the eviction API now, as far as the pod itself has a say.
    pub fn is_evictable(&self, now: Timestamp) -> bool {
        self.is_active() && !self.tolerates_disruption() && !self.is_mirror() && !self.is_protected(now)
    }

    /// Will be somewhere else once its node is gone, and nothing keeps it from leaving for good. `budgets` are those that cover
    /// it.
    pub fn can_move_under<'b>(&self, budgets: impl IntoIterator<Item = &'b DisruptionBudget>, now: Timestamp) -> bool {
        if !self.is_reschedulable() || self.is_protected(now) {
            return false;
        }
        if !self.is_evictable(now) {
            return true;
        }
        let mut budgets = budgets.into_iter();
        match (budgets.next(), budgets.next()) {
            (None, _) => true,
            (Some(_), Some(_)) => false,
            (Some(budget), None) => !budget.fully_blocking || (budget.unhealthy_always_allowed && !self.ready),
        }
    }

    /// Still terminating a minute after it should have been gone: its kubelet is not there to finish it.
    pub fn is_stuck_terminating(&self, now: Timestamp) -> bool {
        self.deletion.is_some_and(|due| now > due + STUCK_AFTER)
    }

    /// A drain has to wait for it.
    pub fn is_waiting_eviction(&self, now: Timestamp) -> bool {
        !self.is_terminal() && !self.tolerates_disruption() && !self.is_stuck_terminating(now) && !self.is_mirror()
    }

    /// What moving this pod costs, in units of one ordinary pod.
    pub fn eviction_cost(&self) -> f64 {
        let cost = 1.0 + self.deletion_cost / f64::from(1 << 27) + f64::from(self.shape.priority) / f64::from(1 << 25);
        cost.clamp(-10.0, 10.0)
    }
}
