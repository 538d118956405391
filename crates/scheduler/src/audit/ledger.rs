//! What machines have room for and what pools may use, added up from scratch.

use std::collections::BTreeMap;

use model::{
    InstanceType, InstanceTypeName, PoolName, Quantity, Requirements, Resources, Snapshot, StateNode,
    requirements::AllowUndefined,
};

use super::Violation;
use crate::plan::Plan;

/// The claim is there and the instance is not.
pub(super) fn is_unlaunched(machine: &StateNode) -> bool {
    machine.node.is_none() && machine.claim.as_ref().is_some_and(|claim| claim.capacity.is_empty())
}

/// What a machine has for pods, daemons that have not arrived yet set aside; for an unlaunched one, in each of the
/// types that it may become.
pub(super) fn rooms(snapshot: &Snapshot, machine: &StateNode) -> Vec<(Option<InstanceTypeName>, Resources)> {
    let daemons = || snapshot.daemons.values().map(|daemon| daemon.shape.as_ref());
    if is_unlaunched(machine) {
        let kinds = possible(snapshot, machine).into_iter();
        return kinds
            .map(|kind| (Some(kind.name.clone()), kind.allocatable().clone()))
            .collect();
    }
    let labels = Requirements::from_labels(machine.labels());
    let taints = machine.taints();
    let expected = daemons().filter(|daemon| {
        let tolerated = super::hard(&taints).all(|taint| daemon.tolerates(taint));
        let mut ways = Requirements::alternatives_of_pod(daemon).into_iter();
        tolerated && ways.any(|way| labels.is_compatible(&way, AllowUndefined::Nothing))
    });
    let expected: Resources = expected.map(|daemon| &daemon.requests).sum();
    let here = snapshot
        .pods_of(machine)
        .filter(|pod| pod.is_daemon() && !pod.is_terminal());
    let here: Resources = here.map(|pod| &pod.shape.requests).sum();
    vec![(None, machine.allocatable().minus(&expected.minus(&here).floored()))]
}

fn possible<'a>(snapshot: &'a Snapshot, machine: &StateNode) -> Vec<&'a InstanceType> {
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
        .filter(|kind: &&InstanceType| kind.requirements.overlaps(&claim.requirements))
        .filter(|kind| {
            kind.offerings
                .iter()
                .any(|offering| offering.admitted_by(&claim.requirements))
        })
        .collect()
}

/// Pools whose limits do not hold if every machine turns out as large as it may.
pub(super) fn limits(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut added: BTreeMap<&PoolName, Resources> = BTreeMap::new();
    for launch in &plan.launches {
        let mut worst = Resources::default();
        for name in launch.instance_types.iter() {
            if let Some(kind) = snapshot.instance_type(&launch.pool, name) {
                worst.max_with(&kind.capacity);
            }
        }
        worst.set("nodes".into(), Quantity::from_int(1));
        added.entry(&launch.pool).or_default().add_assign(&worst);
    }
    let mut broken = Vec::new();
    for (name, added) in added {
        let Some(pool) = snapshot.pools.get(name) else { continue };
        let mut used = snapshot.pool_usage(name).plus(&added);
        let staying = snapshot
            .nodes
            .values()
            .filter(|machine| !machine.is_leaving() && is_unlaunched(machine));
        for machine in staying.filter(|machine| machine.pool().as_ref() == Some(name)) {
            let mut worst = Resources::default();
            for kind in possible(snapshot, machine) {
                worst.max_with(&kind.capacity);
            }
            used.add_assign(&worst);
        }
        for (resource, limit) in pool.limits.iter() {
            if used.get(resource.as_str()) > limit {
                broken.push(Violation::OverLimit {
                    pool: name.clone(),
                    resource: resource.clone(),
                });
            }
        }
    }
    broken
}
