//! Kubelet settings: twelve fields that Karpenter understands, checked by the schema, and whatever else the kubelet knows.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::duration::DurationText;

/// Settings of the kubelet that affect what a node can hold.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfiguration {
    /// Addresses of the cluster's DNS server.
    #[serde(rename = "clusterDNS")]
    pub cluster_dns: Option<Vec<String>>,
    /// The largest number of pods on a node: a number, or an expression over the instance type.
    pub max_pods: Option<IntOrString>,
    /// The largest number of pods per core; 0 means no such bound.
    pub pods_per_core: Option<i32>,
    /// Resources set aside for the operating system: quantities, or expressions over the instance type.
    pub system_reserved: Option<BTreeMap<String, String>>,
    /// Resources set aside for Kubernetes' own daemons: quantities, or expressions over the instance type.
    pub kube_reserved: Option<BTreeMap<String, String>>,
    /// Thresholds that evict pods at once.
    pub eviction_hard: Option<BTreeMap<String, String>>,
    /// Thresholds that evict pods after a grace period.
    pub eviction_soft: Option<BTreeMap<String, String>>,
    /// The grace period of each soft threshold.
    pub eviction_soft_grace_period: Option<BTreeMap<String, DurationText>>,
    /// The longest time in seconds that a pod gets to end after a soft threshold is met.
    pub eviction_max_pod_grace_period: Option<i32>,
    /// The disk use in percent above which images are always removed.
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk use in percent below which images are never removed.
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits are enforced by CFS quota.
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: Option<bool>,
    /// Settings that Karpenter only passes on, under the kubelet's own names.
    #[serde(flatten)]
    #[schemars(skip)]
    pub passed_on: BTreeMap<String, Value>,
}
