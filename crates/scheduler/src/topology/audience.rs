//! Which pods a rule is about.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    LabelKey, LabelValue, Labels, Pod, Snapshot,
    pod::{LabelSelector, PodTerm},
};
use rustc_hash::FxHashMap;

use super::GroupId;

/// The pods that a rule selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Audience {
    namespaces: Namespaces,
    /// Nothing is selected without a selector.
    selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Namespaces {
    All,
    These(BTreeSet<Arc<str>>),
}

impl Audience {
    pub fn in_namespace(namespace: &Arc<str>, selector: Option<LabelSelector>) -> Self {
        Self {
            namespaces: Namespaces::These(BTreeSet::from([namespace.clone()])),
            selector: selector.map(normalized),
        }
    }

    pub fn of_term(snapshot: &Snapshot, owner: &Pod, term: &PodTerm) -> Self {
        let listed = term.namespaces.iter().map(|name| Arc::from(name.as_str()));
        let namespaces = match &term.namespace_selector {
            None if term.namespaces.is_empty() => Namespaces::These(BTreeSet::from([owner.key.namespace.clone()])),
            None => Namespaces::These(listed.collect()),
            Some(selector) if selector.requirements.is_empty() => Namespaces::All,
            Some(selector) => {
                let known = snapshot.namespaces.iter();
                let matching = known.filter(|(_, labels)| selector.matches(labels));
                Namespaces::These(matching.map(|(name, _)| name.clone()).chain(listed).collect())
            }
        };
        Self {
            namespaces,
            selector: term.selector.clone().map(normalized),
        }
    }

    pub fn includes(&self, namespace: &Arc<str>, labels: &Labels) -> bool {
        let there = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::These(names) => names.contains(namespace),
        };
        there && self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// A label that every selected pod has with one value.
    fn hallmark(&self) -> Option<(LabelKey, LabelValue)> {
        let requirements = &self.selector.as_ref()?.requirements;
        let single =
            |requirement: &model::Requirement| Some((requirement.key.clone(), requirement.values.single()?.clone()));
        requirements.iter().find_map(single)
    }
}

/// Equal selections are written alike.
fn normalized(mut selector: LabelSelector) -> LabelSelector {
    selector.requirements.sort();
    selector.requirements.dedup();
    selector
}

/// Finds the groups that select a pod without asking all of them: most rules name a label and its value.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    by_hallmark: FxHashMap<(LabelKey, LabelValue), Vec<(GroupId, Audience)>>,
    others: Vec<(GroupId, Audience)>,
}

impl Selection {
    pub fn add(&mut self, group: GroupId, audience: &Audience) {
        if audience.selector.is_none() {
            return;
        }
        let list = match audience.hallmark() {
            Some(hallmark) => self.by_hallmark.entry(hallmark).or_default(),
            None => &mut self.others,
        };
        list.push((group, audience.clone()));
    }

    /// In ascending order.
    pub fn of(&self, namespace: &Arc<str>, labels: &Labels) -> Vec<GroupId> {
        let marked = labels
            .iter()
            .filter_map(|(key, value)| self.by_hallmark.get(&(key.clone(), value.clone())));
        let candidates = marked.flatten().chain(&self.others);
        let mut groups: Vec<GroupId> = candidates
            .filter(|(_, audience)| audience.includes(namespace, labels))
            .map(|(group, _)| *group)
            .collect();
        groups.sort_unstable();
        groups
    }
}
