//! Objects into a snapshot, by the same conversion as in the controller.
//!
//! Files have not been through an API server: namespaces, priorities and conditions that it would have filled in are
//! filled in here.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    FieldError,
    aws::EC2NodeClass,
    conditions::{self, HasConditions},
    convert,
    v1::{NodePool, NodePoolStatus},
    v1alpha1::NodeOverlay,
};
use jiff::Timestamp;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::ResourceExt;
use model::{PodKey, Snapshot, Vocabulary, overlay::Overlay};
use state::{Index, Indexed, Kind, Served};

use super::{Sellers, document::Document, objects::Objects, place::BadInput};

/// What a command knows of a cluster.
pub struct Cluster {
    pub snapshot: Snapshot,
    /// Not applied: that is for whoever knows whether overlays are in force.
    pub overlays: Vec<Overlay>,
    /// Overlays that would not be in force, and why.
    pub invalid_overlays: BTreeMap<String, String>,
    /// All overlays as they are written.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only a region is asked with them"))]
    pub written_overlays: Vec<Arc<NodeOverlay>>,
    /// The node classes of EC2 that are among the objects.
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only a region is asked with them"))]
    pub ec2_classes: Vec<Result<EC2NodeClass, BadInput>>,
    /// Pods that ask for something that cannot be planned for, and what it is.
    pub unplannable: BTreeMap<PodKey, String>,
    /// The objects are files: no scheduler has judged the pods.
    pub from_files: bool,
    /// What the user should know about the input.
    pub notes: Vec<String>,
}

