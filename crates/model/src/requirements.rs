//! Several labels at once: what a node may be, what a pod asks for, and whether the two go together.
//!
//! The node side may leave labels open. Whether a demand for such a label can be met depends on who is asked:
//! an existing node has the labels it has, while a node that is still planned will get the well-known ones
//! ([`AllowUndefined`]).

use std::{collections::BTreeMap, fmt};

use crate::{
    Labels,
    ids::{LabelKey, LabelValue},
    pod::PodShape,
    requirement::{Requirement, SelectorRequirement, Values},
    vocabulary::{self, Vocabulary, normalized_key},
};

/// One requirement per label. A label that is not listed is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(BTreeMap<LabelKey, Requirement>);

/// Which labels the node side may leave open and still meet a demand for them.
#[derive(Clone, Copy, Debug)]
pub enum AllowUndefined<'a> {
    /// The node's labels are final.
    Nothing,
    /// The node is still planned: the provider will set its well-known labels.
    WellKnown(&'a Vocabulary),
}

impl AllowUndefined<'_> {
    fn allows(self, key: &str) -> bool {
        match self {
            AllowUndefined::Nothing => false,
            AllowUndefined::WellKnown(vocabulary) => vocabulary.is_well_known(key),
        }
    }
}

/// Why a demand cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incompatible {
    /// The node will not have this label at all.
    Undefined {
        demand: Requirement,
        hint: Option<LabelKey>,
    },
    /// The node will have other values for these labels.
    Conflicts(Vec<Conflict>),
}

