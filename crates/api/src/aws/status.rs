//! What the selectors of an EC2NodeClass resolved to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::InstanceMatchCriteria;
use crate::text_enum::text_enum;

/// What the selectors resolved to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// The subnets found.
    pub subnets: Option<Vec<Subnet>>,
    /// The security groups found.
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The capacity reservations found, sorted by id.
    pub capacity_reservations: Option<Vec<CapacityReservation>>,
    /// The images found.
    pub amis: Option<Vec<Ami>>,
    /// The name of the instance profile in use.
    pub instance_profile: Option<String>,
    /// The state of the class.
    pub conditions: Option<Vec<Condition>>,
}

/// A subnet that was found.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// The id of the subnet.
    pub id: String,
    /// The zone it is in.
    pub zone: String,
    /// The id of that zone, which is the same in every account.
    #[serde(rename = "zoneID")]
    pub zone_id: Option<String>,
}

/// A security group that was found.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// The id of the group.
    pub id: String,
    /// The name of the group.
    pub name: Option<String>,
}

/// An image that was found.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ami {
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: Option<String>,
    /// Whether the image is past its deprecation date.
    pub deprecated: Option<bool>,
    /// The instance types the image can run on.
    pub requirements: Vec<AmiRequirement>,
}

/// What one label of an instance type has to satisfy for an image to run on it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmiRequirement {
    /// The label key.
    pub key: String,
    /// How the label relates to the values.
    pub operator: String,
    /// The values.
    pub values: Option<Vec<String>>,
}

text_enum! {
    /// The kind of a capacity reservation.
    pub enum ReservationType {
        Default = "default",
        CapacityBlock = "capacity-block",
    }
}

text_enum! {
    /// Whether a capacity reservation is about to end.
    pub enum ReservationState {
        Active = "active",
        Expiring = "expiring",
    }
}

/// A capacity reservation that was found.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// The zone the reservation is for.
    pub availability_zone: String,
    /// When the reservation ends, if it does.
    pub end_time: Option<Time>,
    /// The id of the reservation.
    pub id: String,
    /// Which instances the reservation accepts.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// The instance type the reservation is for.
    pub instance_type: String,
    /// The account that owns the reservation.
    #[serde(rename = "ownerID")]
    pub owner_id: String,
    /// The kind of the reservation.
    pub reservation_type: Option<ReservationType>,
    /// Whether instances in the reservation can be interrupted.
    pub interruptible: Option<bool>,
    /// Whether the reservation is about to end.
    pub state: Option<ReservationState>,
}
