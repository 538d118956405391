//! What the volumes of a pod demand of its node.
//!
//! A bound claim is where its volume is; an unbound one will be wherever its class allows and the pod is put. Either
//! way there can be several places, of which one has to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    Pod, PodKey, Requirement, Requirements, Snapshot, StateNode, Volume, VolumeClaim, pod::PodVolume, vocabulary,
    volume::BindingMode,
};

use crate::refusal::VolumeRefusal;

/// How many combinations of places are tried for one pod. Zones and regions come nowhere near it; a pod with dozens
/// of volumes that are each tied to labels of their own could make any number of them.
const MOST_ALTERNATIVES: usize = 1024;

/// CSI driver → the claims it has to attach. A claim that many pods share is attached once.
pub(crate) type Attached = BTreeMap<Arc<str>, BTreeSet<PodKey>>;

/// What the volumes of a pod demand of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PodVolumes {
    /// The node has to meet one of these; it may be any node when there are none. Never a demand of the pod itself: a
    /// spread does not see them, and no relaxation takes them away.
    pub alternatives: Vec<Requirements>,
    /// What has to be attached to the node, by CSI driver.
    pub attached: Vec<(Arc<str>, PodKey)>,
}

/// Finds out what the volumes of a pod demand of its node, or why the pod has to wait for them.
///
/// Where the places of several volumes exclude each other, the alternatives say so: no node will meet them.
pub(crate) fn resolve(snapshot: &Snapshot, pod: &Pod) -> Result<PodVolumes, VolumeRefusal> {
    let mut attached = BTreeSet::new();
    let mut places = Vec::new();
    for key in claims(pod) {
        let storage = storage(snapshot, &key)?;
        if let Some(driver) = storage.driver {
            if snapshot.vocabulary.unsupported_provisioners.contains(&**driver) {
                return Err(VolumeRefusal::UnsupportedProvisioner {
                    claim: key,
                    driver: driver.clone(),
                });
            }
            attached.insert((driver.clone(), key));
        }
        if !storage.places.is_empty() {
            places.push(storage.places);
        }
    }
    Ok(PodVolumes {
        alternatives: combinations(places)?,
        attached: attached.into_iter().collect(),
    })
}

/// What the pods of a machine have attached already. Claims whose driver cannot be told are not counted.
pub(crate) fn attached_on(snapshot: &Snapshot, machine: &StateNode) -> Attached {
    let mut attached = Attached::new();
    for pod in snapshot.pods_of(machine).filter(|pod| !pod.is_terminal()) {
        for key in claims(pod) {
            let claim = snapshot.volume_claims.get(&key);
            if let Some(driver) = claim.and_then(|claim| driver(snapshot, claim)) {
                attached.entry(driver.clone()).or_default().insert(key);
            }
        }
    }
    attached
}

/// The claims that a pod names or that are made for it, each once, in the order of its volumes.
fn claims(pod: &Pod) -> Vec<PodKey> {
    let mut keys = Vec::new();
    for volume in &pod.shape.volumes {
        let name = match volume {
            PodVolume::Claim(name) => name.clone(),
            PodVolume::Ephemeral { volume, .. } => format!("{}-{volume}", pod.key.name),
        };
        let key = PodKey {
            namespace: pod.key.namespace.clone(),
            name: name.into(),
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Where one claim can be used, and who attaches it.
struct Storage<'a> {
    driver: Option<&'a Arc<str>>,
    /// Empty when anywhere.
    places: Vec<Requirements>,
}

fn storage<'a>(snapshot: &'a Snapshot, key: &PodKey) -> Result<Storage<'a>, VolumeRefusal> {
    let claim = || key.clone();
    let Some(found) = snapshot.volume_claims.get(key) else {
        return Err(VolumeRefusal::ClaimMissing { claim: claim() });
    };
    if found.deleting {
        return Err(VolumeRefusal::ClaimDeleting { claim: claim() });
    }
    if found.lost {
        return Err(VolumeRefusal::ClaimLost { claim: claim() });
    }
    match &found.volume {
        Some(name) => bound(snapshot, found, name),
        None => unbound(snapshot, found),
    }
}

