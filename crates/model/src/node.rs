//! A machine from claim to end: the claim's half, the node's half, and the view over both.

use jiff::{SignedDuration, Timestamp};

use crate::{
    CapacityType, Labels,
    ids::{ClaimName, InstanceTypeName, NodeKey, NodeName, PoolName, ProviderId, Zone},
    quantity::Quantity,
    requirements::Requirements,
    resources::Resources,
    taint::Taint,
    vocabulary,
};

/// How far a claim has come. Derived from the stored object in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimPhase {
    /// No instance yet.
    Pending,
    /// The cloud has an instance for it.
    Launched,
    /// Its node has joined.
    Registered,
    /// Its node takes pods.
    Initialized,
}

/// What a node class reference names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassRef {
    pub group: String,
    pub kind: String,
    pub name: String,
}

impl NodeClassRef {
    /// The label that carries the class on claims and nodes.
    pub fn label(&self) -> String {
        format!("{}/{}", self.group, self.kind.to_lowercase())
    }
}

/// The claim's half of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub name: ClaimName,
    pub uid: String,
    /// Absent on claims that a user made by hand.
    pub pool: Option<PoolName>,
    pub class: NodeClassRef,
    pub phase: ClaimPhase,
    pub labels: Labels,
    pub annotations: Labels,
    pub requirements: Requirements,
    pub requests: Resources,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    pub provider_id: Option<ProviderId>,
    pub node: Option<NodeName>,
    pub capacity: Resources,
    pub allocatable: Resources,
    pub created: Timestamp,
    pub deleting: Option<Timestamp>,
    pub expire_after: Option<SignedDuration>,
    pub termination_grace: Option<SignedDuration>,
    pub instance_terminating: bool,
    pub consolidatable: bool,
    pub drifted: Option<String>,
    /// Since when the claim has drifted.
    pub drifted_at: Option<Timestamp>,
    /// Since when the claim is initialised.
    pub initialized_at: Option<Timestamp>,
    pub last_pod_event: Option<Timestamp>,
}

/// The node's half of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    pub name: NodeName,
    pub provider_id: Option<ProviderId>,
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    pub capacity: Resources,
    pub allocatable: Resources,
    pub ready: bool,
    pub created: Timestamp,
    pub deleting: Option<Timestamp>,
}

/// A machine: a claim, a node, or both once they have found each other.
#[derive(Clone, Debug, PartialEq)]
pub struct StateNode {
    pub key: NodeKey,
    pub claim: Option<Claim>,
    pub node: Option<NodeFacts>,
    /// Pods are on their way here; until then it is not a candidate for disruption.
    pub nominated_until: Option<Timestamp>,
    /// A decided disruption has taken it; nothing new is planned onto it.
    pub marked_for_deletion: bool,
}

impl StateNode {
    pub fn is_managed(&self) -> bool {
        self.claim.is_some()
    }

    /// Nodes that nobody here launched count as registered and initialised.
    pub fn is_registered(&self) -> bool {
        match (&self.claim, &self.node) {
            (None, _) => true,
            (Some(_), Some(node)) => node
                .labels
                .get(vocabulary::REGISTERED)
                .is_some_and(|value| *value == "true"),
            (Some(_), None) => false,
        }
    }

    pub fn is_initialized(&self) -> bool {
        match (&self.claim, &self.node) {
            (None, _) => true,
            (Some(_), Some(node)) => node
                .labels
                .get(vocabulary::INITIALIZED)
                .is_some_and(|value| *value == "true"),
            (Some(_), None) => false,
        }
    }

    /// No longer what its pool or its class asks for.
    pub fn has_drifted(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.drifted.is_some())
    }

    /// On its way out, by whoever's hand.
    pub fn is_leaving(&self) -> bool {
        self.marked_for_deletion
            || match (&self.claim, &self.node) {
                (Some(claim), _) => claim.deleting.is_some() || claim.instance_terminating,
                (None, Some(node)) => node.deleting.is_some(),
                (None, None) => false,
            }
    }

    pub fn is_nominated(&self, now: Timestamp) -> bool {
        self.nominated_until.is_some_and(|until| now < until)
    }

    /// The node's name once it has joined.
    pub fn node_name(&self) -> Option<&NodeName> {
        self.node.as_ref().map(|node| &node.name)
    }

    /// The claim's labels until the node is registered, then the node's.
    pub fn labels(&self) -> &Labels {
        self.half(|claim| &claim.labels, |node| &node.labels)
    }

    pub fn annotations(&self) -> &Labels {
        self.half(|claim| &claim.annotations, |node| &node.annotations)
    }

    /// Taints a pod has to tolerate to be planned here. Before a managed machine is initialised, its startup taints
    /// and those that every node sheds while starting are not counted.
    pub fn taints(&self) -> Vec<Taint> {
        let taints = self.half(|claim| &claim.taints, |node| &node.taints);
        let Some(claim) = self.claim.as_ref().filter(|_| !self.is_initialized()) else {
            return taints.clone();
        };
        let passing = |taint: &&Taint| {
            !taint.is_ephemeral() && !claim.startup_taints.iter().any(|startup| startup.same_kind(taint))
        };
        taints.iter().filter(passing).cloned().collect()
    }

    /// Before initialisation the node's figures, filled from the claim where they are missing; afterwards the node's.
    pub fn capacity(&self) -> Resources {
        let mut capacity = self.figures(|claim| &claim.capacity, |node| &node.capacity);
        capacity.set("nodes".into(), Quantity::from_int(1));
        capacity
    }

    pub fn allocatable(&self) -> Resources {
        self.figures(|claim| &claim.allocatable, |node| &node.allocatable)
    }

    pub fn pool(&self) -> Option<PoolName> {
        self.labels()
            .get(vocabulary::NODEPOOL)
            .map(|value| PoolName::from(value.as_str()))
    }

    pub fn instance_type(&self) -> Option<InstanceTypeName> {
        self.labels()
            .get(vocabulary::INSTANCE_TYPE)
            .map(|value| value.as_str().into())
    }

    pub fn zone(&self) -> Option<Zone> {
        self.labels().get(vocabulary::ZONE).map(|value| value.as_str().into())
    }

    pub fn capacity_type(&self) -> Option<CapacityType> {
        self.labels().get(vocabulary::CAPACITY_TYPE)?.as_str().parse().ok()
    }

    fn half<'a, T>(&'a self, of_claim: impl Fn(&'a Claim) -> &'a T, of_node: impl Fn(&'a NodeFacts) -> &'a T) -> &'a T {
        match (&self.claim, &self.node) {
            (Some(claim), Some(_)) if !self.is_registered() => of_claim(claim),
            (_, Some(node)) => of_node(node),
            (Some(claim), None) => of_claim(claim),
            (None, None) => unreachable!("a machine has a claim or a node"),
        }
    }

    fn figures<'a>(
        &'a self,
        of_claim: impl Fn(&'a Claim) -> &'a Resources,
        of_node: impl Fn(&'a NodeFacts) -> &'a Resources,
    ) -> Resources {
        match (&self.claim, &self.node) {
            (Some(claim), None) => of_claim(claim).clone(),
            (_, Some(node)) if self.is_initialized() => of_node(node).clone(),
            (Some(claim), Some(node)) => {
                let mut figures = of_node(node).clone();
                for (name, amount) in of_claim(claim).iter() {
                    if figures.get(name.as_str()).is_zero() {
                        figures.set(name.clone(), amount);
                    }
                }
                figures
            }
            (None, Some(node)) => of_node(node).clone(),
            (None, None) => Resources::default(),
        }
    }
}
