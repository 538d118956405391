//! The kinds that every server has, as one table.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use super::{Gvk, ResourceType, Subresource};

const ALL: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const NO_COLLECTION_DELETE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE_ONLY: &[&str] = &["create"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];

/// One line of the table. `names` is "plural singular Kind" and then the short names.
struct Row {
    group: &'static str,
    version: &'static str,
    names: &'static str,
    namespaced: bool,
    categories: &'static [&'static str],
    verbs: &'static [&'static str],
    subresources: &'static [&'static str],
}

const fn row(group: &'static str, names: &'static str) -> Row {
    Row {
        group,
        version: "v1",
        names,
        namespaced: true,
        categories: &[],
        verbs: ALL,
        subresources: &[],
    }
}

impl Row {
    const fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }
    const fn in_all(mut self) -> Self {
        self.categories = &["all"];
        self
    }
    const fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.verbs = verbs;
        self
    }
    const fn with(mut self, subresources: &'static [&'static str]) -> Self {
        self.subresources = subresources;
        self
    }
}

const APPS: &str = "apps";
const STORAGE: &str = "storage.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";
const AUTHN: &str = "authentication.k8s.io";

/// The order is the order of discovery: groups as they come, resources by plural name within a group.
const ROWS: &[Row] = &[
    row("", "configmaps configmap ConfigMap cm"),
    row("", "endpoints endpoints Endpoints ep"),
    row("", "events event Event ev"),
    row("", "limitranges limitrange LimitRange limits"),
    row("", "namespaces namespace Namespace ns")
        .cluster()
        .verbs(NO_COLLECTION_DELETE)
        .with(&["finalize", "status"]),
    row("", "nodes node Node no").cluster().with(&["status"]),
    row(
        "",
        "persistentvolumeclaims persistentvolumeclaim PersistentVolumeClaim pvc",
    )
    .with(&["status"]),
    row("", "persistentvolumes persistentvolume PersistentVolume pv")
        .cluster()
        .with(&["status"]),
    row("", "pods pod Pod po").in_all().with(&[
        "binding",
        "ephemeralcontainers",
        "eviction",
        "log",
        "resize",
        "status",
    ]),
    row("", "podtemplates podtemplate PodTemplate"),
    row(
        "",
        "replicationcontrollers replicationcontroller ReplicationController rc",
    )
    .in_all()
    .with(&["scale", "status"]),
    row("", "resourcequotas resourcequota ResourceQuota quota").with(&["status"]),
    row("", "secrets secret Secret"),
    row("", "serviceaccounts serviceaccount ServiceAccount sa").with(&["token"]),
    row("", "services service Service svc").in_all().with(&["status"]),
    row("events.k8s.io", "events event Event ev"),
    row(AUTHN, "selfsubjectreviews selfsubjectreview SelfSubjectReview")
        .cluster()
        .verbs(CREATE_ONLY),
    row(AUTHN, "tokenreviews tokenreview TokenReview")
        .cluster()
        .verbs(CREATE_ONLY),
    row(
        AUTHZ,
        "localsubjectaccessreviews localsubjectaccessreview LocalSubjectAccessReview",
    )
    .verbs(CREATE_ONLY),
    row(
        AUTHZ,
        "selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview",
    )
    .cluster()
    .verbs(CREATE_ONLY),
    row(
        AUTHZ,
        "selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview",
    )
    .cluster()
    .verbs(CREATE_ONLY),
    row(AUTHZ, "subjectaccessreviews subjectaccessreview SubjectAccessReview")
        .cluster()
        .verbs(CREATE_ONLY),
    row(APPS, "controllerrevisions controllerrevision ControllerRevision"),
    row(APPS, "daemonsets daemonset DaemonSet ds")
        .in_all()
        .with(&["status"]),
    row(APPS, "deployments deployment Deployment deploy")
        .in_all()
        .with(&["scale", "status"]),
    row(APPS, "replicasets replicaset ReplicaSet rs")
        .in_all()
        .with(&["scale", "status"]),
    row(APPS, "statefulsets statefulset StatefulSet sts")
        .in_all()
        .with(&["scale", "status"]),
    row("batch", "cronjobs cronjob CronJob cj").in_all().with(&["status"]),
    row("batch", "jobs job Job").in_all().with(&["status"]),
    row("networking.k8s.io", "ingresses ingress Ingress ing").with(&["status"]),
    row(
        "networking.k8s.io",
        "networkpolicies networkpolicy NetworkPolicy netpol",
    ),
    row(
        "policy",
        "poddisruptionbudgets poddisruptionbudget PodDisruptionBudget pdb",
    )
    .with(&["status"]),
    row(RBAC, "clusterrolebindings clusterrolebinding ClusterRoleBinding").cluster(),
    row(RBAC, "clusterroles clusterrole ClusterRole").cluster(),
    row(RBAC, "rolebindings rolebinding RoleBinding"),
    row(RBAC, "roles role Role"),
    row(STORAGE, "csidrivers csidriver CSIDriver").cluster(),
    row(STORAGE, "csinodes csinode CSINode").cluster(),
    row(STORAGE, "csistoragecapacities csistoragecapacity CSIStorageCapacity"),
    row(STORAGE, "storageclasses storageclass StorageClass sc").cluster(),
    row(STORAGE, "volumeattachments volumeattachment VolumeAttachment")
        .cluster()
        .with(&["status"]),
    row(
        STORAGE,
        "volumeattributesclasses volumeattributesclass VolumeAttributesClass vac",
    )
    .cluster(),
    row(
        "apiextensions.k8s.io",
        "customresourcedefinitions customresourcedefinition CustomResourceDefinition crd crds",
    )
    .cluster()
    .with(&["status"]),
    row("scheduling.k8s.io", "priorityclasses priorityclass PriorityClass pc").cluster(),
    row("coordination.k8s.io", "leases lease Lease"),
    row("node.k8s.io", "runtimeclasses runtimeclass RuntimeClass").cluster(),
    row("discovery.k8s.io", "endpointslices endpointslice EndpointSlice"),
    row(RESOURCE, "deviceclasses deviceclass DeviceClass").cluster(),
    row(RESOURCE, "resourceclaims resourceclaim ResourceClaim").with(&["status"]),
    row(
        RESOURCE,
        "resourceclaimtemplates resourceclaimtemplate ResourceClaimTemplate",
    ),
    row(RESOURCE, "resourceslices resourceslice ResourceSlice").cluster(),
];

