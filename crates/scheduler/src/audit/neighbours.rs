//! Rules between pods, judged on the cluster as it will be: who is there, and whom the plan adds.
//!
//! Pods that carry equal rules are judged together. Pods of the plan count at their new place and not at an old one.

mod affinity;
mod spread;
mod town;

use std::sync::Arc;

use model::{
    LabelValue, Pod, Snapshot, Toleration,
    pod::{Affinity, PodShape, PodTerm, TopologySpread},
    requirement::Requirement,
};
use rustc_hash::FxHashMap;

use self::town::{ResidentId, Town};
use super::Violation;
use crate::plan::Plan;

pub(super) fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    if !has_rules(snapshot, plan) {
        return Vec::new();
    }
    let mut town = Town::new(snapshot, plan);
    let rules = Rules::new(&town);
    let mut broken = Vec::new();
    for ((term, namespace), owners) in &rules.apart {
        broken.extend(affinity::keep_away(&mut town, term, namespace, owners));
    }
    for ((term, namespace), owners) in &rules.near {
        broken.extend(affinity::come_close(&mut town, term, namespace, owners));
    }
    let mut scopes = spread::Scopes::default();
    for (rule, owners) in &rules.spreads {
        broken.extend(spread::check(&mut town, &mut scopes, rule, owners));
    }
    broken
}

/// Most plans have none, and are done with.
fn has_rules(snapshot: &Snapshot, plan: &Plan) -> bool {
    let mut planned = plan.placed().filter_map(|key| snapshot.pods.get(key));
    let ruled = |shape: &PodShape| {
        let affinity = &shape.affinity;
        !affinity.required_pods.is_empty()
            || !affinity.required_anti.is_empty()
            || shape.spreads.iter().any(|spread| spread.required)
    };
    let repels = |pod: &Pod| pod.node.is_some() && !pod.shape.affinity.required_anti.is_empty();
    planned.any(|pod| ruled(&pod.shape)) || snapshot.pods.values().any(|pod| repels(pod))
}

type TermRule<'a> = (&'a PodTerm, &'a Arc<str>);

/// A spread, and what decides which machines take part in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SpreadRule<'a> {
    spread: &'a TopologySpread,
    namespace: &'a Arc<str>,
    /// The pod's values of the spread's `matchLabelKeys`.
    like: Vec<Option<&'a LabelValue>>,
    node_selector: &'a [Requirement],
    affinity: &'a Affinity,
    tolerations: &'a [Toleration],
}

/// Rules in the order of their first appearance, with those who carry them.
#[derive(Default)]
struct Rules<'a> {
    apart: Vec<(TermRule<'a>, Vec<ResidentId>)>,
    near: Vec<(TermRule<'a>, Vec<ResidentId>)>,
    spreads: Vec<(SpreadRule<'a>, Vec<ResidentId>)>,
}

/// The numbers of the rules that pods of one shape carry.
#[derive(Default)]
struct Carried {
    apart: Vec<usize>,
    near: Vec<usize>,
    spreads: Vec<usize>,
}

impl<'a> Rules<'a> {
    fn new(town: &Town<'a>) -> Self {
        let mut rules = Self::default();
        let mut apart: FxHashMap<TermRule<'a>, usize> = FxHashMap::default();
        let mut near: FxHashMap<TermRule<'a>, usize> = FxHashMap::default();
        let mut spreads: FxHashMap<SpreadRule<'a>, usize> = FxHashMap::default();
        let mut known: FxHashMap<(*const PodShape, &'a str), Carried> = FxHashMap::default();
        for (id, resident) in town.residents.iter().enumerate() {
            let (pod, shape) = (resident.pod, resident.pod.shape.as_ref());
            let key = (std::ptr::from_ref(shape), &*pod.key.namespace);
            let carried = known.entry(key).or_insert_with(|| {
                let required = shape.spreads.iter().filter(|spread| spread.required);
                Carried {
                    apart: numbers(
                        &shape.affinity.required_anti,
                        &pod.key.namespace,
                        &mut apart,
                        &mut rules.apart,
                    ),
                    near: numbers(
                        &shape.affinity.required_pods,
                        &pod.key.namespace,
                        &mut near,
                        &mut rules.near,
                    ),
                    spreads: required
                        .map(|spread| number(spread_rule(pod, spread), &mut spreads, &mut rules.spreads))
                        .collect(),
                }
            });
            carried.apart.iter().for_each(|rule| rules.apart[*rule].1.push(id));
            if resident.planned {
                carried.near.iter().for_each(|rule| rules.near[*rule].1.push(id));
                carried.spreads.iter().for_each(|rule| rules.spreads[*rule].1.push(id));
            }
        }
        rules
    }
}

fn spread_rule<'a>(pod: &'a Pod, spread: &'a TopologySpread) -> SpreadRule<'a> {
    let shape = pod.shape.as_ref();
    let keys = spread.match_label_keys.iter();
    SpreadRule {
        spread,
        namespace: &pod.key.namespace,
        like: keys.map(|key| shape.labels.get(key.as_str())).collect(),
        node_selector: &shape.node_selector,
        affinity: &shape.affinity,
        tolerations: &shape.tolerations,
    }
}

fn numbers<'a>(
    terms: &'a [PodTerm],
    namespace: &'a Arc<str>,
    known: &mut FxHashMap<TermRule<'a>, usize>,
    rules: &mut Vec<(TermRule<'a>, Vec<ResidentId>)>,
) -> Vec<usize> {
    let mut all: Vec<usize> = terms
        .iter()
        .map(|term| number((term, namespace), known, rules))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn number<R: Clone + Eq + std::hash::Hash>(
    rule: R,
    known: &mut FxHashMap<R, usize>,
    rules: &mut Vec<(R, Vec<ResidentId>)>,
) -> usize {
    if let Some(number) = known.get(&rule) {
        return *number;
    }
    known.insert(rule.clone(), rules.len());
    rules.push((rule, Vec::new()));
    rules.len() - 1
}
