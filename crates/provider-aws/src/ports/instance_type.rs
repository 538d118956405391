//! An instance type as EC2 describes it.

/// What DescribeInstanceTypes says of one type. Words stay EC2's own, so that new ones are carried and not lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceTypeInfo {
    pub name: String,
    /// `x86_64`, `arm64`, `i386`, …, in EC2's order.
    pub architectures: Vec<String>,
    /// `on-demand`, `spot`, `capacity-block`, …
    pub usage_classes: Vec<String>,
    pub vcpus: i64,
    pub manufacturer: Option<String>,
    pub clock_ghz: Option<f64>,
    /// `nested-virtualization`, …
    pub processor_features: Vec<String>,
    pub memory_mib: i64,
    /// Only where the type is EBS-optimized by default.
    pub ebs_bandwidth_mbps: Option<i64>,
    pub storage: Option<InstanceStorage>,
    pub gpus: Vec<GpuInfo>,
    pub inference_accelerators: Vec<AcceleratorInfo>,
    pub neuron: Vec<NeuronInfo>,
    /// `nitro`, `xen`, or empty on bare metal.
    pub hypervisor: String,
    pub nitro_enclaves: bool,
    pub network: NetworkInfo,
    /// `cluster`, `partition`, `spread`.
    pub placement_strategies: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceStorage {
    pub total_gb: i64,
    pub nvme: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuInfo {
    pub name: String,
    pub manufacturer: String,
    pub count: i64,
    pub memory_mib: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorInfo {
    pub name: String,
    pub manufacturer: String,
    pub count: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeuronInfo {
    pub name: String,
    pub count: i64,
    pub cores: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkInfo {
    pub default_card: i64,
    pub cards: Vec<NetworkCard>,
    pub ipv4_per_interface: i64,
    pub max_efa_interfaces: i64,
    /// Whether the type has EC2's enhanced network adapter.
    pub ena: bool,
    pub encryption_in_transit: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkCard {
    pub index: i64,
    pub max_interfaces: i64,
}

impl NetworkInfo {
    pub fn card(&self, index: i64) -> Option<&NetworkCard> {
        self.cards.iter().find(|card| card.index == index)
    }

    /// How many interfaces the card takes that pods get their addresses from.
    pub fn default_interfaces(&self) -> i64 {
        self.card(self.default_card).map_or(0, |card| card.max_interfaces)
    }
}

/// A type is sold in a zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeOffering {
    pub instance_type: String,
    pub zone: String,
}
