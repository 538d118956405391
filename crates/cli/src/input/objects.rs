//! The objects that decisions depend on, by kind.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    aws::EC2NodeClass,
    labels::AWS_DOMAIN,
    v1::{NodeClaim, NodeClassReference, NodePool},
    v1alpha1::NodeOverlay,
};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, ReplicaSet, StatefulSet},
        core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, ReplicationController, Service},
        policy::v1::PodDisruptionBudget,
        resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
        scheduling::v1::PriorityClass,
        storage::v1::{CSINode, StorageClass, VolumeAttachment},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use serde::Deserialize;

use super::{Sellers, document::Document, place::BadInput};

/// Everything but pods, of which there can be so many that they are not collected.
#[derive(Default)]
pub struct Objects {
    pub namespaces: Vec<Namespace>,
    pub nodes: Vec<Node>,
    pub claims: Vec<NodeClaim>,
    pub pools: Vec<NodePool>,
    pub overlays: Vec<NodeOverlay>,
    pub daemon_sets: Vec<DaemonSet>,
    pub budgets: Vec<PodDisruptionBudget>,
    pub priority_classes: Vec<PriorityClass>,
    pub volumes: Vec<PersistentVolume>,
    pub volume_claims: Vec<PersistentVolumeClaim>,
    pub storage_classes: Vec<StorageClass>,
    pub csi_nodes: Vec<CSINode>,
    pub attachments: Vec<VolumeAttachment>,
    pub resource_claims: Vec<ResourceClaim>,
    pub resource_slices: Vec<ResourceSlice>,
    pub device_classes: Vec<DeviceClass>,
    pub services: Vec<Service>,
    pub replica_sets: Vec<ReplicaSet>,
    pub stateful_sets: Vec<StatefulSet>,
    pub replication_controllers: Vec<ReplicationController>,
    /// Only some commands look into them, and only those complain.
    pub ec2_classes: Vec<Result<EC2NodeClass, BadInput>>,
    /// Objects of kinds that are not known here; node classes are among them.
    pub others: Vec<Other>,
}

/// An object of which only its name matters, and whether it says that it is ready.
pub struct Other {
    pub group: String,
    pub kind: String,
    pub name: String,
    pub ready: Option<bool>,
}

impl Objects {
    /// Reads a document that is not a pod.
    pub fn take(&mut self, document: &Document<'_>) -> Result<(), BadInput> {
        match document.gk() {
            ("", "Namespace") => self.namespaces.push(document.decode()?),
            ("", "Node") => self.nodes.push(document.decode()?),
            ("karpenter.sh", "NodeClaim") => self.claims.push(of_version("karpenter.sh/v1", document)?),
            ("karpenter.sh", "NodePool") => self.pools.push(of_version("karpenter.sh/v1", document)?),
            ("karpenter.sh", "NodeOverlay") => self.overlays.push(of_version("karpenter.sh/v1alpha1", document)?),
            ("apps", "DaemonSet") => self.daemon_sets.push(document.decode()?),
            ("policy", "PodDisruptionBudget") => self.budgets.push(document.decode()?),
            ("scheduling.k8s.io", "PriorityClass") => self.priority_classes.push(document.decode()?),
            ("", "PersistentVolume") => self.volumes.push(document.decode()?),
            ("", "PersistentVolumeClaim") => self.volume_claims.push(document.decode()?),
            ("storage.k8s.io", "StorageClass") => self.storage_classes.push(document.decode()?),
            ("storage.k8s.io", "CSINode") => self.csi_nodes.push(document.decode()?),
            ("storage.k8s.io", "VolumeAttachment") => self.attachments.push(document.decode()?),
            ("resource.k8s.io", "ResourceClaim") => self.resource_claims.push(document.decode()?),
            ("resource.k8s.io", "ResourceSlice") => self.resource_slices.push(document.decode()?),
            ("resource.k8s.io", "DeviceClass") => self.device_classes.push(document.decode()?),
            ("", "Service") => self.services.push(document.decode()?),
            ("apps", "ReplicaSet") => self.replica_sets.push(document.decode()?),
            ("apps", "StatefulSet") => self.stateful_sets.push(document.decode()?),
            ("", "ReplicationController") => self.replication_controllers.push(document.decode()?),
            // Pods name their owners and the claims made for them, and nothing else about these matters.
            ("apps", "Deployment") | ("batch", "Job") | ("resource.k8s.io", "ResourceClaimTemplate") => {}
            // What a snapshot holds beside them, for people.
            ("cli.karpenter.sh" | "apiextensions.k8s.io" | "coordination.k8s.io", _) | ("", "Event") => {}
            (group, kind) => {
                if (group, kind) == (AWS_DOMAIN, "EC2NodeClass") {
                    self.ec2_classes.push(of_version("karpenter.k8s.aws/v1", document));
                }
                self.others.push(Other {
                    group: group.to_owned(),
                    kind: kind.to_owned(),
                    name: document.name.to_string(),
                    ready: ready(document),
                });
            }
        }
        Ok(())
    }

    /// Group and kind of every node class that pools and claims refer to.
    pub fn class_kinds(&self) -> BTreeSet<(String, String)> {
        let of_pools = self.pools.iter().map(|pool| &pool.spec.template.spec.node_class_ref);
        let of_claims = self.claims.iter().map(|claim| &claim.spec.node_class_ref);
        of_pools
            .chain(of_claims)
            .map(|class| (class.group.clone(), class.kind.clone()))
            .collect()
    }

    /// Whose machines the pools ask for.
    pub fn sellers(&self) -> Sellers {
        let mut classes = self.pools.iter().map(|pool| &pool.spec.template.spec.node_class_ref);
        match classes.any(|class| class.group == AWS_DOMAIN) {
            true => Sellers::Ec2,
            false => Sellers::Others,
        }
    }

    pub fn class(&self, class: &NodeClassReference) -> Option<&Other> {
        self.others
            .iter()
            .find(|other| other.group == class.group && other.kind == class.kind && other.name == class.name)
    }

    /// How many objects of which kinds nobody looks at.
    pub fn skipped(&self) -> BTreeMap<&str, usize> {
        let classes = self.class_kinds();
        let mut skipped = BTreeMap::new();
        for other in &self.others {
            if !classes.contains(&(other.group.clone(), other.kind.clone())) {
                *skipped.entry(other.kind.as_str()).or_default() += 1;
            }
        }
        skipped
    }
}

/// An earlier version of a kind of ours has other fields; reading it as if it were this one would lose them.
fn of_version<T: serde::de::DeserializeOwned>(version: &str, document: &Document<'_>) -> Result<T, BadInput> {
    if document.api_version != version {
        let problem = format!("{:?} is not read, only {version} is", document.api_version);
        return Err(document.complain("apiVersion", problem));
    }
    document.decode()
}

fn ready(document: &Document<'_>) -> Option<bool> {
    #[derive(Deserialize)]
    struct WithStatus {
        status: Option<Status>,
    }
    #[derive(Deserialize)]
    struct Status {
        conditions: Option<Vec<Condition>>,
    }
    let read: WithStatus = document.decode().ok()?;
    let conditions = read.status?.conditions?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(ready.status == "True")
}
