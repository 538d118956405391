//! NodePool: what nodes may look like, how many there may be, and when they may go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{NodeClassReference, Quantities, Requirement};
use crate::duration::{DurationOrNever, DurationText};
use crate::text_enum::text_enum;

/// The nodes that Karpenter may create for this pool, and when it may remove them again.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    singular = "nodepool",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A kind of node that Karpenter may create, with its limits and its rules for disruption.",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes")
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// The shape of every node claim made for this pool. A change drifts the nodes that exist.
    pub template: NodeClaimTemplate,
    /// When and how fast nodes of this pool may be disrupted voluntarily.
    pub disruption: Option<Disruption>,
    /// Upper bounds on the sum of the pool's resources; `nodes` bounds the number of nodes.
    pub limits: Option<Quantities>,
    /// Pools of higher weight are tried first. Absent counts as 0.
    pub weight: Option<i32>,
    /// A fixed number of nodes that is kept whatever the pods ask for. Alpha.
    pub replicas: Option<i64>,
}

/// The metadata and the spec of the node claims made for a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// Labels and annotations for the claim and its node.
    pub metadata: Option<TemplateMetadata>,
    /// The spec of the claim.
    pub spec: NodeClaimTemplateSpec,
}

/// The part of object metadata that a template may set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels for the claim and its node.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations for the claim and its node.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The spec of the node claims made for a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints of the node for its whole life.
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes while the node starts up; pods need not tolerate them.
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node's labels have to satisfy.
    pub requirements: Vec<Requirement>,
    /// The provider's side of the configuration.
    pub node_class_ref: NodeClassReference,
    /// How long a node may drain before its remaining pods are removed by force.
    pub termination_grace_period: Option<DurationText>,
    /// The age at which a node is replaced, or Never.
    pub expire_after: Option<DurationOrNever>,
}

text_enum! {
    /// Which nodes consolidation may consider.
    pub enum ConsolidationPolicy {
        /// Only nodes without pods that would have to move.
        WhenEmpty = "WhenEmpty",
        /// Every node whose removal or replacement saves money.
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As above, weighing the saving against the disruption it causes.
        Balanced = "Balanced",
    }
}

text_enum! {
    /// Why a node is disrupted voluntarily.
    pub enum DisruptionReason {
        Underutilized = "Underutilized",
        Empty = "Empty",
        Drifted = "Drifted",
    }
}

/// When and how fast nodes of a pool may be disrupted voluntarily.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have seen no pod come or go before it may be consolidated, or Never.
    pub consolidate_after: Option<DurationOrNever>,
    /// Which nodes consolidation may consider.
    pub consolidation_policy: Option<ConsolidationPolicy>,
    /// How many nodes may be disrupted at once; the strictest active budget counts.
    /// Present and empty means no limit, which is not the default.
    pub budgets: Option<Vec<Budget>>,
}

/// How many nodes may be disrupted at once, and when that rule is in force.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A number of nodes, or a percentage of the pool that is rounded up.
    pub nodes: String,
    /// The reasons this budget applies to. Absent means all, present and empty means none.
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget comes into force: five cron fields in UTC, or a descriptor such as @daily.
    pub schedule: Option<String>,
    /// How long the budget stays in force after each hit of its schedule.
    pub duration: Option<DurationText>,
}

/// What is known of a pool's nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// The sum of the resources of the pool's nodes.
    pub resources: Option<Quantities>,
    /// The number of the pool's nodes.
    pub nodes: Option<i64>,
    /// The generation of the node class that was seen last.
    pub node_class_observed_generation: Option<i64>,
    /// The state of the pool.
    pub conditions: Option<Vec<Condition>>,
}
