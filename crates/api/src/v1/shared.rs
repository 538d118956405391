//! Building blocks that several kinds have in common.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::text_enum::text_enum;

/// Resource quantities by resource name, as text.
pub type Quantities = BTreeMap<String, Quantity>;

text_enum! {
    /// How a requirement relates a label to its values.
    pub enum Operator {
        In = "In",
        NotIn = "NotIn",
        Exists = "Exists",
        DoesNotExist = "DoesNotExist",
        Gt = "Gt",
        Lt = "Lt",
        Gte = "Gte",
        Lte = "Lte",
    }
}

/// What the value of one node label has to satisfy.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// How the label relates to the values.
    pub operator: Operator,
    /// At least one value for In; exactly one non-negative integer for Gt, Lt, Gte and Lte.
    pub values: Option<Vec<String>>,
    /// How many different values the instance types offered for a node must cover. Alpha.
    pub min_values: Option<i64>,
}

/// The object that holds the provider's side of a node's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassReference {
    /// The API group, without a version.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
}
