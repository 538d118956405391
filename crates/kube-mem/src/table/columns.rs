//! The columns of the built-in kinds.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{core, pods, storage, workloads};

/// The columns of a kind as text, and what fills them.
pub(super) struct Printer {
    /// Names between bars. `+` marks a column of `-o wide`, `:integer` and the like a type other than string.
    pub columns: &'static str,
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// A row that stands for something finished says so.
    pub conditions: fn(&Value) -> Option<Value>,
}

/// The columns and cells of a built-in kind, if it has its own.
pub(super) fn printer(group: &str, kind: &str) -> Option<Printer> {
    let printer = |columns, cells| {
        Some(Printer {
            columns,
            cells,
            conditions: |_| None,
        })
    };
    match (group, kind) {
        ("", "Pod") => Some(Printer {
            columns: "Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+",
            cells: pods::pod,
            conditions: pods::conditions,
        }),
        ("", "PodTemplate") => printer("Name|Containers|Images|Pod Labels", workloads::pod_template),
        ("", "ReplicationController") => printer(
            "Name|Desired:integer|Current:integer|Ready:integer|Age|Containers+|Images+|Selector+",
            workloads::replication_controller,
        ),
        ("", "Service") => printer("Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+", core::service),
        ("", "Endpoints") => printer("Name|Endpoints|Age", core::endpoints),
        ("", "Node") => printer(
            "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+",
            core::node,
        ),
        ("" | "events.k8s.io", "Event") => printer(
            "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+",
            core::event,
        ),
        ("", "Namespace") => printer("Name|Status|Age", core::namespace),
        ("", "Secret") => printer("Name|Type|Data|Age", core::secret),
        ("", "ServiceAccount") => printer("Name|Age", core::name_and_age),
        ("", "ConfigMap") => printer("Name|Data|Age", core::config_map),
        ("", "ResourceQuota") => printer("Name|Request|Limit|Age", core::resource_quota),
        ("", "PersistentVolume") => printer(
            "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|\
             VolumeMode+",
            storage::persistent_volume,
        ),
        ("", "PersistentVolumeClaim") => printer(
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+",
            storage::persistent_volume_claim,
        ),
        ("apps", "Deployment") => printer(
            "Name|Ready|Up-to-date|Available|Age|Containers+|Images+|Selector+",
            workloads::deployment,
        ),
        ("apps", "ReplicaSet") => printer(
            "Name|Desired:integer|Current:integer|Ready:integer|Age|Containers+|Images+|Selector+",
            workloads::replica_set,
        ),
        ("apps", "StatefulSet") => printer("Name|Ready|Age|Containers+|Images+", workloads::stateful_set),
        ("apps", "DaemonSet") => printer(
            "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|\
             Containers+|Images+|Selector+",
            workloads::daemon_set,
        ),
        ("apps", "ControllerRevision") => printer("Name|Controller|Revision|Age", workloads::controller_revision),
        ("batch", "Job") => printer(
            "Name|Status|Completions|Duration|Age|Containers+|Images+|Selector+",
            workloads::job,
        ),
        ("batch", "CronJob") => printer(
            "Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|Containers+|Images+|Selector+",
            workloads::cron_job,
        ),
        ("policy", "PodDisruptionBudget") => printer(
            "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age",
            workloads::pod_disruption_budget,
        ),
        ("networking.k8s.io", "Ingress") => printer("Name|Class|Hosts|Address|Ports|Age", core::ingress),
        ("networking.k8s.io", "NetworkPolicy") => printer("Name|Pod-Selector|Age", core::network_policy),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            printer("Name|Role|Age|Users+|Groups+|ServiceAccounts+", core::role_binding)
        }
        ("coordination.k8s.io", "Lease") => printer("Name|Holder|Age", core::lease),
        ("discovery.k8s.io", "EndpointSlice") => printer("Name|AddressType|Ports|Endpoints|Age", core::endpoint_slice),
        ("scheduling.k8s.io", "PriorityClass") => printer(
            "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy",
            core::priority_class,
        ),
        ("node.k8s.io", "RuntimeClass") => printer("Name|Handler|Age", core::runtime_class),
        ("storage.k8s.io", "StorageClass") => printer(
            "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
            storage::storage_class,
        ),
        ("storage.k8s.io", "VolumeAttributesClass") => printer("Name|DriverName|Age", storage::volume_attributes_class),
        ("storage.k8s.io", "VolumeAttachment") => printer(
            "Name|Attacher:name|PV|Node|Attached:boolean|Age",
            storage::volume_attachment,
        ),
        ("storage.k8s.io", "CSINode") => printer("Name|Drivers:integer|Age", storage::csi_node),
        ("storage.k8s.io", "CSIDriver") => printer(
            "Name|AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|\
             RequiresRepublish:boolean|Modes|Age",
            storage::csi_driver,
        ),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            printer("Name|StorageClassName|Capacity", storage::csi_storage_capacity)
        }
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => printer("Name|Age", core::name_and_age),
        ("resource.k8s.io", "ResourceClaim") => printer("Name|State|Age", core::resource_claim),
        ("resource.k8s.io", "ResourceSlice") => printer("Name|Node|Driver|Pool|Age", core::resource_slice),
        _ => None,
    }
}

/// The head of a column.
pub(super) struct Column<'a> {
    name: &'a str,
    kind: &'a str,
    wide: bool,
}

pub(super) fn parse(columns: &str) -> impl Iterator<Item = Column<'_>> {
    columns.split('|').map(|column| {
        let (name, kind) = column.split_once(':').unwrap_or((column, "string"));
        let bare = name.trim_end_matches('+');
        Column {
            name: bare,
            kind,
            wide: bare.len() < name.len(),
        }
    })
}

impl Column<'_> {
    pub(super) fn definition(self) -> Value {
        // The cell that names the object is marked, and so is one that names another.
        let is_name = self.name == "Name" || self.kind == "name";
        let kind = if self.kind == "name" { "string" } else { self.kind };
        definition(
            self.name,
            kind,
            if is_name { "name" } else { "" },
            "",
            i64::from(self.wide),
        )
    }
}

pub(super) fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    let mut column = Map::new();
    column.insert("name".into(), name.into());
    column.insert("type".into(), kind.into());
    column.insert("format".into(), format.into());
    column.insert("description".into(), description.into());
    column.insert("priority".into(), json!(priority));
    Value::Object(column)
}
