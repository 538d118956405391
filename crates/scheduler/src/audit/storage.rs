//! Volumes: a pod can use them where it is put, and nodes attach no more of them than they can.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    Pod, PodKey, Requirement, Requirements, Snapshot, StateNode, VolumeClaim, pod::PodVolume, vocabulary,
    volume::BindingMode,
};

use super::{Place, Violation};

/// Whether every volume of a pod can be used at a place. `near` tells whether the place is one that a term describes.
pub(super) fn check(
    snapshot: &Snapshot,
    place: &Place,
    pod: &Pod,
    near: impl Fn(&Requirements) -> bool,
) -> Vec<Violation> {
    let mut broken = Vec::new();
    for claim in claims_of(pod) {
        match places(snapshot, &claim) {
            None => broken.push(Violation::VolumeUnusable {
                place: place.clone(),
                pod: pod.key.clone(),
                claim,
            }),
            Some(places) if !places.is_empty() && !places.iter().any(&near) => {
                broken.push(Violation::VolumeElsewhere {
                    place: place.clone(),
                    pod: pod.key.clone(),
                    claim,
                });
            }
            Some(_) => {}
        }
    }
    broken
}

/// Drivers of which a node would have to attach more volumes than it can. What was too much before is nobody's fault
/// here.
pub(super) fn attachments(snapshot: &Snapshot, machine: &StateNode, pods: &[&Pod]) -> Vec<Violation> {
    let limits = machine.node_name().and_then(|name| snapshot.attach_limits.get(name));
    let Some(limits) = limits else { return Vec::new() };
    let there = snapshot.pods_of(machine).filter(|pod| !pod.is_terminal());
    let before = attached(snapshot, there.map(AsRef::as_ref));
    let added = attached(snapshot, pods.iter().copied());
    let mut broken = Vec::new();
    for (driver, most) in limits.iter() {
        let (Some(added), none) = (added.get(driver), BTreeSet::new()) else {
            continue;
        };
        let before = before.get(driver).unwrap_or(&none);
        let wanted = before.union(added).count();
        if wanted > before.len() && wanted > *most as usize {
            broken.push(Violation::TooManyVolumes {
                node: machine.key.clone(),
                driver: driver.clone(),
                wanted,
                most: *most,
            });
        }
    }
    broken
}

fn attached<'p>(snapshot: &Snapshot, pods: impl Iterator<Item = &'p Pod>) -> BTreeMap<Arc<str>, BTreeSet<PodKey>> {
    let mut all: BTreeMap<Arc<str>, BTreeSet<PodKey>> = BTreeMap::new();
    for key in pods.flat_map(claims_of) {
        let claim = snapshot.volume_claims.get(&key);
        if let Some(driver) = claim.and_then(|claim| driver_of(snapshot, claim)) {
            all.entry(driver).or_default().insert(key);
        }
    }
    all
}

fn claims_of(pod: &Pod) -> BTreeSet<PodKey> {
    let name = |volume: &PodVolume| match volume {
        PodVolume::Claim(name) => name.clone(),
        PodVolume::Ephemeral { volume, .. } => format!("{}-{volume}", pod.key.name),
    };
    let keys = pod
        .shape
        .volumes
        .iter()
        .map(|volume| PodKey::new(&pod.key.namespace, &name(volume)));
    keys.collect()
}

fn driver_of(snapshot: &Snapshot, claim: &VolumeClaim) -> Option<Arc<str>> {
    if let Some(volume) = &claim.volume {
        return snapshot.volumes.get(volume)?.driver.clone();
    }
    let class = match &claim.storage_class {
        Some(name) => snapshot.storage_classes.get(name),
        None => snapshot.default_storage_class(),
    };
    class.map(|class| class.driver.clone())
}

/// The places where a claim can be used, none meaning anywhere; nothing at all when it cannot be used yet or ever.
fn places(snapshot: &Snapshot, key: &PodKey) -> Option<Vec<Requirements>> {
    let claim = snapshot.volume_claims.get(key)?;
    if claim.deleting || claim.lost {
        return None;
    }
    let driver = driver_of(snapshot, claim);
    if driver.is_some_and(|driver| snapshot.vocabulary.unsupported_provisioners.contains(&*driver)) {
        return None;
    }
    if let Some(name) = &claim.volume {
        let volume = snapshot
            .volumes
            .get(name)
            .filter(|volume| !volume.deleting && claim.bind_completed)?;
        // The data of a machine's own disk goes with the machine, so that its pod starts over wherever it is put.
        let counts = |demand: &&Requirement| !volume.machine_bound || demand.key != vocabulary::HOSTNAME;
        let terms = volume.node_terms.iter().filter(|term| !term.is_empty());
        return Some(
            terms
                .map(|term| term.iter().filter(counts).cloned().collect())
                .collect(),
        );
    }
    let class = match &claim.storage_class {
        Some(name) => snapshot.storage_classes.get(name),
        None => snapshot.default_storage_class(),
    };
    let class = class.filter(|class| class.binding == BindingMode::WaitForFirstConsumer)?;
    let unsupported = &snapshot.vocabulary.unsupported_topology_keys;
    let mut keys = class.allowed_topologies.iter().flatten().map(|demand| &demand.key);
    if keys.any(|key| unsupported.contains(key.as_str())) {
        return None;
    }
    let terms = class.allowed_topologies.iter();
    Some(terms.map(|term| term.iter().cloned().collect()).collect())
}
