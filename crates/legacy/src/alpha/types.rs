//! The fields of the alpha kinds. Those that clusters still have are kinds of crate `api`; here is what only manifests have.

use std::collections::BTreeMap;

pub use api::aws::NodeTemplateSpec;
pub use api::v1alpha5::{Consolidation, Kubelet, Limits, MachineSpec, ProviderRef, ProvisionerSpec};
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

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
