//! The cluster at one moment, as an immutable value with cheap forks.
//!
//! The maps are persistent: a clone shares all structure, a change copies one path. So the index publishes a snapshot
//! for the price of a pointer, and a decision asks "what if" on a fork that is thrown away afterwards.

use std::{collections::BTreeMap, sync::Arc};

use imbl::OrdMap;
use jiff::Timestamp;

use crate::{
    Labels, Vocabulary,
    dra::{DeviceClass, ResourceClaim, ResourceSlice},
    ids::{InstanceTypeName, LabelKey, NodeKey, NodeName, PodKey, PoolName},
    instance_type::InstanceType,
    node::StateNode,
    pod::{LabelSelector, Pod, PodShape},
    pool::Pool,
    resources::Resources,
    volume::{StorageClass, Volume, VolumeClaim},
    workload::{Controlled, ControllerKey, Service},
};

/// A workload that puts one pod on every node it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    pub key: PodKey,
    /// The pod it would put on a fresh node.
    pub shape: Arc<PodShape>,
}

/// How many pods of a selection may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct DisruptionBudget {
    pub key: PodKey,
    /// `None` selects nothing.
    pub selector: Option<LabelSelector>,
    pub disruptions_allowed: i32,
    /// The spec can never allow a disruption: maxUnavailable 0 or 0%, minAvailable 100%.
    pub fully_blocking: bool,
    /// unhealthyPodEvictionPolicy AlwaysAllow.
    pub unhealthy_always_allowed: bool,
}

impl DisruptionBudget {
    pub fn covers(&self, pod: &Pod) -> bool {
        self.key.namespace == pod.key.namespace && self.selector.as_ref().is_some_and(|s| s.matches(&pod.shape.labels))
    }
}

/// How many volumes of each CSI driver can be attached to a node; drivers that are not listed know no limit.
pub type AttachLimits = Arc<BTreeMap<Arc<str>, u32>>;

/// The shapes that one pool may launch, in the provider's order.
pub type Catalog = Arc<[Arc<InstanceType>]>;

/// Which machines hold room for pods that do not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// Nobody asks for any.
    #[default]
    None,
    /// There may be buffers, and no round has placed their pods yet.
    Unknown,
    /// How many virtual pods the last round has put on which machine.
    Held(OrdMap<NodeKey, u32>),
}

/// The cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Grows with every change that went in.
    pub version: u64,
    pub vocabulary: Arc<Vocabulary>,
    pub pools: OrdMap<PoolName, Arc<Pool>>,
    /// A pool without an entry is not known to the provider yet and launches nothing.
    pub catalogs: OrdMap<PoolName, Catalog>,
    pub nodes: OrdMap<NodeKey, Arc<StateNode>>,
    pub pods: OrdMap<PodKey, Arc<Pod>>,
    pub daemons: OrdMap<PodKey, Arc<Daemon>>,
    pub budgets: OrdMap<PodKey, Arc<DisruptionBudget>>,
    pub namespaces: OrdMap<Arc<str>, Arc<Labels>>,
    pub volume_claims: OrdMap<PodKey, Arc<VolumeClaim>>,
    pub volumes: OrdMap<Arc<str>, Arc<Volume>>,
    pub storage_classes: OrdMap<Arc<str>, Arc<StorageClass>>,
    /// A node without an entry knows no limits.
    pub attach_limits: OrdMap<NodeName, AttachLimits>,
    pub resource_claims: OrdMap<PodKey, Arc<ResourceClaim>>,
    pub resource_slices: OrdMap<Arc<str>, Arc<ResourceSlice>>,
    pub device_classes: OrdMap<Arc<str>, Arc<DeviceClass>>,
    /// Services and controllers are only known where the operator has default spreads.
    pub services: OrdMap<PodKey, Arc<Service>>,
    pub controllers: OrdMap<ControllerKey, Arc<Controlled>>,
    pub room: Room,
    /// The pods again, node by node: whoever asks for those of a node asks for those of many.
    bound: OrdMap<NodeName, OrdMap<PodKey, Arc<Pod>>>,
    by_node_name: OrdMap<NodeName, NodeKey>,
}

impl Snapshot {
    pub fn put_pod(&mut self, pod: Arc<Pod>) {
        self.remove_pod(&pod.key);
        if let Some(node) = &pod.node {
            let bound = self.bound.entry(node.clone()).or_default();
            bound.insert(pod.key.clone(), pod.clone());
        }
        self.pods.insert(pod.key.clone(), pod);
    }

    pub fn remove_pod(&mut self, key: &PodKey) {
        let Some(node) = self.pods.remove(key).and_then(|pod| pod.node.clone()) else {
            return;
        };
        if let Some(pods) = self.bound.get_mut(&node) {
            pods.remove(key);
            if pods.is_empty() {
                self.bound.remove(&node);
            }
        }
    }

    pub fn put_node(&mut self, node: Arc<StateNode>) {
        self.remove_node(&node.key);
        if let Some(name) = node.node_name() {
            self.by_node_name.insert(name.clone(), node.key.clone());
        }
        self.nodes.insert(node.key.clone(), node);
    }

    pub fn remove_node(&mut self, key: &NodeKey) {
        let Some(gone) = self.nodes.remove(key) else { return };
        if let Some(name) = gone.node_name()
            && self.by_node_name.get(name) == Some(key)
        {
            self.by_node_name.remove(name);
        }
    }