fn bound<'a>(snapshot: &'a Snapshot, claim: &VolumeClaim, name: &Arc<str>) -> Result<Storage<'a>, VolumeRefusal> {
    let (claim, volume, completed) = (claim.key.clone(), name.clone(), claim.bind_completed);
    let Some(found) = snapshot.volumes.get(name) else {
        return Err(VolumeRefusal::VolumeMissing { claim, volume });
    };
    if found.deleting {
        return Err(VolumeRefusal::VolumeDeleting { claim, volume });
    }
    if !completed {
        return Err(VolumeRefusal::BindingIncomplete { claim, volume });
    }
    Ok(Storage {
        driver: found.driver.as_ref(),
        places: places_of(found),
    })
}

fn unbound<'a>(snapshot: &'a Snapshot, claim: &VolumeClaim) -> Result<Storage<'a>, VolumeRefusal> {
    let key = || claim.key.clone();
    let found = match &claim.storage_class {
        Some(name) if name.is_empty() => return Err(VolumeRefusal::NoStorageClass { claim: key() }),
        Some(name) => snapshot
            .storage_classes
            .get(name)
            .ok_or_else(|| VolumeRefusal::StorageClassMissing {
                claim: key(),
                class: name.clone(),
            })?,
        // The API server writes the default class into new claims; one that it has not seen to will get it.
        None => snapshot
            .default_storage_class()
            .ok_or_else(|| VolumeRefusal::NoStorageClass { claim: key() })?,
    };
    if found.binding == BindingMode::Immediate {
        return Err(VolumeRefusal::BindsImmediately {
            claim: key(),
            class: found.name.clone(),
        });
    }
    let unsupported = &snapshot.vocabulary.unsupported_topology_keys;
    let mut demands = found.allowed_topologies.iter().flatten();
    if let Some(demand) = demands.find(|demand| unsupported.contains(demand.key.as_str())) {
        return Err(VolumeRefusal::UnsupportedTopologyKey {
            claim: key(),
            class: found.name.clone(),
            key: demand.key.clone(),
        });
    }
    Ok(Storage {
        driver: Some(&found.driver),
        places: found
            .allowed_topologies
            .iter()
            .map(|term| term.iter().cloned().collect())
            .collect(),
    })
}

/// The driver that attaches a claim's volume, as far as it can be told.
fn driver<'a>(snapshot: &'a Snapshot, claim: &VolumeClaim) -> Option<&'a Arc<str>> {
    match (&claim.volume, &claim.storage_class) {
        (Some(volume), _) => snapshot.volumes.get(volume)?.driver.as_ref(),
        (None, Some(class)) => Some(&snapshot.storage_classes.get(class)?.driver),
        (None, None) => Some(&snapshot.default_storage_class()?.driver),
    }
}

/// A volume that is part of one machine moves with the data that a pod writes to it: when that machine goes, the pod
/// starts over elsewhere. So its host name is no demand, and a term that says nothing else leaves any node open.
fn places_of(volume: &Volume) -> Vec<Requirements> {
    let counts = |demand: &&Requirement| !volume.machine_bound || demand.key != vocabulary::HOSTNAME;
    let terms = volume.node_terms.iter().filter(|term| !term.is_empty());
    terms
        .map(|term| term.iter().filter(counts).cloned().collect())
        .collect()
}

/// One place for each volume, in all ways that do not contradict themselves. If there is none, the ways that do.
fn combinations(volumes: Vec<Vec<Requirements>>) -> Result<Vec<Requirements>, VolumeRefusal> {
    let mut combined: Vec<Requirements> = Vec::new();
    for (index, places) in volumes.into_iter().enumerate() {
        if index == 0 {
            combined = places;
            continue;
        }
        let (mut possible, mut impossible) = (Vec::new(), Vec::new());
        for before in &combined {
            for place in &places {
                let both = if before.overlaps(place) {
                    &mut possible
                } else {
                    &mut impossible
                };
                let mut merged = before.clone();
                merged.merge(place);
                if !both.contains(&merged) {
                    both.push(merged);
                }
                if both.len() > MOST_ALTERNATIVES {
                    return Err(VolumeRefusal::TooManyAlternatives {
                        most: MOST_ALTERNATIVES,
                    });
                }
            }
        }
        if possible.is_empty() {
            // What further volumes demand cannot make it any better.
            return Ok(impossible);
        }
        combined = possible;
    }
    Ok(combined)
}

#[cfg(test)]
mod tests;
