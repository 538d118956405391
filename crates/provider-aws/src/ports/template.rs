//! Launch templates.

use api::aws::{ConnectionTracking, Switch};

use super::{Filter, Tags};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateQuery {
    Name(String),
    Matching(Vec<Filter>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateKey {
    Id(String),
    Name(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pub id: String,
    pub name: String,
}

/// What instances of a template are launched with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateData {
    /// Tags by the kind of resource that gets them.
    pub tags: Vec<(&'static str, Tags)>,
    /// The image's own volumes when empty; then the request does not mention volumes at all.
    pub volumes: Vec<Volume>,
    pub instance_profile: String,
    pub detailed_monitoring: bool,
    pub image_id: String,
    /// Base64.
    pub user_data: String,
    pub metadata: Metadata,
    pub interfaces: Vec<Interface>,
    pub placement: Placement,
    pub enclaves: bool,
    pub nested_virtualization: Option<Switch>,
    /// Absent where reserved capacity is not in use at all.
    pub reservation: Option<ReservationPreference>,
    pub market: Option<MarketType>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Volume {
    pub device_name: Option<String>,
    /// `None` stands for a mapping without an EBS part.
    pub ebs: Option<Ebs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ebs {
    pub delete_on_termination: Option<bool>,
    pub encrypted: Option<bool>,
    pub iops: Option<i64>,
    pub throughput: Option<i64>,
    pub kms_key_id: Option<String>,
    pub snapshot_id: Option<String>,
    pub volume_initialization_rate: Option<i32>,
    pub size_gib: Option<i64>,
    pub volume_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub endpoint: Option<String>,
    /// Absent in regions that do not know the field.
    pub ipv6: Option<String>,
    pub hop_limit: Option<i64>,
    pub tokens: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub card: Option<i32>,
    pub device: i32,
    /// `interface`, `efa`, `efa-only`; EC2's default when absent.
    pub kind: Option<String>,
    pub groups: Vec<String>,
    pub public_ip: Option<bool>,
    pub ipv4_prefixes: Option<i32>,
    pub ipv6_prefixes: Option<i32>,
    /// The interface has one IPv6 address, and it is the primary one.
    pub primary_ipv6: bool,
    pub connection_tracking: Option<ConnectionTracking>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    pub tenancy: String,
    pub group_id: Option<String>,
    pub partition: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationPreference {
    /// Not even an open reservation is used.
    None,
    /// Only this one.
    Only(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketType {
    CapacityBlock,
    InterruptibleReservation,
}

impl MarketType {
    pub fn as_str(self) -> &'static str {
        match self {
            MarketType::CapacityBlock => "capacity-block",
            MarketType::InterruptibleReservation => "interruptible-capacity-reservation",
        }
    }
}
