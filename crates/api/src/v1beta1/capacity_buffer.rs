//! CapacityBuffer: room that is kept free for pods that do not exist yet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::v1::Quantities;

/// How much room is kept, measured in pods of a template or of a workload.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    singular = "capacitybuffer",
    shortname = "cb",
    category = "autoscaling",
    namespaced,
    status = "CapacityBufferStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Room that is kept free for pods that do not exist yet."
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the buffer is provisioned.
    pub provisioning_strategy: Option<String>,
    /// The pod template the buffer is measured in. Not together with scalableRef.
    pub pod_template_ref: Option<LocalObjectRef>,
    /// The workload whose pods the buffer is measured in. Not together with podTemplateRef.
    pub scalable_ref: Option<ScalableRef>,
    /// A fixed number of pods. With percentage, the larger of the two counts.
    pub replicas: Option<i32>,
    /// A share of the workload's replicas, rounded up.
    pub percentage: Option<i32>,
    /// Upper bounds on the resources of all pods of the buffer together.
    pub limits: Option<Quantities>,
}

/// An object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalObjectRef {
    /// The object's name.
    pub name: String,
}

/// A workload of the same namespace that can be scaled.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// The API group; absent or empty means apps.
    pub api_group: Option<String>,
    /// Deployment, StatefulSet or ReplicaSet.
    pub kind: String,
    /// The workload's name.
    pub name: String,
}

/// What the buffer resolved to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The pod template in use; absent when the buffer follows a workload.
    pub pod_template_ref: Option<LocalObjectRef>,
    /// How many pods the buffer has room for.
    pub replicas: Option<i32>,
    /// The generation of the pod template in use.
    pub pod_template_generation: Option<i64>,
    /// The strategy in use.
    pub provisioning_strategy: Option<String>,
    /// The state of the buffer.
    pub conditions: Option<Vec<Condition>>,
}
