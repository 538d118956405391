//! The kinds that the index takes in: what it keeps of each, and what follows from a change.

use std::{fmt::Debug, sync::Arc};

use api::{
    aws::EC2NodeClass,
    convert::{self, Parsed},
    v1::{NodeClaim, NodePool},
};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
    storage::v1::VolumeAttachment,
};
use kube::{
    Resource,
    core::{ApiResource, DynamicObject},
};
use model::{
    Labels, PoolName,
    snapshot::{Daemon, DisruptionBudget},
};
use serde::de::DeserializeOwned;

use crate::{Change, Event, NodeClass, ObjectKey, Table, daemons, index::Core, legacy, machines};

/// The closed list of what is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NodePool,
    NodeClaim,
    NodeClass,
    Node,
    Pod,
    DaemonSet,
    DisruptionBudget,
    Namespace,
    VolumeAttachment,
    VolumeClaim,
    ResourceClaim,
    ResourceSlice,
    DeviceClass,
    Volume,
    StorageClass,
    AttachLimits,
    CapacityBuffer,
    PodTemplate,
    NodeOverlay,
    Provisioner,
    NodeTemplate,
    Machine,
    GlobalSettings,
    Service,
    ReplicaSet,
    StatefulSet,
    ReplicationController,
}

/// A kind that the index takes in.
pub trait Indexed:
    Resource<DynamicType: Clone + Send + Sync> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
    const KIND: Kind;
    /// What is kept of an object.
    type Kept: Send + Sync + 'static;

    /// Tells kinds apart that share a table.
    fn scope(_: &Self::DynamicType) -> String {
        String::new()
    }

    /// `None` for an object that is not ours to know. Kinds that are kept as they are find out what cannot be read
    /// when they settle.
    #[doc(hidden)]
    fn keep(self, core: &mut Core) -> Option<Parsed<Self::Kept>>;
    #[doc(hidden)]
    fn table(core: &mut Core) -> &mut Table<Self::Kept>;
    /// Brings everything that follows from the object up to date.
    #[doc(hidden)]
    fn settle(core: &mut Core, change: &Change<Self::Kept>);
    /// `None` for kinds that only decisions look at: they are read in the next round, not acted upon.
    #[doc(hidden)]
    fn event(change: Change<Self::Kept>) -> Option<Event>;
}

/// Who wrote which field is of no use here and often half of an object's size.
pub(crate) fn slim<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

impl Indexed for NodePool {
    const KIND: Kind = Kind::NodePool;
    type Kept = NodePool;

