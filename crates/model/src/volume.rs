//! Storage as decisions see it: what a pod's claims demand of its node.
//!
//! A claim leads to a volume once it is bound, and to a class before that; both may tie the pod to a part of the
//! cluster. What follows for one pod is resolved by crate `scheduler`.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{ids::PodKey, requirement::Requirement};

/// The CSI driver that serves volumes of Amazon's block store, also those of the plugin that was once built in.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// The names under which plugins that were once built into Kubernetes live on as CSI drivers.
const DRIVERS_OF_PLUGINS: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", EBS_DRIVER),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// The CSI driver that serves a provisioner; most are called the same.
pub fn driver_of_provisioner(provisioner: &str) -> &str {
    DRIVERS_OF_PLUGINS
        .iter()
        .find(|(plugin, _)| *plugin == provisioner)
        .map_or(provisioner, |(_, driver)| driver)
}

/// A persistent volume claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeClaim {
    pub key: PodKey,
    /// The volume that the claim names. It is the claim's own only when the binding is complete.
    pub volume: Option<Arc<str>>,
    /// `None` leaves the choice to the cluster; an empty name asks for no class at all.
    pub storage_class: Option<Arc<str>>,
    /// The cluster's volume controller has confirmed the binding.
    pub bind_completed: bool,
    pub deleting: bool,
    /// Its volume has gone and will not come back.
    pub lost: bool,
}

/// A persistent volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    pub name: Arc<str>,
    pub deleting: bool,
    /// `None` for volumes that no CSI driver attaches.
    pub driver: Option<Arc<str>>,
    /// A directory or disk of one machine: `local` or `hostPath`.
    pub machine_bound: bool,
    /// Alternatives: on nodes that meet all requirements of one of them the volume can be used. Empty when it can be
    /// used anywhere.
    pub node_terms: Vec<Vec<Requirement>>,
}

/// When volumes of a class come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingMode {
    /// With the claim, before any pod asks for it.
    Immediate,
    /// Where the first pod that uses the claim is put.
    WaitForFirstConsumer,
}

/// A storage class.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageClass {
    pub name: Arc<str>,
    /// The CSI driver that provisions, by its present name.
    pub driver: Arc<str>,
    pub binding: BindingMode,
    /// Alternatives, as in [`Volume::node_terms`].
    pub allowed_topologies: Vec<Vec<Requirement>>,
    /// Serves claims that name no class; the newest such class does.
    pub is_default: bool,
    pub created: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::driver_of_provisioner;

    #[test]
    fn provisioners_that_were_built_in_go_by_the_name_of_their_driver() {
        assert_eq!(driver_of_provisioner("kubernetes.io/aws-ebs"), "ebs.csi.aws.com");
        assert_eq!(driver_of_provisioner("kubernetes.io/gce-pd"), "pd.csi.storage.gke.io");
        assert_eq!(driver_of_provisioner("efs.csi.aws.com"), "efs.csi.aws.com");
        assert_eq!(
            driver_of_provisioner("kubernetes.io/no-provisioner"),
            "kubernetes.io/no-provisioner"
        );
    }
}
