//! The words that a provider brings along: which labels mean something, which are kept back.
//!
//! A value that the provider hands over, not a global that it sets, so that two providers can live in one process.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{LabelKey, LabelValue};
use crate::resources::ResourceName;

pub const NODEPOOL: &str = "karpenter.sh/nodepool";
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const REGION: &str = "topology.kubernetes.io/region";
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const ARCH: &str = "kubernetes.io/arch";
pub const OS: &str = "kubernetes.io/os";
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const REGISTERED: &str = "karpenter.sh/registered";
pub const INITIALIZED: &str = "karpenter.sh/initialized";

/// Old spellings of well-known keys, read as the new ones.
const NORMALIZED_KEYS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];

/// The key under which requirements on `key` are kept.
pub fn normalized_key(key: &str) -> &str {
    NORMALIZED_KEYS
        .iter()
        .find(|(old, _)| *old == key)
        .map_or(key, |(_, new)| new)
}

/// Labels and resources with a meaning to the scheduler and the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// Labels that every node of this provider has or is known to lack; a pod may ask for them although a pool does
    /// not mention them.
    pub well_known: BTreeSet<LabelKey>,
    /// Domains in which only well-known labels may be used.
    pub restricted_domains: BTreeSet<String>,
    /// Single labels that may never be used.
    pub restricted: BTreeSet<LabelKey>,
    /// Labels of restricted domains that pods may ask for all the same. Only pools that have one satisfy them.
    pub permitted: BTreeSet<LabelKey>,
    /// Keys whose possible values are known, for early mistakes in a pool.
    pub known_values: BTreeMap<LabelKey, BTreeSet<LabelValue>>,
    /// Resources that an overlay may not redefine.
    pub well_known_resources: BTreeSet<ResourceName>,
    /// The label that tells reservations apart, where the provider has any.
    pub reservation_id: Option<LabelKey>,
    /// Volume drivers whose pods are left to others.
    pub unsupported_provisioners: BTreeSet<String>,
    /// Topology keys of storage classes whose pods are left to others.
    pub unsupported_topology_keys: BTreeSet<String>,
}

impl Vocabulary {
    /// What Karpenter itself knows, without any provider.
    pub fn core() -> Self {
        let keys = [
            NODEPOOL,
            CAPACITY_TYPE,
            ZONE,
            REGION,
            INSTANCE_TYPE,
            ARCH,
            OS,
            WINDOWS_BUILD,
        ];
        Self {
            well_known: keys.into_iter().map(LabelKey::from).collect(),
            restricted_domains: BTreeSet::from(["karpenter.sh".to_owned()]),
            restricted: BTreeSet::from([LabelKey::from(HOSTNAME)]),
            permitted: BTreeSet::new(),
            known_values: BTreeMap::from([(
                LabelKey::from(CAPACITY_TYPE),
                ["on-demand", "spot", "reserved"]
                    .into_iter()
                    .map(LabelValue::from)
                    .collect(),
            )]),
            well_known_resources: ["cpu", "memory", "ephemeral-storage", "pods"]
                .into_iter()
                .map(ResourceName::from)
                .collect(),
            reservation_id: None,
            unsupported_provisioners: BTreeSet::new(),
            unsupported_topology_keys: BTreeSet::new(),
        }
    }

    pub fn is_well_known(&self, key: &str) -> bool {
        self.well_known.contains(key)
    }

    /// Whether users may not put this label on nodes or pools.
    pub fn is_restricted(&self, key: &str) -> bool {
        if self.is_well_known(key) || self.permitted.contains(key) {
            return false;
        }
        if self.restricted.contains(key) {
            return true;
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        self.restricted_domains.iter().any(|kept| {
            domain == kept
                || domain
                    .strip_suffix(kept.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        })
    }
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::core()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, restricted: bool) {
        assert_eq!(Vocabulary::core().is_restricted(key), restricted, "{key}");
    }

    #[test]
    fn only_well_known_labels_pass_in_a_restricted_domain() {
        check("karpenter.sh/capacity-type", false);
        check("karpenter.sh/registered", true);
        check("sub.karpenter.sh/x", true);
        check("notkarpenter.sh/x", false);
        check("karpenter.sh", false);
        check("kubernetes.io/hostname", true);
        check("kops.k8s.io/instancegroup", false);
    }

    #[test]
    fn old_keys_are_read_as_new_ones() {
        assert_eq!(normalized_key("beta.kubernetes.io/arch"), ARCH);
        assert_eq!(normalized_key("team"), "team");
    }
}
