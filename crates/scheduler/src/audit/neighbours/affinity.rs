//! Required affinity and anti-affinity between pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{LabelKey, Requirements, pod::PodTerm, vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    super::Violation,
    town::{Domain, Namespaces, ResidentId, Town},
};

/// Who is in a domain, of those whom an anti-affinity is about.
#[derive(Default)]
struct Crowded {
    planned: Vec<ResidentId>,
    running: Vec<ResidentId>,
}

impl Crowded {
    /// Somebody whom the owner of the rule has to keep away from. What was there before the plan is not the plan's.
    fn other_than(&self, owner: ResidentId, planned: bool) -> Option<ResidentId> {
        let running = self.running.iter().filter(|_| planned);
        // The owner is in the list once at most, so two entries are enough to see.
        self.planned.iter().chain(running).copied().find(|id| *id != owner)
    }
}

/// Carriers of an anti-affinity and those it selects share no domain that either may end up in.
pub(super) fn keep_away(
    town: &mut Town<'_>,
    term: &PodTerm,
    namespace: &Arc<str>,
    owners: &[ResidentId],
) -> Vec<Violation> {
    let Some(selector) = &term.selector else {
        return Vec::new();
    };
    let selected = town.selected(&Namespaces::of(town.snapshot, term, namespace), selector);
    if selected.is_empty() {
        return Vec::new();
    }
    town.look_along(&term.topology_key);
    let mut inside: FxHashMap<Domain, Crowded> = FxHashMap::default();
    for id in selected {
        let (site, planned) = (town.residents[id].site, town.residents[id].planned);
        for domain in town.possible(&term.topology_key, site) {
            let crowded = inside.entry(domain).or_default();
            if planned {
                crowded.planned.push(id);
            } else {
                crowded.running.push(id);
            }
        }
    }
    let mut broken = Vec::new();
    for owner in owners {
        let (site, planned) = (town.residents[*owner].site, town.residents[*owner].planned);
        let domains = town.possible(&term.topology_key, site).into_iter();
        let mut crowds = domains.filter_map(|domain| inside.get(&domain));
        let other = crowds.find_map(|crowd| crowd.other_than(*owner, planned));
        let Some(other) = other else { continue };
        // Of a running pod and a planned one, the planned one is out of place.
        let (at_fault, counterpart) = if planned { (*owner, other) } else { (other, *owner) };
        broken.push(Violation::TooNear {
            place: town.place(town.residents[at_fault].site),
            pod: town.residents[at_fault].pod.key.clone(),
            other: town.residents[counterpart].pod.key.clone(),
            key: LabelKey::from(term.topology_key.as_str()),
        });
    }
    broken
}

/// Every domain with carriers of an affinity has a pod that could have been there first. One domain may be started by a
/// carrier that the rule selects itself, if nobody else was there.
pub(super) fn come_close(
    town: &mut Town<'_>,
    term: &PodTerm,
    namespace: &Arc<str>,
    owners: &[ResidentId],
) -> Vec<Violation> {
    let selected = match &term.selector {
        Some(selector) => town.selected(&Namespaces::of(town.snapshot, term, namespace), selector),
        None => Vec::new(),
    };
    town.look_along(&term.topology_key);
    let axis = town.axis(&term.topology_key);
    let carriers: FxHashSet<ResidentId> = owners.iter().copied().collect();
    let others = selected.iter().filter(|id| !carriers.contains(id));
    let met: BTreeSet<Domain> = others.filter_map(|id| axis.homes[town.residents[*id].site]).collect();
    let mut domains: BTreeMap<Option<Domain>, Vec<ResidentId>> = BTreeMap::new();
    for owner in owners {
        domains
            .entry(axis.homes[town.residents[*owner].site])
            .or_default()
            .push(*owner);
    }
    domains.retain(|domain, _| domain.is_none_or(|domain| !met.contains(&domain)));
    if domains.is_empty() {
        return Vec::new();
    }
    let pioneers: FxHashSet<ResidentId> = selected.iter().copied().filter(|id| carriers.contains(id)).collect();
    // On a machine without the label nobody is anywhere.
    let somewhere = |id: &&ResidentId| axis.homes[town.residents[**id].site].is_some();
    let running = selected.iter().filter(somewhere).any(|id| !town.residents[*id].planned);
    let mut started = usize::from(!pioneers.is_empty() && !running);
    let homes: BTreeSet<Domain> = selected
        .iter()
        .filter_map(|id| axis.homes[town.residents[*id].site])
        .collect();
    let mut orphans: Vec<(Option<Domain>, Vec<ResidentId>)> = domains.into_iter().collect();
    orphans.sort_by_key(|(domain, owners)| (domain.is_none(), std::cmp::Reverse(owners.len())));
    let mut broken = Vec::new();
    for (domain, owners) in orphans {
        if let Some(domain) = domain {
            let own = owners.iter().filter(|owner| pioneers.contains(owner));
            if started > 0 && own.clone().next().is_some() {
                started -= 1;
                continue;
            }
            let mut own = own;
            if own.any(|owner| has_no_choice(town, *owner, term, domain, &homes)) {
                continue;
            }
        }
        broken.extend(owners.iter().map(|owner| Violation::TooFar {
            place: town.place(town.residents[*owner].site),
            pod: town.residents[*owner].pod.key.clone(),
            key: LabelKey::from(term.topology_key.as_str()),
        }));
    }
    broken
}

/// Whether a pod insists on a part of the cluster in which nobody else of its kind is. Such a pod starts a group of its
/// own there, as upstream has it (SC15.17.7).
fn has_no_choice(town: &Town<'_>, owner: ResidentId, term: &PodTerm, here: Domain, homes: &BTreeSet<Domain>) -> bool {
    let key = vocabulary::normalized_key(&term.topology_key);
    if key == vocabulary::HOSTNAME {
        return false;
    }
    let axis = town.axis(key);
    let ways = Requirements::alternatives_of_pod(&town.residents[owner].pod.shape);
    let admitted = |domain: &Domain| {
        let name = axis.name_of(*domain);
        ways.iter().any(|way| name.is_some_and(|name| way.get(key).has(name)))
    };
    !homes.iter().filter(|domain| **domain != here).any(admitted)
}
