//! Kubelet settings that would be refused, or passed over, by the node.

use api::aws::{AmiFamily, EC2NodeClass, KubeletConfiguration};
use serde_json::Value;

use super::{Verdict, invalid};
use crate::{
    catalog::{CatalogError, RegionCatalog},
    class_view,
    instance_type::{self, Formulas},
};

/// What is wrong with the settings, if anything.
pub fn objection(class: &EC2NodeClass, formulas: &Formulas) -> Option<Verdict> {
    let settings = class.spec.kubelet.as_ref()?;
    structure(settings)
        .or_else(|| expressions(settings, formulas))
        .or_else(|| unsupported(class, settings))
}

/// What is wrong with the expressions of the class on the types that there are, if anything.
pub fn misfit(class: &EC2NodeClass, catalog: &RegionCatalog) -> Result<Option<Verdict>, CatalogError> {
    let settings = class.spec.kubelet.as_ref();
    if settings.is_none_or(|settings| instance_type::expressions(settings).is_empty()) {
        return Ok(None);
    }
    let misfit = catalog.misfit(class)?;
    Ok(misfit.map(|misfit| invalid("KubeletExpressionEvaluationFailed", misfit.to_string())))
}

fn structure(settings: &KubeletConfiguration) -> Option<Verdict> {
    let written = serde_json::to_value(settings).unwrap_or(Value::Null);
    let problems = written.as_object().map(api::validate::kubelet).unwrap_or_default();
    listed("InvalidKubeletConfiguration", problems)
}

fn expressions(settings: &KubeletConfiguration, formulas: &Formulas) -> Option<Verdict> {
    let written = instance_type::expressions(settings);
    if !formulas.are_allowed() {
        let problem = |(field, text): (String, &str)| {
            format!("spec.{field}: {text:?} is an expression, and those need --aws-feature-gates=NodeClassCEL=true")
        };
        return listed("KubeletExpressionsDisabled", written.into_iter().map(problem));
    }
    let problem = |(field, text): (String, &str)| {
        let wrong = formulas.of(text).err()?;
        Some(format!("spec.{field}: {text:?} {wrong}"))
    };
    listed("KubeletExpressionInvalid", written.into_iter().filter_map(problem))
}

/// What images of the family pass over.
fn unsupported(class: &EC2NodeClass, settings: &KubeletConfiguration) -> Option<Verdict> {
    let family = class_view::family(class);
    // AL2023 takes every setting as it is; only the author of a custom image knows what it takes.
    if matches!(family, AmiFamily::Al2023 | AmiFamily::Custom) {
        return None;
    }
    let mut unsupported: Vec<String> = settings
        .passed_on
        .keys()
        .map(|field| format!("spec.kubelet.{field}: only images of AL2023 take this setting"))
        .collect();
    if family == AmiFamily::Bottlerocket && settings.pods_per_core.is_some() {
        unsupported.push("spec.kubelet.podsPerCore: Bottlerocket has no such setting".to_owned());
    }
    if settings.cluster_dns.as_ref().is_some_and(|servers| servers.len() > 1) {
        unsupported.push("spec.kubelet.clusterDNS: images of this family take one address".to_owned());
    }
    listed("UnsupportedKubeletConfiguration", unsupported)
}

/// All problems of one kind together.
fn listed(reason: &'static str, problems: impl IntoIterator<Item = impl ToString>) -> Option<Verdict> {
    let problems: Vec<String> = problems.into_iter().map(|problem| problem.to_string()).collect();
    (!problems.is_empty()).then(|| invalid(reason, problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::samples;

    fn reason(family: AmiFamily, kubelet: KubeletConfiguration) -> Option<&'static str> {
        let mut class = samples::class();
        class.spec.ami_family = Some(family);
        class.spec.kubelet = Some(kubelet);
        match objection(&class, &samples::formulas()) {
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
        let Some(Verdict::Invalid { reason, message }) = objection(&class, &samples::formulas()) else {
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

    /// AW24.6.12
    #[test]
    fn settings_that_the_kubelet_does_not_know_and_those_of_karpenter_are_refused() {
        for (field, value) in [
            ("noSuchSetting", Value::Bool(true)),
            ("seccompDefault", Value::from("yes")),
            ("registerWithTaints", Value::Array(Vec::new())),
        ] {
            let kubelet = KubeletConfiguration {
                passed_on: [(field.to_owned(), value)].into(),
                ..KubeletConfiguration::default()
            };
            let found = reason(AmiFamily::Al2023, kubelet);
            assert_eq!(found, Some("InvalidKubeletConfiguration"), "{field}");
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
        let passed_on = || KubeletConfiguration {
            passed_on: [("seccompDefault".to_owned(), Value::Bool(true))].into(),
            ..KubeletConfiguration::default()
        };
        let unsupported = Some("UnsupportedKubeletConfiguration");
        assert_eq!(reason(AmiFamily::Bottlerocket, per_core()), unsupported);
        assert_eq!(reason(AmiFamily::Al2, per_core()), None);
        for family in [AmiFamily::Al2, AmiFamily::Bottlerocket, AmiFamily::Windows2022] {
            assert_eq!(reason(family.clone(), dns(2)), unsupported, "{family:?}");
            assert_eq!(reason(family.clone(), dns(1)), None);
            assert_eq!(reason(family, passed_on()), unsupported);
        }
        assert_eq!(reason(AmiFamily::Al2023, passed_on()), None);
        assert_eq!(reason(AmiFamily::Custom, passed_on()), None);
        assert_eq!(reason(AmiFamily::Al2023, dns(2)), None);
        assert_eq!(reason(AmiFamily::Custom, dns(2)), None);
    }
}
