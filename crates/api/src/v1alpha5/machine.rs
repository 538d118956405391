//! Machine: one node that was asked for, before there were node claims.

use k8s_openapi::api::core::v1::Taint;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Kubelet, OldCondition, ProviderRef};
use crate::v1::{NodeClaimResources, Quantities, Requirement};

/// One node that was asked for.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha5",
    kind = "Machine",
    plural = "machines",
    singular = "machine",
    category = "karpenter",
    status = "MachineStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What became a NodeClaim: one node that was asked for. Read only to take over what runs."
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Taints of the node for its whole life.
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes while the node starts up; pods need not tolerate them.
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node's labels have to satisfy.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// What the node has to have room for.
    pub resources: Option<NodeClaimResources>,
    /// Settings of the node's kubelet.
    pub kubelet: Option<Kubelet>,
    /// The object that holds the provider's side of the configuration.
    pub machine_template_ref: Option<ProviderRef>,
}

/// What became of a machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The name of the node.
    pub node_name: Option<String>,
    /// The provider's id of the instance.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// The estimated capacity of the node.
    pub capacity: Option<Quantities>,
    /// The estimated allocatable resources of the node.
    pub allocatable: Option<Quantities>,
    /// The state of the machine.
    pub conditions: Option<Vec<OldCondition>>,
}
