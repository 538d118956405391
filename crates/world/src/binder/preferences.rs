//! What a pod would like and can do without: neighbours, distance from neighbours, and an even spread.

use std::collections::BTreeMap;

use model::pod::PodTerm;

use super::{
    board::{Board, Entrant, Spot},
    neighbours::matches,
    spread::is_selected,
};

/// For each topology key what each of its domains is worth to one pod, counted once for all nodes.
#[derive(Default)]
pub struct Preferences<'a> {
    worth: Vec<(&'a str, BTreeMap<&'a str, f64>)>,
}

impl<'a> Preferences<'a> {
    pub fn of(board: &'a Board, entrant: &'a Entrant) -> Self {
        let affinity = &entrant.pod.shape.affinity;
        let counted = |key: &str, counts: &dyn Fn(&Entrant) -> bool, weight: f64| {
            let mut domains: BTreeMap<&str, f64> = BTreeMap::new();
            for spot in &board.spots {
                let found = spot.pods.iter().filter(|other| counts(other)).count();
                if let Some(domain) = spot.label(key) {
                    *domains.entry(domain).or_default() += weight * found as f64;
                }
            }
            domains
        };
        let term = |term: &'a PodTerm, sign: f64| {
            let speaks = |other: &Entrant| matches(board, term, entrant, other);
            let key = term.topology_key.as_str();
            (key, counted(key, &speaks, sign * f64::from(term.weight)))
        };
        let wanted = affinity.preferred_pods.iter().map(|wanted| term(wanted, 1.0));
        let shunned = affinity.preferred_anti.iter().map(|shunned| term(shunned, -1.0));
        let soft = entrant.pod.shape.spreads.iter().filter(|rule| !rule.required);
        let spreads = soft.map(|rule| {
            let selected = |other: &Entrant| is_selected(rule, entrant, other);
            let key = rule.topology_key.as_str();
            (key, counted(key, &selected, -1.0))
        });
        Self {
            worth: wanted.chain(shunned).chain(spreads).collect(),
        }
    }

    /// What the node's domains are worth together.
    pub fn met_by(&self, spot: &Spot) -> f64 {
        let worth = self
            .worth
            .iter()
            .filter_map(|(key, domains)| domains.get(spot.label(key)?));
        worth.sum()
    }
}
