//! What an instance is told at its first boot, in the language of its image family.
//!
//! The texts are upstream's to the byte: nodes must not come up differently because another controller launched them.
//! Where upstream leaves the order of a map to chance, keys are sorted.

mod al2;
mod bottlerocket;
mod kubelet_flags;
mod mime;
mod nodeadm;
#[cfg(test)]
mod tests;
mod toml_text;
mod windows;

use std::collections::BTreeMap;

use api::aws::{AmiFamily, InstanceStorePolicy, KubeletConfiguration};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::Taint;

pub use mime::MalformedArchive;

/// All that goes into the user data of one launch template.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub family: AmiFamily,
    pub cluster_name: String,
    pub cluster_endpoint: String,
    /// Base64, as the kubelet gets it.
    pub ca_bundle: Option<String>,
    /// The addresses of services; AL2023 cannot do without.
    pub service_cidr: Option<String>,
    /// With defaults filled in: pods and DNS are always explicit.
    pub kubelet: KubeletConfiguration,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub instance_store_policy: Option<InstanceStorePolicy>,
    pub custom: Option<String>,
    /// The Bottlerocket release, if it can be told.
    pub image_version: Option<String>,
}

/// Why there is no user data for a launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    #[error("spec.userData cannot be merged")]
    Archive(#[source] MalformedArchive),
    #[error("spec.userData is not TOML: {0}")]
    Toml(String),
    /// Known a little later, once the class controller has asked EKS.
    #[error("the service CIDR of the cluster is not known yet")]
    NoServiceCidr,
    #[error("the CA bundle of the cluster is not base64")]
    CaBundle,
    #[error("spec.kubelet.evictionSoftGracePeriod.{0} is not a duration")]
    GracePeriod(String),
}

impl Bootstrap {
    /// The user data as EC2 takes it.
    pub fn encoded(&self) -> Result<String, UserDataError> {
        Ok(STANDARD.encode(self.text()?))
    }

    /// The user data as the instance reads it.
    pub fn text(&self) -> Result<String, UserDataError> {
        match self.family {
            AmiFamily::Al2023 => nodeadm::text(self),
            AmiFamily::Bottlerocket => bottlerocket::text(self),
            AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => windows::text(self),
            AmiFamily::Custom => Ok(self.custom.clone().unwrap_or_default()),
            AmiFamily::Al2 | AmiFamily::Other(_) => al2::text(self),
        }
    }

    fn uses_raid0(&self) -> bool {
        self.instance_store_policy == Some(InstanceStorePolicy::Raid0)
    }

    /// Expressions have been put into figures by now.
    fn max_pods(&self) -> Option<i32> {
        match self.kubelet.max_pods {
            Some(IntOrString::Int(count)) => Some(count),
            _ => None,
        }
    }

    fn dns(&self) -> Option<&str> {
        self.kubelet.cluster_dns.as_deref()?.first().map(String::as_str)
    }

    fn custom_text(&self) -> Option<&str> {
        self.custom.as_deref().filter(|text| !text.is_empty())
    }

    /// The soft thresholds' grace periods as Go writes durations.
    fn grace_periods(&self) -> Result<Option<BTreeMap<String, String>>, UserDataError> {
        let Some(periods) = &self.kubelet.eviction_soft_grace_period else {
            return Ok(None);
        };
        let go = |(signal, period): (&String, &api::duration::DurationText)| {
            let parsed = period.parse().map_err(|_| UserDataError::GracePeriod(signal.clone()))?;
            Ok((signal.clone(), api::duration::format(parsed)))
        };
        periods.iter().map(go).collect::<Result<_, _>>().map(Some)
    }
}
