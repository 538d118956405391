//! Terms that select AWS resources. A list of terms selects the union of what each selects.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::text_enum::text_enum;

/// Tags by key. In a selector the value `*` stands for any value.
pub type Tags = BTreeMap<String, String>;

/// Selects subnets.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSelectorTerm {
    /// Tags the subnet has; `*` as a value means any.
    pub tags: Option<Tags>,
    /// The id of the subnet.
    pub id: Option<String>,
}

/// Selects security groups.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSelectorTerm {
    /// Tags the group has; `*` as a value means any.
    pub tags: Option<Tags>,
    /// The id of the group.
    pub id: Option<String>,
    /// The group name, which is not the Name tag.
    pub name: Option<String>,
}

text_enum! {
    /// Which instances a capacity reservation accepts.
    pub enum InstanceMatchCriteria {
        Open = "open",
        Targeted = "targeted",
    }
}

/// Selects capacity reservations.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags the reservation has; `*` as a value means any.
    pub tags: Option<Tags>,
    /// The id of the reservation.
    pub id: Option<String>,
    /// The account that owns the reservation.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    /// Which instances the reservation accepts.
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}

/// Selects machine images.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A family and a version, as in al2023@latest. Excludes every other term.
    pub alias: Option<String>,
    /// Tags the image has; `*` as a value means any.
    pub tags: Option<Tags>,
    /// The id of the image.
    pub id: Option<String>,
    /// The image name, which is not the Name tag.
    pub name: Option<String>,
    /// The account that owns the image: an id, self or amazon.
    pub owner: Option<String>,
    /// The SSM parameter that holds the image id.
    pub ssm_parameter: Option<String>,
}

/// Selects one placement group, by name or by id.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementGroupSelector {
    /// The name of the group.
    pub name: Option<String>,
    /// The id of the group.
    pub id: Option<String>,
}
