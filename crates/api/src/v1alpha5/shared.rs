//! Building blocks of the alpha kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::aws::KubeletConfiguration;

/// The object that holds the provider's side of the configuration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRef {
    /// The object's name.
    pub name: String,
    /// The kind; AWSNodeTemplate when absent.
    pub kind: Option<String>,
    /// The API group and version; karpenter.k8s.aws/v1alpha1 when absent.
    pub api_version: Option<String>,
}

/// Kubelet settings: those of today, and the runtime that could be chosen then.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kubelet {
    #[serde(flatten)]
    pub settings: KubeletConfiguration,
    /// The container runtime: dockerd or containerd.
    pub container_runtime: Option<String>,
}

/// One aspect of an object's state, as it was written before conditions had a schema that all kinds share.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OldCondition {
    /// The aspect.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: String,
    /// Why, in one word.
    pub reason: Option<String>,
    /// Why, in a sentence.
    pub message: Option<String>,
    /// How bad it is, where that was said.
    pub severity: Option<String>,
    /// When the status last changed.
    pub last_transition_time: Option<String>,
    /// The generation of the object that this was said about.
    pub observed_generation: Option<i64>,
}
