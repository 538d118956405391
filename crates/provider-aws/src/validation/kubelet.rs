//! Kubelet settings that would be refused, or passed over, by the node.

use api::aws::{AmiFamily, EC2NodeClass};
use serde_json::Value;

use super::{Verdict, invalid};
use crate::class_view;

/// What is wrong with the settings, if anything.
pub fn objection(class: &EC2NodeClass) -> Option<Verdict> {
    let settings = class.spec.kubelet.as_ref()?;
    let written = serde_json::to_value(settings).unwrap_or(Value::Null);
    let problems = written.as_object().map(api::validate::kubelet).unwrap_or_default();
    if !problems.is_empty() {
        let message = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        return Some(invalid("InvalidKubeletConfiguration", message));
    }
    let family = class_view::family(class);
    // AL2023 takes every setting as it is; only the author of a custom image knows what it takes.
    if matches!(family, AmiFamily::Al2023 | AmiFamily::Custom) {
        return None;
    }
    let mut unsupported = Vec::new();
    if family == AmiFamily::Bottlerocket && settings.pods_per_core.is_some() {
        unsupported.push("spec.kubelet.podsPerCore: Bottlerocket has no such setting");
    }
    if settings.cluster_dns.as_ref().is_some_and(|servers| servers.len() > 1) {
        unsupported.push("spec.kubelet.clusterDNS: images of this family take one address");
    }
    (!unsupported.is_empty()).then(|| invalid("UnsupportedKubeletConfiguration", unsupported.join("; ")))
}

#[cfg(test)]
mod tests {
    use api::aws::KubeletConfiguration;

    use super::*;
    use crate::testing::samples;

    fn reason(family: AmiFamily, kubelet: KubeletConfiguration) -> Option<&'static str> {
        let mut class = samples::class();
        class.spec.ami_family = Some(family);
        class.spec.kubelet = Some(kubelet);
        match objection(&class) {
            Some(Verdict::Invalid { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// AW24.6.12
    #[test]
    fn settings_that_the_kubelet_would_refuse_are_listed_together() {
        let text = |key: &str, value: &str| Some([(key.to_owned(), value.to_owned())].into());
        let mut class = samples::class();
        class.spec.kubelet = Some(KubeletConfiguration {
            eviction_hard: text("memory.free", "5%"),
            kube_reserved: text("cpu", "-1"),
            image_gc_high_threshold_percent: Some(10),
            image_gc_low_threshold_percent: Some(20),
            ..KubeletConfiguration::default()
        });
        let Some(Verdict::Invalid { reason, message }) = objection(&class) else {
            panic!("it is refused");
        };
        assert_eq!(reason, "InvalidKubeletConfiguration");
        for field in [
            "evictionHard[memory.free]",
            "kubeReserved[cpu]",
            "imageGCHighThresholdPercent",
        ] {
            assert!(message.contains(field), "{field} in {message}");
        }
    }

    /// AW24.6.13
    #[test]
    fn settings_that_the_image_cannot_apply_are_told() {
        let per_core = || KubeletConfiguration {
            pods_per_core: Some(4),
            ..KubeletConfiguration::default()
        };
        let dns = |count: usize| KubeletConfiguration {
            cluster_dns: Some(vec!["10.0.0.10".to_owned(); count]),
            ..KubeletConfiguration::default()
        };
        let unsupported = Some("UnsupportedKubeletConfiguration");
        assert_eq!(reason(AmiFamily::Bottlerocket, per_core()), unsupported);
        assert_eq!(reason(AmiFamily::Al2, per_core()), None);
        for family in [AmiFamily::Al2, AmiFamily::Bottlerocket, AmiFamily::Windows2022] {
            assert_eq!(reason(family.clone(), dns(2)), unsupported, "{family:?}");
            assert_eq!(reason(family, dns(1)), None);
        }
        assert_eq!(reason(AmiFamily::Al2023, dns(2)), None);
        assert_eq!(reason(AmiFamily::Custom, dns(2)), None);
    }
}
