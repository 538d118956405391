//! What a document is.

use serde_json::Value;

use crate::alpha::Generation;
use crate::alpha::launch_template::DESCRIPTION_FIELD;
use crate::{manifest, settings, values};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Provisioner(Generation),
    /// v1alpha1 and v1alpha2 of the releases 0.2.x.
    TooOld,
    NodeTemplate,
    Machine,
    BetaPool,
    BetaClaim,
    BetaClass,
    Pool,
    Claim,
    Class,
    Settings,
    Values,
    LaunchTemplates,
    Other,
}

pub fn of(document: &Value) -> Kind {
    let (group, version) = manifest::group_version(document);
    match (group, version, manifest::text(document, "kind")) {
        ("karpenter.sh", "v1alpha3", "Provisioner") => Kind::Provisioner(Generation::V1Alpha3),
        ("karpenter.sh", "v1alpha4", "Provisioner") => Kind::Provisioner(Generation::V1Alpha4),
        ("karpenter.sh", "v1alpha5", "Provisioner") => Kind::Provisioner(Generation::V1Alpha5),
        ("provisioning.karpenter.sh", _, "Provisioner") => Kind::TooOld,
        ("karpenter.k8s.aws", "v1alpha1", "AWSNodeTemplate") => Kind::NodeTemplate,
        ("karpenter.sh", "v1alpha5", "Machine") => Kind::Machine,
        ("karpenter.sh", "v1beta1", "NodePool") => Kind::BetaPool,
        ("karpenter.sh", "v1beta1", "NodeClaim") => Kind::BetaClaim,
        ("karpenter.k8s.aws", "v1beta1", "EC2NodeClass") => Kind::BetaClass,
        ("karpenter.sh", "v1", "NodePool") => Kind::Pool,
        ("karpenter.sh", "v1", "NodeClaim") => Kind::Claim,
        ("karpenter.k8s.aws", "v1", "EC2NodeClass") => Kind::Class,
        ("", "v1", "ConfigMap") if manifest::name(document) == settings::CONFIG_MAP => Kind::Settings,
        ("", "", "") if document.get(DESCRIPTION_FIELD).is_some() => Kind::LaunchTemplates,
        ("", "", "") if values::is_values(document) => Kind::Values,
        _ => Kind::Other,
    }
}

/// `Provisioner default`, or what else a person would call the document.
pub fn title(document: &Value) -> String {
    match of(document) {
        Kind::Values => "Helm values".to_owned(),
        Kind::LaunchTemplates => "launch templates".to_owned(),
        _ => format!("{} {}", manifest::text(document, "kind"), manifest::name(document)),
    }
}
