//! Instances, and what EC2 says of their health.

use jiff::Timestamp;

use super::{Filter, Tags};

/// Which instances to list: all of these ids, or what the filters let through, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceQuery {
    pub ids: Vec<String>,
    pub filters: Vec<Filter>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceInfo {
    pub id: String,
    /// EC2's word: `pending`, `running`, …
    pub state: String,
    pub instance_type: String,
    pub zone: String,
    pub image_id: String,
    /// The name under which its kubelet registers; empty until EC2 has given it one.
    pub private_dns: String,
    pub subnet: String,
    pub security_groups: Vec<String>,
    pub tags: Tags,
    pub launched: Option<Timestamp>,
    pub spot_request: Option<String>,
    /// EC2's word: empty, `spot`, `capacity-block`, …
    pub lifecycle: String,
    pub reservation: Option<String>,
    /// EC2's word for how reservations may be used: `capacity-reservations-only`, …
    pub reservation_preference: String,
    pub tenancy: String,
    pub placement_group: Option<String>,
    pub partition: Option<u32>,
    /// The kinds of its interfaces: `interface`, `efa`, `efa-only`.
    pub interfaces: Vec<String>,
}

/// An instance and the state that it is in now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChange {
    pub id: String,
    pub state: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusQuery {
    pub filters: Vec<Filter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceStatusInfo {
    pub id: String,
    pub instance: Vec<StatusDetail>,
    pub system: Vec<StatusDetail>,
    pub events: Vec<EventInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetail {
    /// EC2's word: `passed`, `failed`, …
    pub status: String,
    pub impaired_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventInfo {
    pub code: String,
}
