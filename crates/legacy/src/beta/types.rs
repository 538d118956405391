//! The fields of the v1beta1 kinds. What they share with v1 has v1's types.

use api::aws::{
    AmiSelectorTerm, BlockDeviceMapping, InstanceStorePolicy, KubeletConfiguration, MetadataOptions,
    SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags,
};
use api::duration::{DurationOrNever, DurationText};
use api::v1::{NodeClaimResources, Quantities, Requirement, TemplateMetadata};
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// NodePool `karpenter.sh/v1beta1`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    #[serde(default)]
    pub template: Template,
    pub disruption: Option<Disruption>,
    pub limits: Option<Quantities>,
    pub weight: Option<i32>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub metadata: Option<TemplateMetadata>,
    #[serde(default)]
    pub spec: TemplateSpec,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    pub taints: Option<Vec<Taint>>,
    pub startup_taints: Option<Vec<Taint>>,
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    pub kubelet: Option<KubeletConfiguration>,
    pub node_class_ref: Option<NodeClassRef>,
}

/// The reference that grew a group in place of its version later.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    pub api_version: Option<String>,
    pub kind: Option<String>,
    pub name: String,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    pub consolidation_policy: Option<String>,
    pub consolidate_after: Option<DurationOrNever>,
    pub expire_after: Option<DurationOrNever>,
    pub budgets: Option<Vec<Budget>>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub nodes: String,
    pub schedule: Option<String>,
    pub duration: Option<DurationText>,
}

/// NodeClaim `karpenter.sh/v1beta1`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    pub taints: Option<Vec<Taint>>,
    pub startup_taints: Option<Vec<Taint>>,
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    pub resources: Option<NodeClaimResources>,
    pub kubelet: Option<KubeletConfiguration>,
    pub node_class_ref: Option<NodeClassRef>,
}

/// EC2NodeClass `karpenter.k8s.aws/v1beta1`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassSpec {
    #[serde(default)]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    #[serde(default)]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    #[serde(rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    pub ami_selector_terms: Option<Vec<AmiSelectorTerm>>,
    pub ami_family: Option<String>,
    pub user_data: Option<String>,
    pub role: Option<String>,
    pub instance_profile: Option<String>,
    pub tags: Option<Tags>,
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    pub instance_store_policy: Option<InstanceStorePolicy>,
    pub detailed_monitoring: Option<bool>,
    pub metadata_options: Option<MetadataOptions>,
    pub context: Option<String>,
}
