//! What a snapshot is made of: what decisions depend on, and what tells how the controller is set and fares.

use crate::reader::Kind;

/// The item that tells about the file itself. Those who read objects pass over it.
pub const OWN_VERSION: &str = "cli.karpenter.sh/v1";
pub const OWN_KIND: &str = "Snapshot";

const fn core(kind: &'static str, plural: &'static str) -> Kind {
    Kind::new("", "v1", kind, plural)
}

const fn of(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind::new(group, "v1", kind, plural)
}

pub const ALL: [Kind; 31] = [
    of(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
    of("karpenter.sh", "NodePool", "nodepools"),
    of("karpenter.sh", "NodeClaim", "nodeclaims"),
    Kind::new("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays"),
    of("karpenter.k8s.aws", "EC2NodeClass", "ec2nodeclasses"),
    Kind::new("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses"),
    Kind::new("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers"),
    core("PodTemplate", "podtemplates"),
    core("Namespace", "namespaces"),
    core("Node", "nodes"),
    core("Pod", "pods"),
    core("PersistentVolume", "persistentvolumes"),
    core("PersistentVolumeClaim", "persistentvolumeclaims"),
    core("Service", "services"),
    core("ReplicationController", "replicationcontrollers"),
    of("apps", "DaemonSet", "daemonsets"),
    of("apps", "ReplicaSet", "replicasets"),
    of("apps", "StatefulSet", "statefulsets"),
    of("apps", "Deployment", "deployments").labelled("app.kubernetes.io/name=karpenter"),
    of("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    of("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
    of("storage.k8s.io", "StorageClass", "storageclasses"),
    of("storage.k8s.io", "CSINode", "csinodes"),
    of("storage.k8s.io", "VolumeAttachment", "volumeattachments"),
    of("resource.k8s.io", "ResourceClaim", "resourceclaims"),
    of("resource.k8s.io", "ResourceSlice", "resourceslices"),
    of("resource.k8s.io", "DeviceClass", "deviceclasses"),
    of("coordination.k8s.io", "Lease", "leases").selected("metadata.name=karpenter-leader-election"),
    core("Event", "events").selected("source=karpenter"),
    core("Event", "events").selected("involvedObject.kind=Node"),
    core("Event", "events").selected("reason=FailedScheduling"),
];
