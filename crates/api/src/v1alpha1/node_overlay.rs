//! NodeOverlay: corrections to what the provider says about its instance types.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::v1::{Operator, Quantities};

/// Which instance types are corrected, and how.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    singular = "nodeoverlay",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A correction of the price or the capacity of the instance types it selects."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// The instance types and offerings this overlay applies to.
    pub requirements: Vec<NodeOverlayRequirement>,
    /// The hourly price that replaces the provider's. Not together with priceAdjustment.
    pub price: Option<String>,
    /// A signed amount or percentage that is added to the provider's price.
    pub price_adjustment: Option<String>,
    /// Extended resources the instance types have beside those the provider knows of.
    pub capacity: Option<Quantities>,
    /// Overlays of higher weight are applied first. Absent counts as 0.
    pub weight: Option<i32>,
}

/// What one label of an instance type has to satisfy for the overlay to apply.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayRequirement {
    /// The label key.
    pub key: String,
    /// How the label relates to the values.
    pub operator: Operator,
    /// At least one value for In and NotIn; one non-negative integer for Gt, Lt, Gte and Lte.
    pub values: Option<Vec<String>>,
}

/// Whether the overlay is in force.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayStatus {
    /// The state of the overlay.
    pub conditions: Option<Vec<Condition>>,
}
