//! What changed, as subscribers are told.

use std::sync::Arc;

use api::{
    Stored,
    aws::AwsNodeTemplate,
    v1::{NodeClaim, NodePool},
    v1alpha1::NodeOverlay,
    v1alpha5::{Machine, Provisioner},
    v1beta1::CapacityBuffer,
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Node, PodTemplate},
    storage::v1::VolumeAttachment,
};
use model::{NodeKey, Pod, PoolName, dra::ResourceSlice, snapshot::DisruptionBudget};

use crate::{NodeClass, ObjectKey};

/// An object before and after. One side is missing when it came or went.
#[derive(Debug)]
pub struct Change<T> {
    pub key: ObjectKey,
    pub old: Option<Arc<T>>,
    pub new: Option<Arc<T>>,
}

impl<T> Change<T> {
    /// The object as it is, or as it was when it went.
    pub fn latest(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            old: self.old.clone(),
            new: self.new.clone(),
        }
    }
}

/// One change of the index.
#[derive(Clone, Debug)]
pub enum Event {
    Pool(Change<NodePool>),
    Claim(Change<NodeClaim>),
    Node(Change<Node>),
    Pod(Change<Pod>),
    NodeClass(Change<NodeClass>),
    Attachment(Change<VolumeAttachment>),
    Budget(Change<DisruptionBudget>),
    /// Devices that a driver has published.
    Slice(Change<ResourceSlice>),
    Buffer(Change<CapacityBuffer>),
    PodTemplate(Change<PodTemplate>),
    Overlay(Change<NodeOverlay>),
    Provisioner(Change<Stored<Provisioner>>),
    NodeTemplate(Change<Stored<AwsNodeTemplate>>),
    Machine(Change<Stored<Machine>>),
    /// The settings of the time of Provisioners.
    GlobalSettings(Change<ConfigMap>),
    /// What a buffer keeps room for was put into the snapshot, was renewed, or is gone.
    Room(ObjectKey),
    /// What a pool may launch has become known or has changed.
    Catalog(PoolName),
    /// A nomination or a deletion mark was set or taken back.
    Mark(NodeKey),
    /// Every watched kind has been listed once.
    Synced,
}
