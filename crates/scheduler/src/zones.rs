//! Which zone each pending pod will end up in, as far as its own demands and rules tell: for the metric that shows where
//! capacity is wanted.

use std::{collections::BTreeMap, fmt};

use model::{LabelValue, requirement::Values, vocabulary};
use rustc_hash::FxHashMap;

use crate::{bits::Bits, problem::Problem, states::Demand, topology::Axis};

/// Where a pending pod will end up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectiveZone {
    /// Only this zone is left.
    Zone(LabelValue),
    /// More than one zone will do.
    Flexible,
    /// No zone will do.
    None,
}

impl fmt::Display for EffectiveZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectiveZone::Zone(zone) => zone.fmt(f),
            EffectiveZone::Flexible => f.write_str("flexible"),
            EffectiveZone::None => f.write_str("none"),
        }
    }
}

/// Counts the pending pods of a round by their zone, before any of them is placed.
pub(crate) fn count(problem: &Problem<'_>) -> BTreeMap<EffectiveZone, usize> {
    let mut known: FxHashMap<usize, EffectiveZone> = FxHashMap::default();
    let mut counts = BTreeMap::new();
    for member in &problem.members {
        if member.pod.node.is_none() {
            let zone = known
                .entry(member.class)
                .or_insert_with(|| zone_of(problem, member.class));
            *counts.entry(zone.clone()).or_default() += 1;
        }
    }
    counts
}

fn zone_of(problem: &Problem<'_>, class: usize) -> EffectiveZone {
    let class = &problem.classes.all[class];
    let first = &class.variants[0];
    let needs = &problem.classes.cores[first.core].needs;
    let wanted = problem.states.of_demand(needs.demand).get(vocabulary::ZONE);
    let keys = &problem.topology.keys;
    let key = keys.iter().position(|key| key.label == vocabulary::ZONE);

    let mut by_rules: Option<Bits> = None;
    if let Some(key) = key {
        let values = keys[key].values.iter().enumerate();
        let own: Bits = values
            .filter(|(_, value)| wanted.has(value.as_str()))
            .map(|(domain, _)| domain)
            .collect();
        for (group, counts_self) in &first.carried.rules {
            let group = &problem.topology.groups[*group];
            if group.identity.axis == Axis::Key(key) {
                let allowed = group.ask(*counts_self, Some(&own));
                match &mut by_rules {
                    Some(all) => all.intersect_with(&allowed),
                    None => by_rules = Some(allowed),
                }
            }
        }
    }
    let ruled = |zone: &LabelValue| match (&by_rules, key) {
        (Some(rules), Some(key)) => keys[key].number(zone).is_some_and(|domain| rules.contains(domain)),
        _ => true,
    };
    let strict = zones(problem, needs.strict);
    let places: Vec<&Values> = needs.volumes.iter().map(|place| zones(problem, *place)).collect();
    let stored = |zone: &LabelValue| places.is_empty() || places.iter().any(|place| place.has(zone.as_str()));
    let candidates: Vec<LabelValue> = if let Some(listed) = strict.listed() {
        listed.iter().cloned().collect()
    } else if !places.is_empty() && places.iter().all(|place| place.listed().is_some()) {
        places
            .iter()
            .filter_map(|place| place.listed())
            .flatten()
            .cloned()
            .collect()
    } else if let (Some(rules), Some(key)) = (&by_rules, key) {
        rules.iter().map(|domain| keys[key].values[domain].clone()).collect()
    } else {
        return EffectiveZone::Flexible;
    };
    let mut left: Vec<LabelValue> = candidates
        .into_iter()
        .filter(|zone| strict.has(zone.as_str()) && stored(zone) && ruled(zone))
        .collect();
    left.sort();
    left.dedup();
    match left.as_slice() {
        [] => EffectiveZone::None,
        [zone] => EffectiveZone::Zone(zone.clone()),
        _ => EffectiveZone::Flexible,
    }
}

fn zones<'p>(problem: &'p Problem<'_>, demand: Demand) -> &'p Values {
    problem.states.of_demand(demand).get(vocabulary::ZONE)
}
