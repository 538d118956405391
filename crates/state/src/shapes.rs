//! Lets the pods of one workload share what they have in common.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use k8s_openapi::api::core::v1::Pod;
use model::pod::PodShape;

/// The latest shape of each workload, by the UID of the pods' owner. Pods that nobody owns, as they stand in files, are
/// taken for one workload when they have the same labels and ask for the same. Weak, so that a workload's shape goes with its
/// last pod.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    latest: BTreeMap<String, Weak<PodShape>>,
    /// When the map has grown to this size, shapes without pods are dropped.
    sweep_at: usize,
}

impl Shapes {
    pub fn share(&mut self, object: &Pod, pod: &mut model::Pod) {
        let owner = object
            .metadata
            .owner_references
            .as_ref()
            .and_then(|owners| owners.first());
        let workload = match owner {
            Some(owner) => owner.uid.clone(),
            None => format!("{:?} {}", pod.shape.labels, pod.shape.requests),
        };
        if let Some(known) = self.latest.get(&workload).and_then(Weak::upgrade)
            && *known == *pod.shape
        {
            pod.shape = known;
            return;
        }
        self.latest.insert(workload, Arc::downgrade(&pod.shape));
        if self.latest.len() > self.sweep_at.max(64) {
            self.latest.retain(|_, shape| shape.strong_count() > 0);
            self.sweep_at = self.latest.len() * 2;
        }
    }
}
