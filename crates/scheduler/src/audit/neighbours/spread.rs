//! Spreads that are demands.
//!
//! An order in which the pods can be bound exists if and only if, for each domain with carriers of the rule, what was
//! there and the carriers that count themselves stay within the skew of the smallest final count: others can be bound
//! before or after, as it helps.

use std::collections::BTreeSet;

use model::{
    LabelKey, Requirement, Requirements, Snapshot, Toleration, pod::LabelSelector, requirement::Values, vocabulary,
};
use rustc_hash::FxHashMap;

use super::{
    super::{Violation, hard},
    SpreadRule,
    town::{Domain, Namespaces, ResidentId, Town},
};

/// Which machines take part, by what the pod and the rule say about them.
type Scope<'a> = (&'a [Requirement], Vec<&'a [Requirement]>, Option<&'a [Toleration]>);

/// Answers that several rules share.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    taking_part: FxHashMap<Scope<'a>, Vec<bool>>,
    reach: FxHashMap<(Scope<'a>, Vec<Toleration>), BTreeSet<String>>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// Running pods.
    before: u32,
    /// Carriers of the rule that it selects.
    own: u32,
    total: u32,
}

pub(super) fn check<'a>(
    town: &mut Town<'a>,
    scopes: &mut Scopes<'a>,
    rule: &SpreadRule<'a>,
    owners: &[ResidentId],
) -> Vec<Violation> {
    let key = vocabulary::normalized_key(&rule.spread.topology_key);
    town.look_along(key);
    let town: &Town<'a> = town;
    let axis = town.axis(key);
    let scope = scope(rule);
    let taking_part = scopes
        .taking_part
        .entry(scope.clone())
        .or_insert_with(|| taking_part(town, &scope));
    let home = |site: usize| axis.homes[site].filter(|_| taking_part[site]);
    let certain = (0..town.sites.len()).filter(|site| town.is_certain(*site));
    let mut eligible: BTreeSet<Domain> = certain.filter_map(home).collect();

    let carriers: BTreeSet<ResidentId> = owners.iter().copied().collect();
    let mut counts: FxHashMap<Domain, Count> = FxHashMap::default();
    let mut counted: BTreeSet<ResidentId> = BTreeSet::new();
    for id in selected(town, rule) {
        let resident = &town.residents[id];
        let Some(domain) = home(resident.site) else { continue };
        let count = counts.entry(domain).or_default();
        count.total += 1;
        if !resident.planned {
            count.before += 1;
        } else if carriers.contains(&id) {
            count.own += 1;
            counted.insert(id);
        }
    }
    let total = |domain: &Domain| counts.get(domain).map_or(0, |count| count.total);
    // Pods elsewhere can be bound before an unlaunched machine joins, as long as its domain need not be there for them.
    let at_first = eligible.iter().map(total).min();
    eligible.extend(counts.keys());
    let in_the_end = eligible.iter().map(total).min().unwrap_or(0);
    let mut least = match rule.spread.min_domains {
        None => at_first.unwrap_or(in_the_end),
        Some(_) => in_the_end,
    };
    if rule
        .spread
        .min_domains
        .is_some_and(|wanted| eligible.len() < wanted as usize)
    {
        least = 0;
    }
    if least > 0 && key == vocabulary::ZONE {
        let tolerations = rule.tolerations.to_vec();
        let reach = scopes.reach.entry((scope, tolerations));
        let reach = reach.or_insert_with(|| zones_within_reach(town.snapshot, rule));
        let unused = |zone: &String| axis.domain_named(zone).is_none_or(|domain| !eligible.contains(&domain));
        if reach.iter().any(unused) {
            least = 0;
        }
    }

    let mut broken = Vec::new();
    let mut in_domain: FxHashMap<Domain, Vec<ResidentId>> = FxHashMap::default();
    for owner in owners {
        match axis.homes[town.residents[*owner].site] {
            Some(domain) => in_domain.entry(domain).or_default().push(*owner),
            None => broken.push(Violation::NoDomain {
                place: town.place(town.residents[*owner].site),
                pod: town.residents[*owner].pod.key.clone(),
                key: LabelKey::from(key),
            }),
        }
    }
    let mut domains: Vec<(Domain, Vec<ResidentId>)> = in_domain.into_iter().collect();
    domains.sort_unstable();
    for (domain, owners) in domains {
        let count = counts.get(&domain).copied().unwrap_or_default();
        let load = count.before + count.own;
        let excess = load.saturating_sub(least.saturating_add(rule.spread.max_skew));
        if excess == 0 {
            continue;
        }
        // The last ones are too many; those who do not count themselves had no business there at all.
        let (selves, guests): (Vec<_>, Vec<_>) = owners.into_iter().partition(|owner| counted.contains(owner));
        let guests = guests
            .into_iter()
            .filter(|_| count.before > least.saturating_add(rule.spread.max_skew));
        let last = selves.into_iter().rev().take(excess as usize);
        broken.extend(last.chain(guests).map(|owner| Violation::Uneven {
            place: town.place(town.residents[owner].site),
            pod: town.residents[owner].pod.key.clone(),
            key: LabelKey::from(key),
            count: load,
            least,
            max_skew: rule.spread.max_skew,
        }));
    }
    broken
}

