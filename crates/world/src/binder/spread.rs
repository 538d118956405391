//! Topology spread: no domain may have too many more of the selected pods than the emptiest one.

use std::collections::BTreeMap;

use model::{Requirement, pod::TopologySpread};

use super::{
    board::{Board, Entrant, Spot},
    node_rules::{admits, tolerates},
};

/// The hard constraints of one pod, counted once for all nodes.
pub struct Spreads<'a> {
    constraints: Vec<Counted<'a>>,
}

struct Counted<'a> {
    rule: &'a TopologySpread,
    /// Selected pods per domain, for the domains that count.
    domains: BTreeMap<&'a str, u32>,
    least: u32,
    /// Whether the pod is itself one of the selected.
    itself: u32,
}

impl<'a> Spreads<'a> {
    pub fn of(board: &'a Board, entrant: &'a Entrant) -> Self {
        let rules: Vec<&TopologySpread> = entrant.pod.shape.spreads.iter().filter(|rule| rule.required).collect();
        let has_all_keys = |spot: &Spot| rules.iter().all(|rule| spot.label(&rule.topology_key).is_some());
        let constraints = rules.iter().map(|rule| {
            let mut domains: BTreeMap<&str, u32> = BTreeMap::new();
            for spot in board
                .spots
                .iter()
                .filter(|spot| has_all_keys(spot) && counts(rule, entrant, spot))
            {
                let domain = spot.label(&rule.topology_key).unwrap_or_default();
                let selected = spot
                    .pods
                    .iter()
                    .filter(|other| is_selected(rule, entrant, other))
                    .count();
                *domains.entry(domain).or_default() += u32::try_from(selected).unwrap_or(u32::MAX);
            }
            let too_few = rule
                .min_domains
                .is_some_and(|least| domains.len() < usize::try_from(least).unwrap_or(usize::MAX));
            let least = if too_few {
                0
            } else {
                domains.values().copied().min().unwrap_or_default()
            };
            let itself = u32::from(selects(rule, entrant, entrant));
            Counted {
                rule,
                domains,
                least,
                itself,
            }
        });
        Self {
            constraints: constraints.collect(),
        }
    }

    pub fn refuses(&self, spot: &Spot) -> Option<Vec<String>> {
        self.constraints.iter().find_map(|counted| {
            let Some(domain) = spot.label(&counted.rule.topology_key) else {
                return Some(vec![
                    "node(s) didn't match pod topology spread constraints (missing required label)".into(),
                ]);
            };
            let here = counted.domains.get(domain).copied().unwrap_or_default();
            let skew = (here + counted.itself).saturating_sub(counted.least);
            (skew > counted.rule.max_skew).then(|| vec!["node(s) didn't match pod topology spread constraints".into()])
        })
    }
}

/// Whether the node's domain takes part, by the constraint's policies.
fn counts(rule: &TopologySpread, entrant: &Entrant, spot: &Spot) -> bool {
    let Some(spec) = &entrant.raw.spec else { return false };
    let taints = spot.node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut hard = taints.filter(|taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute");
    (!rule.honor_affinity || admits(spec, &spot.node))
        && (!rule.honor_taints || hard.all(|taint| tolerates(spec, taint)))
}

pub(super) fn is_selected(rule: &TopologySpread, entrant: &Entrant, other: &Entrant) -> bool {
    !other.pod.is_terminating() && entrant.namespace() == other.namespace() && selects(rule, entrant, other)
}

fn selects(rule: &TopologySpread, entrant: &Entrant, other: &Entrant) -> bool {
    let same = |key: &String| match entrant.labels().get(key.as_str()) {
        Some(value) => other.labels().get(key.as_str()) == Some(value),
        // Keys that the pod does not have are left out of the selection.
        None => true,
    };
    rule.selector
        .as_ref()
        .is_some_and(|selector| holds(&selector.requirements, other))
        && rule.match_label_keys.iter().all(same)
}

pub(super) fn holds(requirements: &[Requirement], other: &Entrant) -> bool {
    requirements
        .iter()
        .all(|requirement| match other.labels().get(requirement.key.as_str()) {
            Some(value) => requirement.has(value.as_str()),
            None => requirement.operator().accepts_absence(),
        })
}