    fn keep(self, core: &mut Core) -> Option<Parsed<NodePool>> {
        core.served.pool(&self).then(|| slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<NodePool> {
        &mut core.view_mut().pools
    }

    fn settle(core: &mut Core, change: &Change<NodePool>) {
        let name = PoolName::from(&*change.key.name);
        match &change.new {
            Some(pool) => {
                let parsed = convert::pool(pool);
                core.note_unread(Self::KIND, &change.key, parsed.errors);
                core.view_mut().snapshot.pools.insert(name, Arc::new(parsed.value));
            }
            None => {
                let snapshot = &mut core.view_mut().snapshot;
                snapshot.pools.remove(&name);
                snapshot.catalogs.remove(&name);
            }
        }
    }

    fn event(change: Change<NodePool>) -> Option<Event> {
        Some(Event::Pool(change))
    }
}

impl Indexed for NodeClaim {
    const KIND: Kind = Kind::NodeClaim;
    type Kept = NodeClaim;

    fn keep(self, core: &mut Core) -> Option<Parsed<NodeClaim>> {
        core.served.claim(&self).then(|| slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<NodeClaim> {
        &mut core.view_mut().claims
    }

    fn settle(core: &mut Core, change: &Change<NodeClaim>) {
        machines::claim_changed(core, change);
    }

    fn event(change: Change<NodeClaim>) -> Option<Event> {
        Some(Event::Claim(change))
    }
}

impl Indexed for Node {
    const KIND: Kind = Kind::Node;
    type Kept = Node;

    fn keep(self, _: &mut Core) -> Option<Parsed<Node>> {
        Some(slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<Node> {
        &mut core.view_mut().nodes
    }

    fn settle(core: &mut Core, change: &Change<Node>) {
        machines::node_changed(core, change);
    }

    fn event(change: Change<Node>) -> Option<Event> {
        Some(Event::Node(change))
    }
}

impl Indexed for Pod {
    const KIND: Kind = Kind::Pod;
    type Kept = model::Pod;

    fn keep(self, core: &mut Core) -> Option<Parsed<model::Pod>> {
        let mut pod = convert::pod(&self);
        if core.old_words {
            legacy::heed(&self, &mut pod.value);
        }
        core.shapes.share(&self, &mut pod.value);
        core.daemon_pods.note(&self, &pod.value);
        let notes = core.notes.take(&self);
        core.view_mut().pod_notes.insert(pod.value.key.clone(), notes);
        Some(pod)
    }

    fn table(core: &mut Core) -> &mut Table<model::Pod> {
        &mut core.pods
    }

    fn settle(core: &mut Core, change: &Change<model::Pod>) {
        let snapshot = &mut core.view_mut().snapshot;
        match &change.new {
            Some(pod) => snapshot.put_pod(pod.clone()),
            None => snapshot.remove_pod(&change.key),
        }
        if change.new.is_none() {
            core.view_mut().pod_notes.remove(&change.key);
        }
        if change.latest().is_some_and(|pod| pod.is_daemon()) || change.old.as_ref().is_some_and(|pod| pod.is_daemon())
        {
            daemons::pod_changed(core, change.old.as_deref(), change.new.as_deref());
        }
    }

    fn event(change: Change<model::Pod>) -> Option<Event> {
        Some(Event::Pod(change))
    }
}

impl Indexed for DaemonSet {
    const KIND: Kind = Kind::DaemonSet;
    type Kept = Daemon;

    fn keep(self, _: &mut Core) -> Option<Parsed<Daemon>> {
        Some(convert::daemon(&self))
    }

    fn table(core: &mut Core) -> &mut Table<Daemon> {
        &mut core.daemons
    }

    fn settle(core: &mut Core, change: &Change<Daemon>) {
        daemons::settle(core, &change.key);
    }

    fn event(_: Change<Daemon>) -> Option<Event> {
        None
    }
}

impl Indexed for PodDisruptionBudget {
    const KIND: Kind = Kind::DisruptionBudget;
    type Kept = DisruptionBudget;

    fn keep(self, _: &mut Core) -> Option<Parsed<DisruptionBudget>> {
        Some(convert::disruption_budget(&self))
    }

    fn table(core: &mut Core) -> &mut Table<DisruptionBudget> {
        &mut core.budgets
    }

    fn settle(core: &mut Core, change: &Change<DisruptionBudget>) {
        let budgets = &mut core.view_mut().snapshot.budgets;
        match &change.new {
            Some(budget) => budgets.insert(change.key.clone(), budget.clone()),
            None => budgets.remove(&change.key),
        };
    }

    fn event(change: Change<DisruptionBudget>) -> Option<Event> {
        Some(Event::Budget(change))
    }
}

impl Indexed for Namespace {
    const KIND: Kind = Kind::Namespace;
    type Kept = Labels;

    fn keep(self, _: &mut Core) -> Option<Parsed<Labels>> {
        let labels = self.metadata.labels.unwrap_or_default().into_iter();
        let labels: Labels = labels.map(|(key, value)| (key.into(), value.into())).collect();
        Some(labels.into())
    }

    fn table(core: &mut Core) -> &mut Table<Labels> {
        &mut core.namespaces
    }

    fn settle(core: &mut Core, change: &Change<Labels>) {
        let namespaces = &mut core.view_mut().snapshot.namespaces;
        match &change.new {
            Some(labels) => namespaces.insert(change.key.name.clone(), labels.clone()),
            None => namespaces.remove(&change.key.name),
        };
    }

    fn event(_: Change<Labels>) -> Option<Event> {
        None
    }
}

impl Indexed for VolumeAttachment {
    const KIND: Kind = Kind::VolumeAttachment;
    type Kept = VolumeAttachment;

    fn keep(self, _: &mut Core) -> Option<Parsed<VolumeAttachment>> {
        Some(slim(self).into())
    }

    fn table(core: &mut Core) -> &mut Table<VolumeAttachment> {
        &mut core.view_mut().attachments
    }

    fn settle(core: &mut Core, change: &Change<VolumeAttachment>) {
        let by_node = &mut core.view_mut().attachments_by_node;
        if let Some(gone) = &change.old {
            machines::unlink(by_node, &gone.spec.node_name.as_str().into(), &change.key);
        }
        if let Some(here) = &change.new {
            let node = here.spec.node_name.as_str().into();
            by_node.entry(node).or_default().insert(change.key.clone());
        }
    }

    fn event(change: Change<VolumeAttachment>) -> Option<Event> {
        Some(Event::Attachment(change))
    }
}

/// Node classes share one table; group and kind stand where a namespace would.
impl Indexed for DynamicObject {
    const KIND: Kind = Kind::NodeClass;
    type Kept = NodeClass;

    fn scope(resource: &ApiResource) -> String {
        format!("{}/{}", resource.group, resource.kind)
    }

    fn keep(self, _: &mut Core) -> Option<Parsed<NodeClass>> {
        Some(NodeClass::of(slim(self)).into())
    }

    fn table(core: &mut Core) -> &mut Table<NodeClass> {
        &mut core.view_mut().classes
    }

    fn settle(_: &mut Core, _: &Change<NodeClass>) {}

    fn event(change: Change<NodeClass>) -> Option<Event> {
        Some(Event::NodeClass(change))
    }
}

/// The class of the AWS provider, for those who write it. What is kept is the same as of the watched object.
impl Indexed for EC2NodeClass {
    const KIND: Kind = Kind::NodeClass;
    type Kept = NodeClass;

    fn scope((): &()) -> String {
        DynamicObject::scope(&ApiResource::erase::<Self>(&()))
    }

    fn keep(self, core: &mut Core) -> Option<Parsed<NodeClass>> {
        let written = serde_json::to_value(self).and_then(serde_json::from_value::<DynamicObject>);
        written.expect("an API object is plain data").keep(core)
    }

    fn table(core: &mut Core) -> &mut Table<NodeClass> {
        DynamicObject::table(core)
    }

    fn settle(core: &mut Core, change: &Change<NodeClass>) {
        DynamicObject::settle(core, change);
    }

    fn event(change: Change<NodeClass>) -> Option<Event> {
        DynamicObject::event(change)
    }
}

/// Whether a key lives in a scope; objects of namespaced kinds live in the one scope of their kind.
pub(crate) fn in_scope(key: &ObjectKey, scope: &str) -> bool {
    scope.is_empty() || &*key.namespace == scope
}
