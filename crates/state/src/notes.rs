//! What is worth telling about a pod and no decision looks at.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use api::convert;
use k8s_openapi::api::core::v1::Pod;
use model::Resources;

/// Facts about pods for those who watch the cluster. Pods of one workload share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodNotes {
    /// The path of the pod's first owner; empty when nobody owns it.
    pub owner: String,
    pub limits: Resources,
}

impl PodNotes {
    fn of(pod: &Pod) -> Self {
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let owner = owners.first().map(|owner| {
            let kind = owner.kind.to_lowercase();
            format!(
                "/apis/{}/namespaces/{namespace}/{kind}s/{}",
                owner.api_version, owner.name
            )
        });
        Self {
            owner: owner.unwrap_or_default(),
            limits: pod.spec.as_ref().map(convert::pod_limits).unwrap_or_default(),
        }
    }
}

/// The latest notes of each owner. Weak, so that notes go with the last pod.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    latest: BTreeMap<String, Weak<PodNotes>>,
    /// When the map has grown to this size, notes without pods are dropped.
    sweep_at: usize,
}

impl Notes {
    pub fn take(&mut self, pod: &Pod) -> Arc<PodNotes> {
        let notes = PodNotes::of(pod);
        if let Some(known) = self.latest.get(&notes.owner).and_then(Weak::upgrade)
            && *known == notes
        {
            return known;
        }
        let notes = Arc::new(notes);
        self.latest.insert(notes.owner.clone(), Arc::downgrade(&notes));
        if self.latest.len() > self.sweep_at.max(64) {
            self.latest.retain(|_, notes| notes.strong_count() > 0);
            self.sweep_at = self.latest.len() * 2;
        }
        notes
    }
}
