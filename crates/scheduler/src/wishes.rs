//! What a pod would like and what it can do without: the same pod, less and less particular.
//!
//! Preferences count as demands until nothing can meet them; then they are given up one by one, in a fixed order. Among
//! several required node terms one is enough, so the first is tried first.

use std::cmp::Reverse;

use model::{
    LabelKey, Requirement, Requirements, Toleration,
    pod::{NodeTerm, PodShape, PodTerm, TopologySpread},
};

use crate::{round::PreferencePolicy, topology::Filter};

/// A pod with some of its wishes given up.
#[derive(Clone, Debug)]
pub(crate) struct Wish<'a> {
    shape: &'a PodShape,
    /// Required node terms that are left; the first of them counts.
    required: &'a [NodeTerm],
    /// Preferences that are left, heaviest first.
    near: Vec<&'a PodTerm>,
    apart: Vec<&'a PodTerm>,
    nodes: Vec<&'a NodeTerm>,
    /// Spreads that may be given up, in the order in which they would be.
    anyway: Vec<&'a TopologySpread>,
    /// Taints that merely discourage are put up with.
    undeterred: bool,
}

/// The pod as it is, followed by ever less particular versions of it. Versions that contradict themselves are left out:
/// merged, their demands would read as a demand for absence, which a node without the label meets.
pub(crate) fn wishes(shape: &PodShape, policy: PreferencePolicy, discouraged: bool) -> Vec<Wish<'_>> {
    let consistent = |policy| {
        let mut all = vec![Wish::new(shape, policy)];
        while let Some(next) = all.last().and_then(|last| last.relaxed(discouraged)) {
            all.push(next);
        }
        all.retain(|wish| contradiction(wish.sources()).is_none());
        all
    };
    let all = consistent(policy);
    if all.is_empty() {
        consistent(PreferencePolicy::Ignore)
    } else {
        all
    }
}

/// A label of which these ask for values that no node can have all at once.
pub(crate) fn contradiction<'r>(demands: impl Iterator<Item = &'r Requirement> + Clone) -> Option<&'r LabelKey> {
    let merged: Requirements = demands.clone().cloned().collect();
    let mut insisting = demands.filter(|demand| !demand.operator().accepts_absence());
    insisting
        .find(|demand| merged.get(demand.key.as_str()).is_empty())
        .map(|demand| &demand.key)
}

impl<'a> Wish<'a> {
    fn new(shape: &'a PodShape, policy: PreferencePolicy) -> Self {
        let affinity = &shape.affinity;
        let mut wish = Self {
            shape,
            required: &affinity.required_nodes,
            near: Vec::new(),
            apart: Vec::new(),
            nodes: Vec::new(),
            anyway: Vec::new(),
            undeterred: false,
        };
        if policy == PreferencePolicy::Respect {
            wish.near = affinity.preferred_pods.iter().collect();
            wish.near.sort_by_key(|term| Reverse(term.weight));
            wish.apart = affinity.preferred_anti.iter().collect();
            wish.apart.sort_by_key(|term| Reverse(term.weight));
            wish.nodes = affinity.preferred_nodes.iter().collect();
            wish.nodes.sort_by_key(|term| Reverse(term.weight));
            wish.anyway = shape.spreads.iter().filter(|spread| !spread.required).collect();
        }
        wish
    }

    /// One wish less, or nothing when only demands are left.
    fn relaxed(&self, discouraged: bool) -> Option<Self> {
        let mut next = self.clone();
        if self.required.len() > 1 {
            next.required = &self.required[1..];
        } else if !self.near.is_empty() {
            next.near.remove(0);
        } else if !self.apart.is_empty() {
            next.apart.remove(0);
        } else if !self.nodes.is_empty() {
            next.nodes.remove(0);
        } else if !self.anyway.is_empty() {
            next.anyway.remove(0);
        } else if discouraged && !self.undeterred {
            next.undeterred = true;
        } else {
            return None;
        }
        Some(next)
    }

    /// What the node has to be, preferences included.
    pub fn requirements(&self) -> Requirements {
        self.sources().cloned().collect()
    }

    fn sources(&self) -> impl Iterator<Item = &'a Requirement> + Clone {
        let term = self.required.first().into_iter().chain(self.nodes.first().copied());
        self.shape
            .node_selector
            .iter()
            .chain(term.flat_map(|term| &term.requirements))
    }

    /// What the node has to be at least.
    pub fn strict_requirements(&self) -> Requirements {
        self.with(self.required.first().map_or(&[], |term| term.requirements.as_slice()))
    }

    fn with(&self, term: &[Requirement]) -> Requirements {
        self.shape.node_selector.iter().chain(term).cloned().collect()
    }

    pub fn tolerations(&self) -> Vec<Toleration> {
        if self.undeterred {
            return self.hard_tolerations();
        }
        crate::topology::sorted(&self.shape.tolerations)
    }

    /// With one for every taint that merely discourages. kube-scheduler, too, looks past those when it asks which nodes take
    /// part in a spread.
    fn hard_tolerations(&self) -> Vec<Toleration> {
        let mut tolerations = crate::topology::sorted(&self.shape.tolerations);
        tolerations.push(Toleration::of_prefer_no_schedule());
        tolerations
    }

    pub fn spreads(&self) -> impl Iterator<Item = &'a TopologySpread> {
        let required = self.shape.spreads.iter().filter(|spread| spread.required);
        required.chain(self.anyway.iter().copied())
    }

    pub fn affinities(&self) -> impl Iterator<Item = &'a PodTerm> {
        self.shape
            .affinity
            .required_pods
            .iter()
            .chain(self.near.iter().copied())
    }

    pub fn anti_affinities(&self) -> impl Iterator<Item = &'a PodTerm> {
        self.shape
            .affinity
            .required_anti
            .iter()
            .chain(self.apart.iter().copied())
    }

    /// Which machines take part in one of the spreads.
    pub fn filter(&self, spread: &TopologySpread) -> Filter {
        let alternatives = match self.required {
            _ if !spread.honor_affinity => Vec::new(),
            [] => vec![self.with(&[])],
            terms => terms.iter().map(|term| self.with(&term.requirements)).collect(),
        };
        Filter {
            alternatives,
            tolerations: spread.honor_taints.then(|| self.hard_tolerations()),
        }
    }
}