/// Two requirements on one label that no value satisfies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    pub ours: Requirement,
    pub demand: Requirement,
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incompatible::Undefined { demand, hint } => {
                write!(
                    f,
                    "label {:?} is not defined, {demand} is asked for",
                    demand.key.as_str()
                )?;
                hint.as_ref()
                    .map_or(Ok(()), |hint| write!(f, " (typo of {:?}?)", hint.as_str()))
            }
            Incompatible::Conflicts(conflicts) => {
                for (index, conflict) in conflicts.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(
                        f,
                        "{separator}{} is asked for, {} is there",
                        conflict.demand, conflict.ours
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl Requirements {
    pub fn new() -> Self {
        Self::default()
    }

    /// Each label with exactly its value.
    pub fn from_labels(labels: &Labels) -> Self {
        labels
            .iter()
            .map(|(key, value)| Requirement::one_of(key.as_str(), [value.clone()]))
            .collect()
    }

    /// What a pod asks for when its preferences are taken for demands: node selector, heaviest preferred term, first
    /// required term. Among equal weights the first in the list counts.
    pub fn of_pod(pod: &PodShape) -> Self {
        let preferred = &pod.affinity.preferred_nodes;
        let heaviest = preferred
            .iter()
            .reduce(|best, term| if term.weight > best.weight { term } else { best });
        let mut all: Requirements = pod.node_selector.iter().cloned().collect();
        for term in heaviest.into_iter().chain(pod.affinity.required_nodes.first()) {
            all.extend(term.requirements.iter().cloned());
        }
        all
    }

    /// What a pod insists on: node selector and first required term.
    pub fn of_pod_strict(pod: &PodShape) -> Self {
        let mut all: Requirements = pod.node_selector.iter().cloned().collect();
        if let Some(term) = pod.affinity.required_nodes.first() {
            all.extend(term.requirements.iter().cloned());
        }
        all
    }

    /// The different ways to give a pod what it insists on: one per required term, in their order, or the node
    /// selector alone. The pod is content when one of them is met.
    pub fn alternatives_of_pod(pod: &PodShape) -> Vec<Self> {
        let selector: Requirements = pod.node_selector.iter().cloned().collect();
        let with = |requirements: &[Requirement]| {
            let mut all = selector.clone();
            all.extend(requirements.iter().cloned());
            all
        };
        match pod.affinity.required_nodes.as_slice() {
            [] => vec![selector],
            terms => terms.iter().map(|term| with(&term.requirements)).collect(),
        }
    }

    /// Narrows the label to what this requirement admits, too.
    pub fn add(&mut self, requirement: Requirement) {
        match self.0.get_mut(&requirement.key) {
            Some(present) => *present = present.intersect(&requirement),
            None => {
                self.0.insert(requirement.key.clone(), requirement);
            }
        }
    }

    /// Puts the requirement in place of what was there.
    pub fn replace(&mut self, requirement: Requirement) {
        self.0.insert(requirement.key.clone(), requirement);
    }

    pub fn remove(&mut self, key: &str) -> Option<Requirement> {
        self.0.remove(key)
    }

    /// Narrows every label to what the other side admits, too.
    pub fn merge(&mut self, other: &Requirements) {
        self.extend(other.iter().cloned());
    }

    /// The values a label may take; any when it is not listed.
    pub fn get(&self, key: &str) -> &Values {
        static ANY: Values = Values::ANY;
        self.requirement(key).map_or(&ANY, |requirement| &requirement.values)
    }

    pub fn requirement(&self, key: &str) -> Option<&Requirement> {
        self.0.get(normalized_key(key))
    }

    pub fn contains(&self, key: &str) -> bool {
        self.requirement(key).is_some()
    }

    pub fn has_min_values(&self) -> bool {
        self.iter().any(|requirement| requirement.min_values.is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> + Clone {
        self.0.values()
    }

    /// Whether a node that meets these requirements can be one that meets the incoming ones.
    pub fn compatible(&self, incoming: &Requirements, allow: AllowUndefined<'_>) -> Result<(), Incompatible> {
        match self.undefined(incoming, allow) {
            Some(demand) => Err(Incompatible::Undefined {
                demand: demand.clone(),
                hint: self.hint(&demand.key, allow),
            }),
            None => self.intersects(incoming),
        }
    }

    /// [`compatible`](Self::compatible) without the reason, which is what most askers want.
    pub fn is_compatible(&self, incoming: &Requirements, allow: AllowUndefined<'_>) -> bool {
        self.undefined(incoming, allow).is_none() && self.overlaps(incoming)
    }

    /// Whether no label is contradictory. Labels that only one side lists do not matter.
    pub fn intersects(&self, incoming: &Requirements) -> Result<(), Incompatible> {
        if self.overlaps(incoming) {
            return Ok(());
        }
        let conflicts = self.conflicts(incoming);
        Err(Incompatible::Conflicts(
            conflicts
                .map(|(ours, demand)| Conflict {
                    ours: ours.clone(),
                    demand: demand.clone(),
                })
                .collect(),
        ))
    }

    /// [`intersects`](Self::intersects) without the reason.
    pub fn overlaps(&self, incoming: &Requirements) -> bool {
        self.conflicts(incoming).next().is_none()
    }

    /// Whether every node that meets these requirements meets the demand, and not only some. A label that is left open
    /// cannot be relied on, unless it is a custom one (which will then be absent) and absence is what is asked for.
    pub fn guarantee(&self, demand: &Requirements, vocabulary: &Vocabulary) -> bool {
        demand.iter().all(|demand| match self.0.get(&demand.key) {
            Some(ours) if ours.is_empty() => demand.operator().accepts_absence(),
            Some(ours) => ours.values.intersect(&demand.values) == ours.values,
            None => demand.operator().accepts_absence() && !vocabulary.is_well_known(demand.key.as_str()),
        })
    }

    /// The first demand for a label that the node will not have.
    fn undefined<'a>(&self, incoming: &'a Requirements, allow: AllowUndefined<'_>) -> Option<&'a Requirement> {
        incoming.iter().find(|demand| {
            !self.0.contains_key(&demand.key)
                && !demand.operator().accepts_absence()
                && !allow.allows(demand.key.as_str())
        })
    }

    fn conflicts<'a>(&'a self, incoming: &'a Requirements) -> impl Iterator<Item = (&'a Requirement, &'a Requirement)> {
        // Looking the keys of the smaller side up in the larger one.
        let (few, many) = if self.len() <= incoming.len() {
            (self, incoming)
        } else {
            (incoming, self)
        };
        let swapped = !std::ptr::eq(few, self);
        few.iter().filter_map(move |a| {
            let b = many.0.get(&a.key)?;
            // A node without the label satisfies both sides.
            let absent = a.operator().accepts_absence() && b.operator().accepts_absence();
            let pair = if swapped { (b, a) } else { (a, b) };
            (!absent && !a.has_intersection(b)).then_some(pair)
        })
    }

    /// A known key that the unknown one may have been meant for.
    fn hint(&self, unknown: &LabelKey, allow: AllowUndefined<'_>) -> Option<LabelKey> {
        let well_known = match allow {
            AllowUndefined::Nothing => None,
            AllowUndefined::WellKnown(vocabulary) => Some(&vocabulary.well_known),
        };
        let name = unknown.as_str().rsplit('/').next().unwrap_or_default();
        let similar = |key: &&LabelKey| key.as_str().contains(unknown.as_str()) || key.as_str().ends_with(name);
        well_known
            .into_iter()
            .flatten()
            .chain(self.0.keys())
            .find(similar)
            .cloned()
    }

    /// As it is written in a NodeClaim: sorted by key.
    pub fn to_selector(&self) -> Vec<SelectorRequirement> {
        self.iter().flat_map(Requirement::to_selector).collect()
    }

    /// The labels of which only one value is left.
    pub fn labels(&self) -> Labels {
        let single = |requirement: &Requirement| Some((requirement.key.clone(), requirement.values.single()?.clone()));
        self.iter()
            .filter_map(single)
            .collect::<BTreeMap<LabelKey, LabelValue>>()
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut all = Self::default();
        all.extend(requirements);
        all
    }
}

impl Extend<Requirement> for Requirements {
    fn extend<I: IntoIterator<Item = Requirement>>(&mut self, requirements: I) {
        for requirement in requirements {
            self.add(requirement);
        }
    }
}

/// Sorted by text. The host name is left out: it is a stand-in while a node is planned.
impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .iter()
            .filter(|requirement| requirement.key != vocabulary::HOSTNAME);
        let mut texts: Vec<String> = shown.map(Requirement::to_string).collect();
        texts.sort();
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests;
