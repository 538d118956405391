//! Label keys that changed their name or left.

use api::labels::{self, AWS_DOMAIN, CAPACITY_TYPE, HOSTNAME};

pub use api::labels::PROVISIONER_NAME;
pub use api::labels::annotations::{DO_NOT_CONSOLIDATE, DO_NOT_EVICT};

/// The prefix of cloud options that early Provisioners took as labels.
pub const EARLY_PREFIX: &str = "node.k8s.aws/";
pub const EARLY_CAPACITY_TYPE: &str = "node.k8s.aws/capacity-type";
const INSTANCE_PODS: &str = "karpenter.k8s.aws/instance-pods";

/// What becomes of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    Stays(&'a str),
    Goes(&'static str),
}

pub fn fate(key: &str) -> Fate<'_> {
    match key {
        EARLY_CAPACITY_TYPE => Fate::Stays(CAPACITY_TYPE),
        INSTANCE_PODS => Fate::Goes("no node has this label any more"),
        HOSTNAME => Fate::Goes("the name of a node is not known before it is launched"),
        other => Fate::Stays(labels::normalized(other)),
    }
}

/// Whether a key says which instance types are meant, so that the default of admission stays away.
pub fn narrows_instance_types(key: &str) -> bool {
    let of_instance = |name: &str| key.strip_prefix(AWS_DOMAIN).is_some_and(|rest| rest == name);
    key == labels::INSTANCE_TYPE
        || of_instance("/instance-family")
        || of_instance("/instance-category")
        || of_instance("/instance-generation")
}

/// The new name of a label or annotation key in workloads, if it has one.
pub fn renamed_in_workloads(key: &str) -> Option<&'static str> {
    match key {
        PROVISIONER_NAME => Some(labels::NODE_POOL),
        EARLY_CAPACITY_TYPE => Some(CAPACITY_TYPE),
        DO_NOT_EVICT | DO_NOT_CONSOLIDATE => Some(labels::annotations::DO_NOT_DISRUPT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_renamed_or_leave_and_others_stay() {
        assert_eq!(
            fate("node.k8s.aws/capacity-type"),
            Fate::Stays("karpenter.sh/capacity-type")
        );
        assert_eq!(fate("beta.kubernetes.io/arch"), Fate::Stays("kubernetes.io/arch"));
        assert_eq!(
            fate("failure-domain.beta.kubernetes.io/zone"),
            Fate::Stays("topology.kubernetes.io/zone")
        );
        assert_eq!(fate("example.com/team"), Fate::Stays("example.com/team"));
        assert!(matches!(fate("karpenter.k8s.aws/instance-pods"), Fate::Goes(_)));
        assert!(matches!(fate("kubernetes.io/hostname"), Fate::Goes(_)));
    }

    #[test]
    fn only_karpenters_own_instance_keys_narrow_the_types() {
        for key in [
            "node.kubernetes.io/instance-type",
            "karpenter.k8s.aws/instance-family",
            "karpenter.k8s.aws/instance-category",
            "karpenter.k8s.aws/instance-generation",
        ] {
            assert!(narrows_instance_types(key), "{key}");
        }
        assert!(!narrows_instance_types("node.kubernetes.io/instance-family"));
        assert!(!narrows_instance_types("karpenter.k8s.aws/instance-cpu"));
    }
}
