//! Which domain a planned machine is settled on.
//!
//! As soon as a rule counts a pod along a label, the pod's machine is settled on one value of that label: the emptiest
//! domain where a spread asks for it, else the cheapest. Upstream leaves the zone of such machines open, with the effect
//! that rules cannot tell where the pod will be and other pods have to wait for another round.

use rustc_hash::FxHashMap;

use crate::{
    bits::Bits,
    states::{Demand, State, States},
    template::Template,
    topology::{Allowed, Key, Keys, Topology},
};

/// Domains and states: which domains a state leaves open, and how to ask for one.
#[derive(Debug)]
pub(crate) struct Domains(Vec<Along>);

/// The domains along one label.
#[derive(Debug)]
struct Along {
    open: FxHashMap<State, Bits>,
    demands: Vec<Demand>,
}

impl Domains {
    pub fn new(keys: &Keys, states: &mut States<'_>) -> Self {
        let along = |key: &Key| Along {
            open: FxHashMap::default(),
            demands: key
                .values
                .iter()
                .map(|value| states.demand_value(&key.label, value))
                .collect(),
        };
        Self(keys.iter().map(along).collect())
    }

    /// How to ask for a domain.
    pub fn demand(&self, key: usize, domain: usize) -> Demand {
        self.0[key].demands[domain]
    }

    /// The domains that a state leaves open.
    pub fn of(&mut self, key: &Key, number: usize, states: &States<'_>, state: State) -> &Bits {
        self.0[number].open.entry(state).or_insert_with(|| {
            let open = states.of_state(state).get(key.label.as_str());
            // A custom label that nobody defines will not be there.
            let values = key
                .values
                .iter()
                .enumerate()
                .filter(|_| states.will_have(state, &key.label));
            values
                .filter(|(_, value)| open.has(value.as_str()))
                .map(|(domain, _)| domain)
                .collect()
        })
    }
}

/// The domains to try for one label, best first; nothing when the label needs no decision.
pub(super) fn candidates(
    topology: &Topology,
    template: &Template<'_>,
    states: &States<'_>,
    domains: &mut Domains,
    state: State,
    allowed: &Allowed,
) -> Option<Vec<usize>> {
    let key = &topology.keys[allowed.key];
    let open = domains.of(key, allowed.key, states, state);
    let fitting = open.and(&allowed.domains);
    if open.single().is_some() && !fitting.is_empty() {
        return None;
    }
    if !allowed.binding && fitting.is_empty() {
        return None;
    }
    let mut candidates: Vec<usize> = fitting.iter().collect();
    let ranks = &template.ranks[allowed.key];
    candidates.sort_by_key(|domain| {
        let count = allowed.spread.map(|group| topology.groups[group].counts[*domain]);
        (count, ranks[*domain])
    });
    Some(candidates)
}
