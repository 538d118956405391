//! What pools and reservations may give, added up from scratch.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CapacityType, InstanceType, InstanceTypeName, LabelValue, PoolName, Quantity, ResourceName, Resources, Snapshot,
    StateNode, snapshot::Catalog,
};
use rustc_hash::FxHashMap;

use super::{Violation, launches};
use crate::plan::Plan;

/// Instance types by name: catalogs are lists, and plans name each type many times.
pub(super) struct Kinds<'a> {
    by_pool: FxHashMap<&'a str, FxHashMap<&'a str, &'a InstanceType>>,
}

impl<'a> Kinds<'a> {
    pub fn new(snapshot: &'a Snapshot, plan: &Plan) -> Self {
        let used: BTreeSet<&PoolName> = plan.launches.iter().map(|launch| &launch.pool).collect();
        let catalogs = snapshot.catalogs.iter().filter(|(pool, _)| used.contains(pool));
        let by_name = |kinds: &'a Catalog| kinds.iter().map(|kind| (kind.name.as_str(), kind.as_ref())).collect();
        Self {
            by_pool: catalogs.map(|(pool, kinds)| (pool.as_str(), by_name(kinds))).collect(),
        }
    }

    pub fn get(&self, pool: &PoolName, name: &InstanceTypeName) -> Option<&'a InstanceType> {
        self.by_pool.get(pool.as_str())?.get(name.as_str()).copied()
    }
}

/// The claim is there and the instance is not.
pub(super) fn is_unlaunched(machine: &StateNode) -> bool {
    machine.node.is_none() && machine.claim.as_ref().is_some_and(|claim| claim.capacity.is_empty())
}

/// What an unlaunched machine may become. What is on sale does not matter: the launch is under way.
pub(super) fn possible<'a>(snapshot: &'a Snapshot, machine: &StateNode) -> Vec<&'a InstanceType> {
    let (Some(claim), Some(pool)) = (&machine.claim, machine.pool()) else {
        return Vec::new();
    };
    let catalog = snapshot
        .catalogs
        .get(&pool)
        .into_iter()
        .flat_map(|catalog| catalog.iter());
    catalog
        .map(AsRef::as_ref)
        .filter(|kind: &&InstanceType| {
            let mut offerings = kind.offerings.iter();
            kind.requirements.overlaps(&claim.requirements)
                && offerings.any(|offering| offering.admitted_by(&claim.requirements))
        })
        .collect()
}

/// Pools whose limits do not hold if every machine turns out as large as it may.
pub(super) fn limits(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut added: BTreeMap<&PoolName, Vec<Resources>> = BTreeMap::new();
    let kinds = Kinds::new(snapshot, plan);
    // Launches that list the same types are as large as each other.
    let mut known: FxHashMap<(&PoolName, *const InstanceTypeName), Resources> = FxHashMap::default();
    for launch in &plan.launches {
        let limited = snapshot
            .pools
            .get(&launch.pool)
            .is_some_and(|pool| !pool.limits.is_empty());
        if !limited {
            continue;
        }
        let worst = known
            .entry((&launch.pool, launch.instance_types.as_ptr()))
            .or_insert_with(|| {
                let kinds = launch
                    .instance_types
                    .iter()
                    .filter_map(|name| kinds.get(&launch.pool, name));
                largest(kinds).with(ResourceName::NODES, Quantity::from_int(1))
            });
        added.entry(&launch.pool).or_default().push(worst.clone());
    }
    let mut broken = Vec::new();
    for (name, added) in added {
        let Some(pool) = snapshot.pools.get(name) else { continue };
        let mut used = snapshot.pool_usage(name);
        let unlaunched = snapshot.nodes.values().filter(|machine| is_unlaunched(machine));
        let ours = unlaunched.filter(|machine| !machine.is_leaving() && machine.pool().as_ref() == Some(name));
        for machine in ours {
            used.add_assign(&largest(possible(snapshot, machine).into_iter()));
        }
        for (resource, limit) in pool.limits.iter() {
            let amounts = added.iter().map(|launch| launch.get(resource.as_str()));
            let mut sum = used.get(resource.as_str());
            let within = amounts.take_while(|amount| {
                sum = sum.saturating_add(*amount);
                sum <= limit
            });
            let excess = added.len() - within.count();
            // A launch that has nothing of a resource does no harm to a limit that is exceeded already.
            let harmful = added.iter().any(|launch| !launch.get(resource.as_str()).is_zero());
            if excess > 0 && harmful {
                broken.push(Violation::OverLimit {
                    pool: name.clone(),
                    resource: resource.clone(),
                    excess,
                });
            }
        }
    }
    broken
}

/// The most of each resource that any of them has.
fn largest<'k>(kinds: impl Iterator<Item = &'k InstanceType>) -> Resources {
    let mut most = Resources::default();
    for kind in kinds {
        most.max_with(&kind.capacity);
    }
    most
}

/// Reservations that are promised to more launches than they hold. A launch that may use one of several has a promise
/// from each.
pub(super) fn reservations(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let Some(key) = &snapshot.vocabulary.reservation_id else {
        return Vec::new();
    };
    let mut promised: BTreeMap<&LabelValue, usize> = BTreeMap::new();
    let reserved = plan.launches.iter().filter(|launch| launches::is_reserved(launch));
    for launch in reserved {
        for id in launch.requirements.get(key.as_str()).listed().into_iter().flatten() {
            *promised.entry(id).or_default() += 1;
        }
    }
    if promised.is_empty() {
        return Vec::new();
    }
    let mut held: BTreeMap<&LabelValue, u32> = BTreeMap::new();
    let kinds = snapshot.catalogs.values().flat_map(|catalog| catalog.iter());
    for offering in kinds.flat_map(|kind| &kind.offerings) {
        let id = offering.requirements.get(key.as_str()).single();
        if let Some(id) = id.filter(|_| offering.capacity_type == CapacityType::Reserved) {
            let most = offering.reservation_capacity.unwrap_or(0);
            let known = held.entry(id).or_insert(most);
            *known = (*known).min(most);
        }
    }
    let over = promised.into_iter().filter_map(|(id, promised)| {
        let most = held.get(id).copied().unwrap_or(0);
        (promised > most as usize).then(|| Violation::Overbooked {
            id: id.clone(),
            promised,
            most,
        })
    });
    over.collect()
}
