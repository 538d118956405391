//! NodeClaim: one node that is asked for, and what became of the request.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeClassReference, Quantities, Requirement};
use crate::duration::{DurationOrNever, DurationText};

/// One node that is asked for. Immutable.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    singular = "nodeclaim",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A request for one node, from the launch of its instance to the end of it."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints of the node for its whole life.
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes while the node starts up; pods need not tolerate them.
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node's labels have to satisfy.
    pub requirements: Vec<Requirement>,
    /// What the node has to have room for.
    pub resources: Option<NodeClaimResources>,
    /// The provider's side of the configuration.
    pub node_class_ref: NodeClassReference,
    /// How long the node may drain before its remaining pods are removed by force.
    pub termination_grace_period: Option<DurationText>,
    /// The age at which the node is replaced, or Never.
    pub expire_after: Option<DurationOrNever>,
}

/// What a node has to have room for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimResources {
    /// The sum of the requests of the pods the node was planned for.
    pub requests: Option<Quantities>,
}

/// What became of a node claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The name of the node, once it has registered.
    pub node_name: Option<String>,
    /// The provider's id of the instance, once it is launched.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// The image the instance runs.
    #[serde(rename = "imageID")]
    pub image_id: Option<String>,
    /// The estimated capacity of the node.
    pub capacity: Option<Quantities>,
    /// The estimated allocatable resources of the node.
    pub allocatable: Option<Quantities>,
    /// When a pod was last bound to the node or left it.
    pub last_pod_event_time: Option<Time>,
    /// The state of the claim.
    pub conditions: Option<Vec<Condition>>,
}
