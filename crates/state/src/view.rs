//! What is known of the cluster at one moment.

use api::{
    FieldError, Stored,
    aws::AwsNodeTemplate,
    v1::{NodeClaim, NodeClassReference, NodePool},
    v1alpha1::NodeOverlay,
    v1alpha5::{Machine, Provisioner},
    v1beta1::CapacityBuffer,
};
use imbl::{OrdMap, OrdSet};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Node, PodTemplate},
    storage::v1::VolumeAttachment,
};
use model::{ClaimName, NodeName, PodKey, ProviderId, Snapshot};
use std::sync::Arc;

use crate::{Kind, NodeClass, ObjectKey, PodNotes, Table};

/// The cluster at one moment: what decisions see, and the objects that writes start from.
///
/// A clone shares all structure. Only objects that our provider serves are in here, and pods only as decisions see
/// them.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub snapshot: Snapshot,
    pub pools: Table<NodePool>,
    pub claims: Table<NodeClaim>,
    pub nodes: Table<Node>,
    pub classes: Table<NodeClass>,
    pub attachments: Table<VolumeAttachment>,
    pub overlays: Table<NodeOverlay>,
    pub buffers: Table<CapacityBuffer>,
    pub pod_templates: Table<PodTemplate>,
    pub provisioners: Table<Stored<Provisioner>>,
    pub node_templates: Table<Stored<AwsNodeTemplate>>,
    pub machines: Table<Stored<Machine>>,
    /// The settings of the time of Provisioners: one ConfigMap at most.
    pub settings: Table<ConfigMap>,
    /// What no decision looks at, by the pods that the server knows.
    pub pod_notes: OrdMap<PodKey, Arc<PodNotes>>,
    /// The pods in the snapshot that exist for the sake of a buffer only.
    pub virtual_pods: OrdMap<ObjectKey, Arc<[PodKey]>>,
    /// Buffers that nobody has looked at yet: what they keep room for is not in the snapshot.
    pub unresolved_buffers: OrdSet<ObjectKey>,
    /// Fields that could not be read, by the objects that have any. What stands in their place is in `api::convert`.
    pub unread: OrdMap<(Kind, ObjectKey), Arc<[FieldError]>>,
    /// Claims that no instance is known for. While there are any, capacity is on its way that no decision can see.
    pub unlaunched: OrdSet<ClaimName>,
    /// Every watched kind has been listed once.
    pub synced: bool,
    pub(crate) claims_by_instance: OrdMap<ProviderId, OrdSet<ClaimName>>,
    pub(crate) nodes_by_instance: OrdMap<ProviderId, OrdSet<NodeName>>,
    pub(crate) attachments_by_node: OrdMap<NodeName, OrdSet<ObjectKey>>,
}

impl View {
    /// Nodes that say they run on this instance. There should be one.
    pub fn nodes_of(&self, instance: &str) -> Vec<&Arc<Node>> {
        let names = self.nodes_by_instance.get(instance);
        names
            .into_iter()
            .flatten()
            .filter_map(|name| self.nodes.named(name.as_str()))
            .collect()
    }

    /// Claims that this instance was launched for. There should be one.
    pub fn claims_of(&self, instance: &str) -> Vec<&Arc<NodeClaim>> {
        let names = self.claims_by_instance.get(instance);
        names
            .into_iter()
            .flatten()
            .filter_map(|name| self.claims.named(name.as_str()))
            .collect()
    }

    /// Volumes that are attached to a node.
    pub fn attachments_to(&self, node: &str) -> Vec<&Arc<VolumeAttachment>> {
        let keys = self.attachments_by_node.get(node);
        keys.into_iter()
            .flatten()
            .filter_map(|key| self.attachments.get(key))
            .collect()
    }

    pub fn class(&self, reference: &NodeClassReference) -> Option<&Arc<NodeClass>> {
        let scope = format!("{}/{}", reference.group, reference.kind);
        self.classes.get(&ObjectKey::new(&scope, &reference.name))
    }
}
