//! Provisioner: what nodes may look like, before there were node pools.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::{Kubelet, OldCondition, ProviderRef};
use crate::v1::{Quantities, Requirement};

/// What nodes may look like, and when they go.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha5",
    kind = "Provisioner",
    plural = "provisioners",
    singular = "provisioner",
    category = "karpenter",
    status = "ProvisionerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What became a NodePool: a kind of node that Karpenter may create. Converted while it is there."
)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerSpec {
    /// Annotations of every node.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels of every node.
    pub labels: Option<BTreeMap<String, String>>,
    /// Taints of every node for its whole life.
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes while a node starts up; pods need not tolerate them.
    pub startup_taints: Option<Vec<Taint>>,
    /// What the nodes' labels have to satisfy.
    pub requirements: Option<Vec<Requirement>>,
    /// Settings of the nodes' kubelets.
    pub kubelet_configuration: Option<Kubelet>,
    /// The provider's side of the configuration, inline. Excludes providerRef.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub provider: Option<Value>,
    /// The object that holds the provider's side of the configuration. Excludes provider.
    pub provider_ref: Option<ProviderRef>,
    /// How long a node may be empty before it goes; absent means that it stays. Excludes consolidation.
    pub ttl_seconds_after_empty: Option<i64>,
    /// The age in seconds at which a node goes; absent means that it stays.
    pub ttl_seconds_until_expired: Option<i64>,
    /// Upper bounds of what all nodes together may have.
    pub limits: Option<Limits>,
    /// Those of higher weight are tried first. Absent counts as 0.
    pub weight: Option<i32>,
    /// Whether nodes are removed or replaced where that saves money.
    pub consolidation: Option<Consolidation>,
}

/// Upper bounds of what all nodes together may have.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The bound of each resource.
    pub resources: Option<Quantities>,
}

/// Whether nodes are removed or replaced where that saves money.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consolidation {
    /// Absent means no.
    pub enabled: Option<bool>,
}

/// What is known of the nodes, taken over from the NodePool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerStatus {
    /// When a node was last asked for. No longer written.
    pub last_scale_time: Option<Time>,
    /// The sum of the resources of all nodes.
    pub resources: Option<Quantities>,
    /// The state of the Provisioner.
    pub conditions: Option<Vec<OldCondition>>,
}
