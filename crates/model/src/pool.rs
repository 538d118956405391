//! A pool: what kind of nodes may be launched, how many, and how they may go.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Labels,
    budget::Budget,
    ids::PoolName,
    node::NodeClassRef,
    requirements::Requirements,
    resources::{ResourceName, Resources},
    taint::Taint,
    vocabulary::{NODEPOOL, Vocabulary},
};

/// When consolidation looks at a pool's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsolidationPolicy {
    WhenEmpty,
    WhenEmptyOrUnderutilized,
    Balanced,
}

/// How a pool's nodes may be disrupted.
#[derive(Clone, Debug, PartialEq)]
pub struct Disruption {
    pub policy: ConsolidationPolicy,
    /// `None` means never.
    pub consolidate_after: Option<SignedDuration>,
    /// `Err` when a budget cannot be read; then nothing is allowed.
    pub budgets: Result<Vec<Budget>, String>,
}

/// What every claim of the pool starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub labels: Labels,
    pub annotations: Labels,
    /// The template's requirements and labels together.
    pub requirements: Requirements,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    pub class: NodeClassRef,
    pub expire_after: Option<SignedDuration>,
    pub termination_grace: Option<SignedDuration>,
}

/// A node pool as decisions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    pub name: PoolName,
    pub uid: String,
    /// Static drift hash of the template.
    pub hash: String,
    pub template: Template,
    pub disruption: Disruption,
    pub limits: Resources,
    /// Zero when the pool does not say.
    pub weight: i32,
    /// Set on static pools, which do not take part in pod-driven provisioning.
    pub replicas: Option<i64>,
    /// Condition Ready is True.
    pub ready: bool,
    pub deleting: Option<Timestamp>,
}

impl Pool {
    pub fn is_static(&self) -> bool {
        self.replicas.is_some()
    }

    /// How many nodes the pool may have, where `limits.nodes` says so. A fraction of a node is one.
    pub fn node_limit(&self) -> Option<u64> {
        let nodes = ResourceName::NODES;
        let limit = || u64::try_from(self.limits.get(nodes.as_str()).value_ceil()).unwrap_or(0);
        self.limits.lists(nodes.as_str()).then(limit)
    }

    /// Labels of a claim with these requirements: the pool's, and one value for every custom label that is left open.
    /// Well-known labels are the provider's to set.
    pub fn claim_labels(&self, requirements: &Requirements, vocabulary: &Vocabulary) -> Labels {
        let custom = requirements.iter().filter(|requirement| {
            let key = requirement.key.as_str();
            !vocabulary.is_well_known(key) && !vocabulary.is_restricted(key)
        });
        let mut labels: Labels = custom
            .filter_map(|requirement| Some((requirement.key.clone(), requirement.any()?)))
            .collect();
        let Template { labels: own, class, .. } = &self.template;
        labels.extend(own.clone());
        labels.insert(NODEPOOL.into(), self.name.as_str().into());
        labels.insert(class.label().into(), class.name.as_str().into());
        labels
    }
}
