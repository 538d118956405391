//! The static hash of a class on the class and on its claims.

use api::{
    FieldError,
    aws::EC2NodeClassSpec,
    hash::{Ec2Version, ec2_node_class},
};

/// The version that is published: upstream 1.14's, so that a cluster changes hands without drift.
pub const VERSION: Ec2Version = Ec2Version::V5;

/// What a claim of the class carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped<'a> {
    pub version: Option<&'a str>,
    pub drifted: bool,
}

/// What to write on a claim whose hash is of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restamp {
    /// Nothing: the versions agree, and a difference in the hashes is drift.
    Keep,
    /// The hash of today's class, because that of then says nothing in this version.
    VersionAndHash,
    /// The claim has drifted already, and a new hash must not make that undone.
    VersionAlone,
}

pub fn hash(spec: &EC2NodeClassSpec, ca_bundle: &str) -> Result<String, FieldError> {
    ec2_node_class(spec, ca_bundle, VERSION)
}

/// How to bring a claim to the current version. `class_version` is what the class itself still carries: once that is
/// current, so are its claims.
pub fn restamp(class_version: Option<&str>, claim: Stamped<'_>) -> Restamp {
    let current = Some(VERSION.as_str());
    match (class_version == current || claim.version == current, claim.drifted) {
        (true, _) => Restamp::Keep,
        (false, true) => Restamp::VersionAlone,
        (false, false) => Restamp::VersionAndHash,
    }
}

#[cfg(test)]
mod tests {
    use api::aws::AmiFamily;
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;
    use crate::testing::samples;

    /// AW24.8.6
    #[test]
    fn claims_of_another_version_are_brought_up_to_date() {
        let claim = |version, drifted| Stamped { version, drifted };
        let old = Some("v4");
        assert_eq!(restamp(old, claim(old, false)), Restamp::VersionAndHash);
        assert_eq!(restamp(None, claim(None, false)), Restamp::VersionAndHash);
        assert_eq!(restamp(old, claim(old, true)), Restamp::VersionAlone);
        assert_eq!(restamp(old, claim(Some("v5"), false)), Restamp::Keep);
        assert_eq!(restamp(Some("v5"), claim(old, false)), Restamp::Keep);
    }

    /// AW24.8.5
    #[test]
    fn what_nodes_are_made_with_counts_and_how_it_is_found_does_not() {
        let class = samples::class();
        let before = hash(&class.spec, "ca").unwrap();
        let changed = |change: fn(&mut EC2NodeClassSpec)| {
            let mut spec = class.spec.clone();
            change(&mut spec);
            hash(&spec, "ca").unwrap() != before
        };
        assert!(changed(|spec| spec.user_data = Some("x".to_owned())));
        assert!(changed(|spec| {
            spec.kubelet = Some(api::aws::KubeletConfiguration {
                max_pods: Some(IntOrString::Int(12)),
                ..api::aws::KubeletConfiguration::default()
            });
        }));
        assert!(!changed(|spec| spec.ip_prefix_count = Some(3)));
        assert!(!changed(
            |spec| spec.subnet_selector_terms = vec![api::aws::SubnetSelectorTerm::default()]
        ));
        assert!(
            !changed(|spec| spec.ami_family = Some(AmiFamily::Al2023)),
            "it is the alias's family"
        );
        assert_ne!(hash(&class.spec, "other").unwrap(), before);
    }
}