/// Puts the documents of files together. What cannot be read is an error that leads to its place.
pub fn files(
    documents: &[Document<'_>],
    namespace: &str,
    vocabulary: impl FnOnce(Sellers) -> Arc<Vocabulary>,
) -> Result<Cluster, BadInput> {
    let is_pod = |document: &&Document<'_>| document.gk() == ("", "Pod");
    let mut objects = Objects::default();
    for document in documents.iter().filter(|document| !is_pod(document)) {
        objects.take(document)?;
    }
    let mut notes = Vec::new();
    let vocabulary = vocabulary(objects.sellers());
    assume_ready(&mut objects, &vocabulary, &mut notes);
    let skipped: Vec<String> = objects
        .skipped()
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !skipped.is_empty() {
        notes.push(format!(
            "skipped objects of kinds that do not matter here: {}",
            skipped.join(", ")
        ));
    }

    let mut loading = Loading::new(objects, namespace, vocabulary);
    for document in documents.iter().filter(is_pod) {
        loading.pod(document.decode()?);
    }
    let find = |kind: Kind, key: &PodKey| documents.iter().rposition(|document| is(document, kind, key));
    let unread = loading.unread();
    // The first in the order of the input, so that people can work through their files from the top.
    let first = unread
        .iter()
        .filter_map(|(kind, key, error)| Some((find(*kind, key)?, error)));
    if let Some((index, error)) = first.min_by_key(|(index, _)| *index) {
        return Err(documents[index].complain(error.field.clone(), &error.problem));
    }
    let mut cluster = loading.finish();
    cluster.from_files = true;
    cluster.notes = notes;
    Ok(cluster)
}

/// Whether the document is this object.
fn is(document: &Document<'_>, kind: Kind, key: &PodKey) -> bool {
    let (word, namespaced) = match kind {
        Kind::NodePool => ("NodePool", false),
        Kind::NodeClaim => ("NodeClaim", false),
        Kind::Node => ("Node", false),
        Kind::Pod => ("Pod", true),
        Kind::DaemonSet => ("DaemonSet", true),
        Kind::DisruptionBudget => ("PodDisruptionBudget", true),
        Kind::Namespace => ("Namespace", false),
        Kind::VolumeAttachment => ("VolumeAttachment", false),
        Kind::VolumeClaim => ("PersistentVolumeClaim", true),
        Kind::Volume => ("PersistentVolume", false),
        Kind::StorageClass => ("StorageClass", false),
        Kind::AttachLimits => ("CSINode", false),
        Kind::CapacityBuffer => ("CapacityBuffer", true),
        Kind::PodTemplate => ("PodTemplate", true),
        Kind::NodeOverlay => ("NodeOverlay", false),
        Kind::Provisioner => ("Provisioner", false),
        Kind::NodeTemplate => ("AWSNodeTemplate", false),
        Kind::Machine => ("Machine", false),
        Kind::GlobalSettings => ("ConfigMap", true),
        Kind::ResourceClaim => ("ResourceClaim", true),
        Kind::ResourceSlice => ("ResourceSlice", false),
        Kind::DeviceClass => ("DeviceClass", false),
        Kind::Service => ("Service", true),
        Kind::ReplicaSet => ("ReplicaSet", true),
        Kind::StatefulSet => ("StatefulSet", true),
        Kind::ReplicationController => ("ReplicationController", true),
        Kind::NodeClass => return false,
    };
    document.kind == word
        && *document.name == *key.name
        && (!namespaced || document.namespace.as_deref() == Some(&*key.namespace))
}

/// A pool that no controller has looked at yet is taken for ready, unless its node class says that it is not, or it breaks
/// a rule that the controller would hold against it.
fn assume_ready(objects: &mut Objects, vocabulary: &Vocabulary, notes: &mut Vec<String>) {
    let mut pools = std::mem::take(&mut objects.pools);
    for pool in &mut pools {
        let class = &pool.spec.template.spec.node_class_ref;
        let found = objects.class(class);
        if found.is_none() {
            let note = format!(
                "node class {} {} is not among the objects and counts as ready",
                class.kind, class.name
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if conditions::find(pool.conditions(), conditions::READY).is_some() {
            continue;
        }
        let violations = api::validate::node_pool(pool, vocabulary);
        if !violations.is_empty() {
            let why = api::joined(&violations);
            notes.push(format!("node pool {} is not ready: {why}", pool.name_any()));
        } else if found.is_none_or(|class| class.ready != Some(false)) {
            set_ready(pool);
        } else {
            notes.push(format!(
                "node pool {} is not ready: its node class is not",
                pool.name_any()
            ));
        }
    }
    objects.pools = pools;
}

fn set_ready(pool: &mut NodePool) {
    let status = pool.status.get_or_insert_with(NodePoolStatus::default);
    status.conditions.get_or_insert_default().push(Condition {
        type_: conditions::READY.to_owned(),
        status: conditions::TRUE.to_owned(),
        reason: "Assumed".to_owned(),
        message: String::new(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: None,
    });
}

/// An index that is being filled.
pub struct Loading {
    index: Index,
    namespace: String,
    priorities: BTreeMap<String, i32>,
    default_priority: Option<i32>,
    overlays: Vec<Overlay>,
    invalid_overlays: BTreeMap<String, String>,
    written_overlays: Vec<Arc<NodeOverlay>>,
    ec2_classes: Vec<Result<EC2NodeClass, BadInput>>,
}

impl Loading {
    pub fn new(objects: Objects, namespace: &str, vocabulary: Arc<Vocabulary>) -> Self {
        let served = Served::new(objects.class_kinds());
        let classes = &objects.priority_classes;
        let default = classes.iter().find(|class| class.global_default == Some(true));
        let mut loading = Self {
            index: Index::new(vocabulary.clone(), served),
            namespace: namespace.to_owned(),
            default_priority: default.and_then(|class| class.value),
            priorities: classes
                .iter()
                .map(|class| (class.name_any(), class.value.unwrap_or_default()))
                .collect(),
            overlays: Vec::new(),
            invalid_overlays: BTreeMap::new(),
            written_overlays: objects.overlays.into_iter().map(Arc::new).collect(),
            ec2_classes: objects.ec2_classes,
        };
        for overlay in &loading.written_overlays {
            let mut parsed = convert::overlay(overlay);
            parsed.errors.extend(api::validate::node_overlay(overlay, &vocabulary));
            match parsed.strict() {
                Ok(overlay) => loading.overlays.push(overlay),
                Err(errors) => {
                    loading
                        .invalid_overlays
                        .insert(overlay.name_any(), api::joined(&errors));
                }
            }
        }
        loading.cluster_wide(objects.namespaces);
        loading.cluster_wide(objects.pools);
        loading.cluster_wide(objects.claims);
        loading.cluster_wide(objects.nodes);
        loading.cluster_wide(objects.volumes);
        loading.cluster_wide(objects.storage_classes);
        loading.cluster_wide(objects.csi_nodes);
        loading.cluster_wide(objects.attachments);
        loading.cluster_wide(objects.resource_slices);
        loading.cluster_wide(objects.device_classes);
        loading.namespaced(objects.daemon_sets);
        loading.namespaced(objects.budgets);
        loading.namespaced(objects.volume_claims);
        loading.namespaced(objects.resource_claims);
        loading.namespaced(objects.services);
        loading.namespaced(objects.replica_sets);
        loading.namespaced(objects.stateful_sets);
        loading.namespaced(objects.replication_controllers);
        loading
    }

    fn cluster_wide<K: Indexed<DynamicType = ()>>(&self, objects: Vec<K>) {
        for mut object in objects {
            object.meta_mut().namespace = None;
            self.index.load(object);
        }
    }

    fn namespaced<K>(&self, objects: Vec<K>)
    where
        K: Indexed<DynamicType = ()> + k8s_openapi::Resource<Scope = NamespaceResourceScope>,
    {
        for mut object in objects {
            object
                .meta_mut()
                .namespace
                .get_or_insert_with(|| self.namespace.clone());
            self.index.load(object);
        }
    }

    pub fn pod(&mut self, mut pod: Pod) {
        let namespace = pod.metadata.namespace.get_or_insert_with(|| self.namespace.clone());
        // Only the server gives out UIDs; until then the name tells pods apart.
        if pod.metadata.uid.is_none() {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            pod.metadata.uid = Some(format!("{namespace}/{name}"));
        }
        if let Some(spec) = pod.spec.as_mut().filter(|spec| spec.priority.is_none()) {
            spec.priority = match spec.priority_class_name.as_deref() {
                Some("") | None => self.default_priority,
                Some(class) => self.priorities.get(class).copied(),
            };
        }
        self.index.load(pod);
    }

    /// What could not be read, except for demands of pods that are merely of a kind that nobody can plan for.
    pub fn unread(&self) -> Vec<(Kind, PodKey, FieldError)> {
        let view = self.index.view();
        let mut unread = Vec::new();
        for ((kind, key), errors) in &view.unread {
            let fatal = errors
                .iter()
                .filter(|error| !(*kind == Kind::Pod && is_beyond_plans(error)));
            unread.extend(fatal.map(|error| (*kind, key.clone(), error.clone())));
        }
        unread
    }

    pub fn finish(self) -> Cluster {
        let view = self.index.view();
        let pods = view.unread.iter().filter(|((kind, _), _)| *kind == Kind::Pod);
        let unplannable = pods
            .filter_map(|((_, key), errors)| {
                let error = errors.iter().find(|error| is_beyond_plans(error))?;
                Some((key.clone(), error.to_string()))
            })
            .collect();
        Cluster {
            snapshot: view.snapshot.clone(),
            overlays: self.overlays,
            invalid_overlays: self.invalid_overlays,
            written_overlays: self.written_overlays,
            ec2_classes: self.ec2_classes,
            unplannable,
            from_files: false,
            notes: Vec::new(),
        }
    }
}

/// Valid for Kubernetes, but a node that does not exist yet has no fields to match.
fn is_beyond_plans(error: &FieldError) -> bool {
    error.field.ends_with(".matchFields")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_get_what_the_server_would_have_given_them() {
        let class = |name: &str, value: i32, default: bool| {
            let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
            serde_json::from_value(class).expect("a priority class")
        };
        let objects = Objects {
            priority_classes: vec![class("high", 1000, false), class("usual", 5, true)],
            ..Objects::default()
        };
        let mut loading = Loading::new(objects, "shop", Arc::default());
        for (name, class, priority) in [
            ("a", Some("high"), None),
            ("b", None, None),
            ("c", Some("high"), Some(7)),
        ] {
            let spec = json!({"containers": [], "priorityClassName": class, "priority": priority});
            let pod = json!({"metadata": {"name": name}, "spec": spec});
            loading.pod(serde_json::from_value(pod).expect("a pod"));
        }
        let snapshot = loading.finish().snapshot;
        let pods: Vec<_> = snapshot
            .pods
            .values()
            .map(|pod| (pod.key.to_string(), pod.uid.to_string(), pod.shape.priority))
            .collect();
        let expected = [("shop/a", 1000), ("shop/b", 5), ("shop/c", 7)];
        assert_eq!(
            pods,
            expected.map(|(key, priority)| (key.to_owned(), key.to_owned(), priority))
        );
    }
}
