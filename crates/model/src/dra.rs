//! Devices that pods claim: dynamic resource allocation, as far as placing pods needs it.
//!
//! Drivers publish what they have as [`ResourceSlice`]s, which form pools. A pod names [`ResourceClaim`]s; each asks for
//! devices by class and by selectors, and once allocated says which devices it holds and where they can be reached.
//! A machine that does not exist yet publishes nothing, so an instance type brings templates of the slices that its
//! drivers will publish: [`DynamicResources`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::{
    ids::{NodeName, PodKey, PodUid},
    quantity::Quantity,
    requirements::Requirements,
};

/// Amounts by name: what a device has of each dimension, or what a counter set has left.
pub type Amounts = BTreeMap<Arc<str>, Quantity>;

/// One device of the cluster: names are unique within driver and pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    pub driver: Arc<str>,
    pub pool: Arc<str>,
    pub device: Arc<str>,
}

impl DeviceId {
    pub fn new(driver: &str, pool: &str, device: &str) -> Self {
        Self {
            driver: driver.into(),
            pool: pool.into(),
            device: device.into(),
        }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

// --- what is asked for ---

/// A claim for devices, and what it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceClaim {
    pub key: PodKey,
    pub requests: Vec<DeviceRequest>,
    pub constraints: Vec<DeviceConstraint>,
    /// Present once the cluster's scheduler has chosen devices.
    pub allocation: Option<ClaimAllocation>,
    /// Who uses the devices.
    pub reserved_for: Vec<Consumer>,
    /// The claim is on its way out: no further pod may use it.
    pub deleting: bool,
}

/// One request of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRequest {
    pub name: Arc<str>,
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Exactly(DeviceAsk),
    /// The first that can be had, in this order. Each has a name of its own below the request's.
    FirstAvailable(Vec<(Arc<str>, DeviceAsk)>),
    /// A form of request that this program does not know.
    Unknown,
}

/// Which devices, and how many. Access for administration is asked for like any other, as upstream treats it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceAsk {
    pub class: Arc<str>,
    pub selectors: Vec<DeviceSelector>,
    pub count: DeviceCount,
    /// How much of each dimension, from devices that can be shared.
    pub capacity: Amounts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceCount {
    Exactly(usize),
    /// Every device that matches, and at least one.
    All,
    /// An allocation mode that this program does not know, as written.
    Unknown(String),
}

/// A condition on single devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelector {
    /// An expression over `device`.
    Cel(Arc<str>),
    Unknown,
}

/// A condition on all devices of some requests together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConstraint {
    /// Names of requests, or of a request and one below it (`gpu/large`). Empty means all.
    pub requests: BTreeSet<String>,
    pub rule: ConstraintRule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstraintRule {
    /// All have the same value for this attribute.
    MatchAttribute(Arc<str>),
    /// A rule that this program does not know, by its field.
    Unknown(&'static str),
}

/// What a claim was given.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimAllocation {
    pub devices: Vec<AllocatedDevice>,
    /// From where the devices can be reached; `None` for everywhere.
    pub nodes: Option<NodeTerms>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AllocatedDevice {
    pub id: DeviceId,
    /// What is used of a device that others may use, too; `None` for a device that is held alone.
    pub consumed: Option<Amounts>,
}

/// A user of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consumer {
    Pod(PodUid),
    /// Something that is not a pod, and of which nobody here knows when it ends.
    Other(String),
}

/// A kind of device that claims may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceClass {
    pub name: Arc<str>,
    pub selectors: Vec<DeviceSelector>,
}

// --- what there is ---

/// A selection of nodes: one of the terms has to hold. No terms select no node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTerms(pub Vec<NodeSelection>);

/// One way to be selected: all of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelection {
    pub labels: Requirements,
    /// The nodes by name, where the selection names them.
    pub names: Option<BTreeSet<NodeName>>,
}

/// From where devices can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Node(NodeName),
    Nodes(NodeTerms),
    Everywhere,
    /// Nothing is said, so no node reaches them.
    Nowhere,
}

/// Devices, or counters, that a driver publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSlice {
    pub name: Arc<str>,
    pub driver: Arc<str>,
    pub pool: Arc<str>,
    /// Only slices of a pool's newest generation count.
    pub generation: i64,
    /// How many slices the pool's generation has, when all of them are there.
    pub slice_count: i64,
    pub devices: Vec<PublishedDevice>,
    pub shared_counters: Vec<CounterSet>,
    /// The node that the slice goes away with.
    pub owner_node: Option<NodeName>,
}

/// A device of a slice. Where the slice says for all of its devices from where they can be reached, each repeats it.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedDevice {
    pub device: Arc<Device>,
    pub reach: Arc<Reach>,
}

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub name: Arc<str>,
    /// By name, with or without a domain; the driver's name is the domain of those without.
    pub attributes: BTreeMap<Arc<str>, AttributeValue>,
    pub capacity: BTreeMap<Arc<str>, DeviceCapacity>,
    /// Several requests may have it at once, as far as its capacity goes.
    pub shareable: bool,
    pub consumes: Vec<CounterUse>,
}

impl Device {
    /// A device that is had whole and of which nothing is known but its name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            attributes: BTreeMap::new(),
            capacity: BTreeMap::new(),
            shareable: false,
            consumes: Vec::new(),
        }
    }
}

/// The value of an attribute. Attributes with lists of values are left out when a device is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Text(Arc<str>),
    Int(i64),
    Bool(bool),
    /// A semantic version, as written.
    Version(Arc<str>),
}

/// How much a device has of one dimension, and in which portions it is given away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCapacity {
    pub value: Quantity,
    pub policy: Option<RequestPolicy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    /// What a request takes that does not name the dimension; without it, everything.
    pub default: Option<Quantity>,
    pub portions: Portions,
}

/// The amounts that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Portions {
    Any,
    /// One of these, in ascending order.
    OneOf(Vec<Quantity>),
    Range {
        min: Quantity,
        max: Option<Quantity>,
        step: Option<Quantity>,
    },
}

/// Counters that the devices of one pool draw on together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterSet {
    pub name: Arc<str>,
    pub counters: Amounts,
}

/// What a device draws from a counter set while it is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterUse {
    pub set: Arc<str>,
    pub counters: Amounts,
}

// --- what there will be ---

/// The devices that come with an instance type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DynamicResources {
    pub templates: Vec<ResourceSliceTemplate>,
    pub bindings: Vec<AttributeBinding>,
}

/// A slice that a driver will publish once a machine of the type runs: devices or counters, never both.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSliceTemplate {
    pub driver: Arc<str>,
    pub pool: Arc<str>,
    pub devices: Vec<Arc<Device>>,
    pub shared_counters: Vec<CounterSet>,
}

/// Devices that will have one value for an attribute, whatever it turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeBinding {
    pub attribute: Arc<str>,
    /// A binding of fewer than two devices says nothing.
    pub devices: Vec<DeviceId>,
}