/// The pods that the rule counts. A label among `matchLabelKeys` that the pod lacks does not matter.
fn selected(town: &Town<'_>, rule: &SpreadRule<'_>) -> Vec<ResidentId> {
    let Some(selector) = &rule.spread.selector else {
        return Vec::new();
    };
    let mut requirements = selector.requirements.clone();
    let like = rule.spread.match_label_keys.iter().zip(&rule.like);
    requirements.extend(like.filter_map(|(key, value)| {
        let value = (*value)?;
        Some(Requirement::of(key.as_str(), Values::Only([value.clone()].into())))
    }));
    let namespace = Namespaces::These([&**rule.namespace].into());
    town.selected(&namespace, &LabelSelector { requirements })
}

fn scope<'a>(rule: &SpreadRule<'a>) -> Scope<'a> {
    let tolerations = rule.spread.honor_taints.then_some(rule.tolerations);
    if !rule.spread.honor_affinity {
        return (&[], Vec::new(), tolerations);
    }
    let terms = rule.affinity.required_nodes.iter();
    (
        rule.node_selector,
        terms.map(|term| term.requirements.as_slice()).collect(),
        tolerations,
    )
}

/// What the node has to be, in one of these ways.
fn ways(selector: &[Requirement], terms: &[&[Requirement]]) -> Vec<Requirements> {
    let with = |term: &[Requirement]| selector.iter().chain(term).cloned().collect();
    match terms {
        [] => vec![with(&[])],
        terms => terms.iter().map(|term| with(term)).collect(),
    }
}

fn taking_part(town: &Town<'_>, (selector, terms, tolerations): &Scope<'_>) -> Vec<bool> {
    let ways = ways(selector, terms);
    let labelled = |site: usize| ways.iter().any(|way| town.meets(site, way));
    let untainted = |site: usize| {
        tolerations.is_none_or(|tolerations| hard(town.taints(site)).all(|taint| taint.is_tolerated_by(tolerations)))
    };
    (0..town.sites.len())
        .map(|site| untainted(site) && labelled(site))
        .collect()
}

/// Zones in which some pool could make a node that the pod's node rules and tolerations allow, size aside.
fn zones_within_reach(snapshot: &Snapshot, rule: &SpreadRule<'_>) -> BTreeSet<String> {
    let terms: Vec<&[Requirement]> = rule
        .affinity
        .required_nodes
        .iter()
        .map(|term| term.requirements.as_slice())
        .collect();
    let ways = ways(rule.node_selector, &terms);
    let mut zones = BTreeSet::new();
    let pools = snapshot
        .pools
        .values()
        .filter(|pool| pool.ready && !pool.is_static() && pool.deleting.is_none());
    for pool in pools {
        let template = &pool.template;
        if hard(&template.taints).any(|taint| !taint.is_tolerated_by(rule.tolerations)) {
            continue;
        }
        let mut own = template.requirements.clone();
        own.merge(&Requirements::from_labels(&template.labels));
        own.add(Requirement::one_of(vocabulary::NODEPOOL, [pool.name.as_str()]));
        let allow = model::requirements::AllowUndefined::WellKnown(&snapshot.vocabulary);
        let narrowed: Vec<Requirements> = ways
            .iter()
            .filter(|way| own.is_compatible(way, allow))
            .map(|way| {
                let mut both = own.clone();
                both.merge(way);
                both
            })
            .collect();
        let kinds = snapshot
            .catalogs
            .get(&pool.name)
            .into_iter()
            .flat_map(|catalog| catalog.iter());
        for kind in kinds {
            for way in narrowed.iter().filter(|way| kind.requirements.overlaps(way)) {
                let sold = kind.offerings_within(way).map(|offering| offering.zone.as_str());
                for zone in sold {
                    if !zones.contains(zone) {
                        zones.insert(zone.to_owned());
                    }
                }
            }
        }
    }
    zones
}