    /// Pods bound to a node, in the order of their names. Terminal pods are among them.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<Pod>> {
        self.bound.get(node).into_iter().flat_map(OrdMap::values)
    }

    /// Pods of a machine; none before its node has joined.
    pub fn pods_of<'a>(&'a self, machine: &'a StateNode) -> impl Iterator<Item = &'a Arc<Pod>> {
        machine.node_name().into_iter().flat_map(|name| self.pods_on(name))
    }

    pub fn node_named(&self, name: &NodeName) -> Option<&Arc<StateNode>> {
        self.nodes.get(self.by_node_name.get(name)?)
    }

    /// A capacity buffer counts on this machine, or may do so: it is not empty although no pod runs on it.
    pub fn holds_room(&self, machine: &NodeKey) -> bool {
        match &self.room {
            Room::None => false,
            Room::Unknown => true,
            Room::Held(held) => held.get(machine).is_some_and(|pods| *pods > 0),
        }
    }

    /// What the pods on a machine ask for together; terminal pods ask for nothing.
    pub fn requested_on(&self, machine: &StateNode) -> Resources {
        let mut sum = Resources::default();
        for pod in self.pods_of(machine).filter(|pod| !pod.is_terminal()) {
            sum.add_assign(&pod.shape.requests);
        }
        sum
    }

    /// The pool's capacity in use: every machine that is not leaving, one `nodes` each.
    pub fn pool_usage(&self, pool: &PoolName) -> Resources {
        let mut usage = Resources::default();
        for machine in self.nodes.values().filter(|machine| !machine.is_leaving()) {
            if machine.pool().as_ref() == Some(pool) {
                usage.add_assign(&machine.capacity());
            }
        }
        usage
    }

    pub fn instance_type(&self, pool: &PoolName, name: &InstanceTypeName) -> Option<&Arc<InstanceType>> {
        self.catalogs.get(pool)?.iter().find(|shape| shape.name == *name)
    }

    /// What a machine costs per hour, or nothing when the catalog does not know its offering.
    pub fn price_of(&self, machine: &StateNode) -> Option<f64> {
        let shape = self.instance_type(&machine.pool()?, &machine.instance_type()?)?;
        let (zone, capacity_type) = (machine.zone()?, machine.capacity_type()?);
        let offering = shape
            .offerings
            .iter()
            .find(|o| o.zone == zone && o.capacity_type == capacity_type)?;
        Some(offering.price)
    }

    /// A fork in which these machines are gone. Their pods stay, bound to nodes that are no more: whoever asks
    /// "what if" puts them into its round.
    pub fn without<'a>(&self, machines: impl IntoIterator<Item = &'a NodeKey>) -> Snapshot {
        let mut fork = self.clone();
        for key in machines {
            fork.remove_node(key);
        }
        fork
    }

    /// Pods that wait for capacity: those the cluster's scheduler gave up on, and those whose node is on its way out
    /// and that can be evicted now.
    pub fn pods_to_place(&self, now: Timestamp) -> Vec<PodKey> {
        let pods = self.pods.values();
        pods.filter(|pod| pod.is_provisionable() || self.is_moving(pod, now))
            .map(|pod| pod.key.clone())
            .collect()
    }

    /// As [`pods_to_place`](Self::pods_to_place), where no scheduler has looked at the pods: all that have no node and
    /// that nobody holds back.
    pub fn pods_without_node(&self, now: Timestamp) -> Vec<PodKey> {
        let pods = self.pods.values();
        pods.filter(|pod| pod.is_unplaced() || self.is_moving(pod, now))
            .map(|pod| pod.key.clone())
            .collect()
    }

    /// Its node is on its way out, and it can be evicted now.
    fn is_moving(&self, pod: &Pod, now: Timestamp) -> bool {
        let node = pod.node.as_ref().and_then(|name| self.node_named(name));
        node.is_some_and(|node| node.is_leaving()) && self.can_move(pod, now)
    }

    /// Will be somewhere else once its node is gone, and nothing keeps it from leaving for good. Looks through all budgets:
    /// whoever asks about many pods knows which budgets cover them, and asks [`Pod::can_move_under`].
    pub fn can_move(&self, pod: &Pod, now: Timestamp) -> bool {
        let budgets = self.budgets.values().map(|budget| &**budget);
        pod.can_move_under(budgets.filter(|budget| budget.covers(pod)), now)
    }

    /// The services of a namespace, in the order of their names.
    pub fn services_in(&self, namespace: &Arc<str>) -> impl Iterator<Item = &Arc<Service>> {
        let from = PodKey {
            namespace: namespace.clone(),
            name: "".into(),
        };
        let namespace = namespace.clone();
        self.services
            .range(from..)
            .map(|(_, service)| service)
            .take_while(move |service| service.key.namespace == namespace)
    }

    /// The class of claims that name none: the newest of those that are marked for it, by name where two are as new.
    pub fn default_storage_class(&self) -> Option<&Arc<StorageClass>> {
        self.storage_classes
            .values()
            .filter(|class| class.is_default)
            .reduce(|best, class| if class.created > best.created { class } else { best })
    }

    /// A namespace's labels; empty for one that is not known.
    pub fn namespace_label(&self, namespace: &str, key: &LabelKey) -> Option<&str> {
        self.namespaces
            .get(namespace)?
            .get(key)
            .map(crate::ids::LabelValue::as_str)
    }
}