fn resource_type(row: &Row) -> ResourceType {
    let mut names = row.names.split(' ').map(str::to_owned);
    let mut next = || names.next().expect("every row names plural, singular and kind");
    let (plural, singular, kind) = (next(), next(), next());
    let own = Gvk::new(row.group, row.version, &kind);
    let collection = ResourceType::collection_name(row.group, &plural);
    ResourceType {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        plural,
        singular,
        list_kind: format!("{kind}List"),
        kind,
        namespaced: row.namespaced,
        short_names: names.collect(),
        categories: row.categories.iter().map(ToString::to_string).collect(),
        verbs: row.verbs.to_vec(),
        subresources: row.subresources.iter().map(|name| subresource(name, &own)).collect(),
        collection,
        types: OnceLock::new(),
        custom: None,
    }
}

fn subresource(name: &'static str, own: &Gvk) -> Subresource {
    let (gvk, verbs): (Gvk, &[&'static str]) = match name {
        "binding" => (Gvk::new("", "v1", "Binding"), CREATE_ONLY),
        "eviction" => (Gvk::new("policy", "v1", "Eviction"), CREATE_ONLY),
        "scale" => (Gvk::new("autoscaling", "v1", "Scale"), READ_WRITE),
        "token" => (Gvk::new("authentication.k8s.io", "v1", "TokenRequest"), CREATE_ONLY),
        "log" => (own.clone(), &["get"]),
        "finalize" => (own.clone(), &["update"]),
        _ => (own.clone(), READ_WRITE),
    };
    Subresource {
        name,
        gvk,
        verbs: verbs.to_vec(),
    }
}

static TYPES: LazyLock<Vec<Arc<ResourceType>>> =
    LazyLock::new(|| ROWS.iter().map(|row| Arc::new(resource_type(row))).collect());

type Key = (&'static str, &'static str, &'static str);

static BY_PATH: LazyLock<BTreeMap<Key, &'static Arc<ResourceType>>> = LazyLock::new(|| {
    TYPES
        .iter()
        .map(|ty| {
            let key = (ty.group.as_str(), ty.version.as_str(), ty.plural.as_str());
            (key, ty)
        })
        .collect()
});

/// Of the two groups that have events, the core group is the one in whose form they are stored.
static BY_COLLECTION: LazyLock<BTreeMap<&'static str, &'static Arc<ResourceType>>> = LazyLock::new(|| {
    TYPES
        .iter()
        .filter(|ty| ty.group != "events.k8s.io")
        .map(|ty| (&*ty.collection, ty))
        .collect()
});

pub(super) fn of_collection(collection: &str) -> Option<&'static Arc<ResourceType>> {
    BY_COLLECTION.get(collection).copied()
}

/// The built-in types in discovery order.
pub fn builtin_types() -> &'static [Arc<ResourceType>] {
    &TYPES
}

pub(super) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Arc<ResourceType>> {
    // The lookup shortens the table's lifetime to that of the request, not the other way round.
    let table: &BTreeMap<(&str, &str, &str), &'static Arc<ResourceType>> = &BY_PATH;
    table.get(&(group, version, plural)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_path() {
        for ty in builtin_types() {
            let found = find(&ty.group, &ty.version, &ty.plural).expect("the row is indexed");
            assert_eq!(found.kind, ty.kind);
        }
        assert!(find("", "v1", "bindings").is_none());
    }

    #[test]
    fn short_names_follow_the_kind() {
        let pods = find("", "v1", "pods").expect("pods are built in");
        assert_eq!((pods.singular.as_str(), pods.kind.as_str()), ("pod", "Pod"));
        assert_eq!(pods.short_names, ["po"]);
        assert_eq!(
            pods.subresource("eviction").map(|sub| sub.gvk.api_version()),
            Some("policy/v1".to_owned())
        );
    }
}
