//! What a DaemonSet will put on a fresh node, as its newest pod shows it.
//!
//! A template is not what runs: admission adds defaults, sidecars and limits. So the newest pod stands for the next
//! one, except for its node affinity, which pins it to its own node; that stays the template's.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use model::{pod::PodShape, snapshot::Daemon};

use crate::{ObjectKey, index::Core};

/// Which pods belong to which DaemonSet.
#[derive(Debug, Default)]
pub(crate) struct DaemonPods {
    owners: BTreeMap<ObjectKey, ObjectKey>,
    /// Oldest first; among pods of one moment, by name.
    pods: BTreeMap<ObjectKey, BTreeSet<(Timestamp, ObjectKey)>>,
}

impl DaemonPods {
    /// Notes whose pod this is. Another's pod under the same name takes its place.
    pub fn note(&mut self, object: &Pod, pod: &model::Pod) {
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| {
            owner.kind == "DaemonSet" && owner.api_version == "apps/v1" && owner.controller == Some(true)
        });
        match owner {
            Some(owner) => {
                let set = ObjectKey::new(&pod.key.namespace, &owner.name);
                self.owners.insert(pod.key.clone(), set);
            }
            None => {
                self.owners.remove(&pod.key);
            }
        }
    }

    fn newest(&self, set: &ObjectKey) -> Option<&ObjectKey> {
        self.pods.get(set)?.last().map(|(_, pod)| pod)
    }
}

/// A pod came, changed or went.
pub(crate) fn pod_changed(core: &mut Core, old: Option<&model::Pod>, new: Option<&model::Pod>) {
    let mut touched = BTreeSet::new();
    if let Some(old) = old {
        let entry = (old.created, old.key.clone());
        // Whoever owned the namesake before, it is not theirs any more.
        core.daemon_pods.pods.retain(|set, pods| {
            if pods.remove(&entry) {
                touched.insert(set.clone());
            }
            !pods.is_empty()
        });
    }
    match new {
        Some(new) => {
            if let Some(set) = core.daemon_pods.owners.get(&new.key).cloned() {
                let entry = (new.created, new.key.clone());
                core.daemon_pods.pods.entry(set.clone()).or_default().insert(entry);
                touched.insert(set);
            }
        }
        None => {
            if let Some(old) = old {
                core.daemon_pods.owners.remove(&old.key);
            }
        }
    }
    for set in touched {
        settle(core, &set);
    }
}

/// Puts what is known of a DaemonSet into the snapshot.
pub(crate) fn settle(core: &mut Core, set: &ObjectKey) {
    let Some(template) = core.daemons.get(set).cloned() else {
        core.view_mut().snapshot.daemons.remove(set);
        return;
    };
    let newest = core.daemon_pods.newest(set).and_then(|pod| core.pods.get(pod)).cloned();
    let daemon = match newest {
        Some(pod) => Arc::new(Daemon {
            key: set.clone(),
            shape: Arc::new(pinned_nowhere(&pod.shape, &template.shape)),
        }),
        None => template,
    };
    let daemons = &mut core.view_mut().snapshot.daemons;
    if daemons.get(set) != Some(&daemon) {
        daemons.insert(set.clone(), daemon);
    }
}

fn pinned_nowhere(pod: &PodShape, template: &PodShape) -> PodShape {
    let mut shape = pod.clone();
    shape
        .affinity
        .required_nodes
        .clone_from(&template.affinity.required_nodes);
    shape
        .affinity
        .preferred_nodes
        .clone_from(&template.affinity.preferred_nodes);
    shape
}
