//! Why a pod has no place.

use std::{fmt, sync::Arc};

use model::{LabelKey, PodKey, PoolName, Quantity, ResourceName, Resources, Taint, requirements::Incompatible};

/// Why a pod has no place in a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The snapshot does not know the pod.
    Unknown,
    /// The pod insists on a rule that this solver does not know.
    Unsupported(UnsupportedRule),
    /// What one of the pod's volumes needs cannot be told, or nobody will provide it.
    Volume(VolumeRefusal),
    /// Nothing that is there has room, and no pool launches anything for it. In the order in which the pools were
    /// asked.
    Pools(Vec<(PoolName, PoolRefusal)>),
    /// The machine planned for the pod came to nothing: the cheapest instance types alone do not have the variety that
    /// the pool demands.
    Truncated { pool: PoolName, lacking: Vec<Lacking> },
}

/// A rule that would have to be followed and cannot be. Better no node than a wrong one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsupportedRule {
    TopologySpread {
        key: String,
    },
    PodAffinity {
        key: String,
    },
    PodAntiAffinity {
        key: String,
    },
    /// A running pod keeps pods like this one away.
    RepelledBy {
        pod: PodKey,
        key: String,
    },
    Volume {
        name: String,
    },
    ResourceClaim {
        name: String,
    },
}

/// Why a pod has to wait for its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeRefusal {
    ClaimMissing {
        claim: PodKey,
    },
    ClaimDeleting {
        claim: PodKey,
    },
    ClaimLost {
        claim: PodKey,
    },
    VolumeMissing {
        claim: PodKey,
        volume: Arc<str>,
    },
    VolumeDeleting {
        claim: PodKey,
        volume: Arc<str>,
    },
    /// The claim names a volume, and the volume has not been given to it yet.
    BindingIncomplete {
        claim: PodKey,
        volume: Arc<str>,
    },
    /// The claim has neither a volume nor a class that could provide one.
    NoStorageClass {
        claim: PodKey,
    },
    StorageClassMissing {
        claim: PodKey,
        class: Arc<str>,
    },
    /// The volume is to come before the pod has a node, and is not there yet.
    BindsImmediately {
        claim: PodKey,
        class: Arc<str>,
    },
    UnsupportedTopologyKey {
        claim: PodKey,
        class: Arc<str>,
        key: LabelKey,
    },
    UnsupportedProvisioner {
        claim: PodKey,
        driver: Arc<str>,
    },
    /// The places of the pod's volumes can be combined in more ways than are tried.
    TooManyAlternatives {
        most: usize,
    },
}

/// Why a pool launches nothing for a pod: the first rule that fails.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolRefusal {
    /// The pool takes no part in this round.
    NotEligible(Ineligible),
    /// The pool's own requirements leave no instance type that can be bought, whatever the pod.
    NoInstanceTypes,
    Taint(Taint),
    Requirements(Incompatible),
    /// The pool may not have another node.
    NodeLimit {
        limit: Quantity,
    },
    /// Every instance type has more of a limited resource than the pool may still use.
    Limits {
        left: Resources,
    },
    /// Each instance type fails for a reason of its own.
    InstanceTypes(Unfit),
    /// Not enough variety among the instance types that would do.
    MinValues(Vec<Lacking>),
}

/// Why a pool takes no part in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ineligible {
    Static,
    Deleting,
    NotReady,
    /// The provider has named no instance types for it.
    NoCatalog,
}

/// How many instance types of a pool fail for which reason. Each is counted once, under the first that applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// More than the pool's limits leave.
    pub over_limits: usize,
    /// Labels that the pod or the pool does not admit.
    pub incompatible: usize,
    /// Nothing on sale in the zones and capacity types that are asked for.
    pub no_offering: usize,
    /// A daemon takes a port that the pod needs.
    pub ports: usize,
    pub too_small: usize,
    /// What has to fit: the pod alone, without daemons.
    pub requests: Resources,
    /// The largest amount of each requested resource among the types that are merely too small.
    pub largest: Resources,
}

/// A label of which too few values are on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    pub key: LabelKey,
    pub wanted: u32,
    pub available: u32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unknown => f.write_str("the pod is not there any more"),
            Refusal::Unsupported(rule) => rule.fmt(f),
            Refusal::Volume(reason) => reason.fmt(f),
            Refusal::Pools(pools) if pools.is_empty() => f.write_str("there is no node pool"),
            Refusal::Pools(pools) => {
                for (index, (pool, refusal)) in pools.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}pool {pool}: {refusal}")?;
                }
                Ok(())
            }
            Refusal::Truncated { pool, lacking } => {
                write!(f, "pool {pool}: the cheapest instance types alone do not offer ")?;
                list(f, lacking)
            }
        }
    }
}

