//! The file behind `--instance-types`, field by field: the KWOK catalog format and what we read beyond it.
//!
//! Upstream's reader knows `name`, `offerings`, `architecture`, `operatingSystems` and `resources`, and per offering
//! `Price`, `Available`, `Requirements` and `ReservationCapacity`. Go ignores the case of the first letter, so both
//! are read here; what is written is upstream's spelling.

use std::collections::BTreeMap;

use model::{Resources, requirement::SelectorRequirement};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A file that gives pools different catalogs, or says more than types.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Extended {
    pub by_node_pool: BTreeMap<String, Vec<TypeEntry>>,
    #[serde(rename = "reservationIDLabel", skip_serializing_if = "Option::is_none")]
    pub reservation_id_label: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported_provisioners: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported_topology_keys: Vec<String>,
}

/// One shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an instance type")]
pub struct TypeEntry {
    pub name: String,
    pub offerings: Vec<OfferingEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_systems: Option<Vec<String>>,
    #[serde(default)]
    pub resources: Option<Resources>,
    /// When present, the shape's labels as they stand: nothing is derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirements: Option<Vec<SelectorRequirement>>,
    /// When present, in the place of the derived overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<OverheadEntry>,
    /// Devices that come with the shape, kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_resources: Option<Value>,
}

/// One way to buy a shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an offering")]
pub struct OfferingEntry {
    #[serde(alias = "price")]
    pub price: f64,
    #[serde(alias = "available", default)]
    pub available: Option<bool>,
    #[serde(alias = "requirements")]
    pub requirements: Vec<SelectorRequirement>,
    #[serde(alias = "reservationCapacity", default, skip_serializing_if = "Option::is_none")]
    pub reservation_capacity: Option<u32>,
    #[serde(alias = "capacityOverride", default, skip_serializing_if = "Option::is_none")]
    pub capacity_override: Option<Resources>,
    #[serde(alias = "overheadOverride", default, skip_serializing_if = "Option::is_none")]
    pub overhead_override: Option<OverheadEntry>,
}

/// What a machine keeps for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverheadEntry {
    #[serde(alias = "KubeReserved", default, skip_serializing_if = "Option::is_none")]
    pub kube_reserved: Option<Resources>,
    #[serde(alias = "SystemReserved", default, skip_serializing_if = "Option::is_none")]
    pub system_reserved: Option<Resources>,
    #[serde(alias = "EvictionThreshold", default, skip_serializing_if = "Option::is_none")]
    pub eviction_threshold: Option<Resources>,
}

/// The fields of [`TypeEntry`] and [`OfferingEntry`], to find the ones that nobody reads.
pub const TYPE_FIELDS: [&str; 8] = [
    "name",
    "offerings",
    "architecture",
    "operatingSystems",
    "resources",
    "requirements",
    "overhead",
    "dynamicResources",
];
pub const OFFERING_FIELDS: [&str; 6] = [
    "Price",
    "Available",
    "Requirements",
    "ReservationCapacity",
    "CapacityOverride",
    "OverheadOverride",
];
