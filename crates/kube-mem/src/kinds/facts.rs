//! Yes or no, kind by kind: the facts in which the real server's resources differ.

use crate::registry::ResourceType;

/// Kinds whose `metadata.generation` is counted.
pub(crate) fn has_generation(ty: &ResourceType) -> bool {
    ty.custom.is_some()
        || matches!(
            (ty.group.as_str(), ty.kind.as_str()),
            ("", "Pod" | "PodTemplate" | "ReplicationController")
                | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
                | (
                    "batch" | "networking.k8s.io" | "policy" | "apiextensions.k8s.io" | "discovery.k8s.io",
                    _
                )
                | ("scheduling.k8s.io", "PriorityClass")
                | ("resource.k8s.io", "ResourceSlice" | "DeviceClass")
        )
}

/// Kinds whose status is written by the status subresource alone.
pub(crate) fn has_status(ty: &ResourceType) -> bool {
    ty.subresource("status").is_some()
}

/// Kinds that forget the status of a new object. A kubelet registers its node with a status, so nodes do not.
pub(crate) fn resets_status(ty: &ResourceType) -> bool {
    has_status(ty) && !ty.is("", "nodes")
}

/// Kinds that a PUT may create.
pub(crate) fn creates_on_update(ty: &ResourceType) -> bool {
    matches!(
        (ty.group.as_str(), ty.kind.as_str()),
        ("node.k8s.io", "RuntimeClass")
            | ("rbac.authorization.k8s.io", _)
            | ("coordination.k8s.io", "Lease")
            | ("" | "events.k8s.io", "Event")
            | ("", "LimitRange" | "Service" | "Endpoints")
    )
}

/// Kinds that may be replaced without saying which version is meant.
pub(crate) fn updates_unconditionally(ty: &ResourceType) -> bool {
    ty.custom.is_none()
        && !matches!(
            (ty.group.as_str(), ty.kind.as_str()),
            (
                "node.k8s.io" | "policy" | "coordination.k8s.io" | "apiextensions.k8s.io",
                _
            ) | (
                "storage.k8s.io",
                "CSIDriver" | "CSIStorageCapacity" | "VolumeAttachment" | "CSINode"
            )
        )
}

/// Where the real server keeps an object in etcd; it shows in a few messages.
pub(crate) fn storage_key(ty: &ResourceType, namespace: &str, name: &str) -> String {
    let place = match (ty.group.as_str(), ty.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        (group, plural) if ty.custom.is_some() || group == "apiextensions.k8s.io" => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{place}/{}", crate::store::key(namespace, name))
}

/// Kinds that go by way of a grace period.
pub(crate) fn deletes_gracefully(ty: &ResourceType) -> bool {
    ty.is("", "pods")
}

/// Everything but events can own something.
pub(crate) fn has_dependents(ty: &ResourceType) -> bool {
    ty.kind != "Event" || ty.custom.is_some()
}

/// Old kinds whose dependents stay unless the deleter says otherwise.
pub(crate) fn orphans_by_default(ty: &ResourceType) -> bool {
    ty.is("", "replicationcontrollers") || ty.is("batch", "jobs")
}

/// Kinds whose delete answers with the object instead of a status.
pub(crate) fn returns_deleted_object(ty: &ResourceType) -> bool {
    ty.custom.is_none()
        && matches!(
            (ty.group.as_str(), ty.kind.as_str()),
            ("resource.k8s.io", _)
                | (
                    "storage.k8s.io",
                    "CSIDriver" | "StorageClass" | "VolumeAttachment" | "CSINode" | "VolumeAttributesClass"
                )
                | (
                    "",
                    "ResourceQuota"
                        | "PersistentVolume"
                        | "PersistentVolumeClaim"
                        | "ServiceAccount"
                        | "Namespace"
                        | "Pod"
                        | "Service"
                        | "PodTemplate"
                )
        )
}