impl fmt::Display for UnsupportedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsupportedRule::TopologySpread { key } => {
                write!(f, "required topology spread over {key} is not supported")
            }
            UnsupportedRule::PodAffinity { key } => write!(f, "required pod affinity over {key} is not supported"),
            UnsupportedRule::PodAntiAffinity { key } => {
                write!(f, "required pod anti-affinity over {key} is not supported")
            }
            UnsupportedRule::RepelledBy { pod, key } => {
                write!(
                    f,
                    "required anti-affinity of pod {pod} over {key} covers the pod and is not supported"
                )
            }
            UnsupportedRule::Volume { name } => write!(f, "volume {name} may bind the pod to a zone: not supported"),
            UnsupportedRule::ResourceClaim { name } => {
                write!(
                    f,
                    "resource claim {name} needs dynamic resource allocation: not supported"
                )
            }
        }
    }
}

impl fmt::Display for VolumeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimMissing { claim } => write!(f, "volume claim {claim} is not there"),
            Self::ClaimDeleting { claim } => write!(f, "volume claim {claim} is being deleted"),
            Self::ClaimLost { claim } => write!(f, "volume claim {claim} has lost its volume"),
            Self::VolumeMissing { claim, volume } => {
                write!(f, "volume {volume} of claim {claim} is not there")
            }
            Self::VolumeDeleting { claim, volume } => {
                write!(f, "volume {volume} of claim {claim} is being deleted")
            }
            Self::BindingIncomplete { claim, volume } => {
                write!(f, "volume claim {claim} is not bound to volume {volume} yet")
            }
            Self::NoStorageClass { claim } => write!(f, "volume claim {claim} has no volume and no storage class"),
            Self::StorageClassMissing { claim, class } => {
                write!(f, "storage class {class} of volume claim {claim} is not there")
            }
            Self::BindsImmediately { claim, class } => {
                write!(
                    f,
                    "volume claim {claim} is not bound, and storage class {class} binds immediately"
                )
            }
            Self::UnsupportedTopologyKey { claim, class, key } => write!(
                f,
                "storage class {class} of volume claim {claim} is tied to {key}, which the provider does not support"
            ),
            Self::UnsupportedProvisioner { claim, driver } => {
                write!(
                    f,
                    "volume claim {claim} uses {driver}, which the provider does not support"
                )
            }
            Self::TooManyAlternatives { most } => {
                write!(f, "the places of its volumes can be combined in more than {most} ways")
            }
        }
    }
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolRefusal::NotEligible(reason) => reason.fmt(f),
            PoolRefusal::NoInstanceTypes => f.write_str("its requirements leave no instance type that is on sale"),
            PoolRefusal::Taint(taint) => write!(f, "taint {taint} is not tolerated"),
            PoolRefusal::Requirements(reason) => reason.fmt(f),
            PoolRefusal::NodeLimit { limit } => write!(f, "its limit of {limit} nodes is reached"),
            PoolRefusal::Limits { left } => write!(f, "every instance type exceeds what its limits leave ({left})"),
            PoolRefusal::InstanceTypes(unfit) => unfit.fmt(f),
            PoolRefusal::MinValues(lacking) => {
                f.write_str("the instance types that suit do not offer ")?;
                list(f, lacking)
            }
        }
    }
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ineligible::Static => "it is static",
            Ineligible::Deleting => "it is being deleted",
            Ineligible::NotReady => "it is not ready",
            Ineligible::NoCatalog => "the provider names no instance types for it",
        })
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut count = |number: usize, why: &str| {
            if number > 0 {
                parts.push(format!("{number} {why}"));
            }
        };
        count(self.over_limits, "beyond the limits");
        count(self.incompatible, "with other labels");
        count(self.no_offering, "not on sale there");
        count(self.ports, "with a daemon on the pod's port");
        count(self.too_small, "too small");
        write!(f, "no instance type fits ({})", parts.join(", "))?;
        if self.too_small > 0 {
            let resources = self
                .requests
                .iter()
                .filter(|(name, needed)| *needed > self.largest.get(name.as_str()));
            let short: Vec<(&ResourceName, Quantity)> = resources.collect();
            for (resource, needed) in short {
                let most = self.largest.get(resource.as_str());
                write!(f, ", {resource} {needed} is asked for and the largest has {most} left")?;
            }
        }
        // The suffixes m and M differ by nine powers of ten; who asks for a million cores meant thousandths.
        if self.requests.get("cpu") >= Quantity::from_int(1_000_000) {
            f.write_str(" (was M written for m in the cpu request?)")?;
        }
        Ok(())
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} values of {} (there are {})",
            self.wanted, self.key, self.available
        )
    }
}

fn list(f: &mut fmt::Formatter<'_>, lacking: &[Lacking]) -> fmt::Result {
    for (index, one) in lacking.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{one}")?;
    }
    Ok(())
}
