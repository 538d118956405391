//! The fields of the alpha kinds. What they share with v1 has v1's types.

use std::collections::BTreeMap;

use api::aws::{BlockDeviceMapping, KubeletConfiguration, MetadataOptions, Tags};
use api::v1::{NodeClaimResources, Quantities, Requirement};
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// Provisioner `karpenter.sh/v1alpha5`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerSpec {
    pub annotations: Option<BTreeMap<String, String>>,
    pub labels: Option<BTreeMap<String, String>>,
    pub taints: Option<Vec<Taint>>,
    pub startup_taints: Option<Vec<Taint>>,
    pub requirements: Option<Vec<Requirement>>,
    pub kubelet_configuration: Option<Kubelet>,
    pub provider: Option<Value>,
    pub provider_ref: Option<ProviderRef>,
    pub ttl_seconds_after_empty: Option<i64>,
    pub ttl_seconds_until_expired: Option<i64>,
    pub limits: Option<Limits>,
    pub weight: Option<i32>,
    pub consolidation: Option<Consolidation>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRef {
    pub name: String,
    pub kind: Option<String>,
    pub api_version: Option<String>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub resources: Option<Quantities>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Consolidation {
    pub enabled: Option<bool>,
}

/// Kubelet settings: those of today, and the runtime that could be chosen then.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubelet {
    #[serde(flatten)]
    pub settings: KubeletConfiguration,
    pub container_runtime: Option<String>,
}

/// AWSNodeTemplate `karpenter.k8s.aws/v1alpha1`, and the inline provider, which has a part of its fields.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateSpec {
    pub ami_family: Option<String>,
    pub ami_selector: Option<Tags>,
    pub subnet_selector: Option<Tags>,
    pub security_group_selector: Option<Tags>,
    pub instance_profile: Option<String>,
    pub launch_template: Option<String>,
    pub user_data: Option<String>,
    pub tags: Option<Tags>,
    pub metadata_options: Option<MetadataOptions>,
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    pub detailed_monitoring: Option<bool>,
    pub context: Option<String>,
}

/// The parts of an inline provider that are not those of a node template.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineProvider {
    #[serde(flatten)]
    pub template: NodeTemplateSpec,
    /// `extensions.karpenter.sh/v1alpha1`, kind `AWS`; both are inferred when absent.
    pub api_version: Option<String>,
    pub kind: Option<String>,
    /// v1alpha4 only.
    pub cluster: Option<ClusterFacts>,
    /// v1alpha4 only.
    pub capacity_types: Option<Vec<String>>,
}

/// The cluster that nodes join.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFacts {
    pub name: Option<String>,
    pub endpoint: Option<String>,
    pub ca_bundle: Option<String>,
}

/// Provisioner `karpenter.sh/v1alpha3` and `karpenter.sh/v1alpha4`: the second has plurals and a provider.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlyProvisionerSpec {
    pub cluster: Option<ClusterFacts>,
    pub taints: Option<Vec<Taint>>,
    pub labels: Option<BTreeMap<String, String>>,
    pub zones: Option<Vec<String>>,
    pub instance_types: Option<Vec<String>>,
    pub architecture: Option<String>,
    pub operating_system: Option<String>,
    pub architectures: Option<Vec<String>>,
    pub operating_systems: Option<Vec<String>>,
    pub provider: Option<Value>,
    pub ttl_seconds_after_empty: Option<i64>,
    pub ttl_seconds_until_expired: Option<i64>,
}

/// Machine `karpenter.sh/v1alpha5`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    pub taints: Option<Vec<Taint>>,
    pub startup_taints: Option<Vec<Taint>>,
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    pub resources: Option<NodeClaimResources>,
    pub kubelet: Option<Kubelet>,
    pub machine_template_ref: Option<ProviderRef>,
}
