//! Why a pod has no place.

use std::{fmt, sync::Arc};

use model::{
    LabelKey, LabelValue, PodKey, PoolName, Quantity, Requirement, ResourceName, Resources, Taint,
    requirements::Incompatible,
};

use crate::{audit::Violation, dra::DraRefusal};

/// Why a pod has no place in a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The snapshot does not know the pod.
    Unknown,
    /// The devices that the pod claims cannot be told, or nobody looks for them.
    Devices(DraRefusal),
    /// The pod asks for something that no node can ever have.
    Invalid(InvalidPod),
    /// Only reserved capacity will do, and what is left of it is promised to other pods of this round. The next round
    /// decides anew.
    AwaitsReservation,
    /// What one of the pod's volumes needs cannot be told, or nobody will provide it.
    Volume(VolumeRefusal),
    /// Nothing that is there has room, and no pool launches anything for it. In the order in which the pools were
    /// asked.
    Pools(Vec<(PoolName, PoolRefusal)>),
    /// The machine planned for the pod came to nothing: the cheapest instance types alone do not have the variety that
    /// the pool demands.
    Truncated { pool: PoolName, lacking: Vec<Lacking> },
    /// The place planned for the pod breaks a rule of the cluster. That is a mistake of the solver, and the audit kept
    /// it from being acted upon.
    Audited(Violation),
}

impl Refusal {
    /// What each pool said, if pools were asked.
    pub fn pools(&self) -> Option<&[(PoolName, PoolRefusal)]> {
        match self {
            Refusal::Pools(pools) => Some(pools),
            _ => None,
        }
    }

    /// Whether people should hear of it. A pod that keeps away from our nodes on purpose has nothing to complain about,
    /// and one that waits for the next round is not refused for good.
    pub fn is_newsworthy(&self) -> bool {
        !matches!(self, Refusal::Invalid(InvalidPod::OptsOut) | Refusal::AwaitsReservation)
    }
}

/// A demand of a pod that no node can ever meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidPod {
    /// The pod asks for a node that belongs to no pool: it keeps away from ours on purpose.
    OptsOut,
    /// The label is not for pods to choose nodes by.
    Restricted { key: LabelKey },
    /// No node has two values of one label.
    Contradiction { key: LabelKey },
    /// None of the values exists.
    UnknownValues {
        requirement: Requirement,
        known: Vec<LabelValue>,
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
    /// None of the places where the pod's volumes are or can be is one of the pool's.
    Volumes(Incompatible),
    /// A rule between pods leaves no place.
    Rule(RuleRefusal),
    /// No machine of the pool would have the devices.
    Devices(DraRefusal),
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

/// A rule between pods that no domain satisfies as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRefusal {
    pub rule: RuleKind,
    pub key: LabelKey,
    /// The domains that there are, with the number of pods that count in each. Hosts are not listed.
    pub domains: Vec<(LabelValue, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    Spread,
    Affinity,
    AntiAffinity,
    /// The anti-affinity of other pods keeps this one away.
    Repelled,
}

/// How many domains a message lists before it counts the rest.
const SHOWN_DOMAINS: usize = 25;

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
            Refusal::Devices(reason) => reason.fmt(f),
            Refusal::Invalid(reason) => reason.fmt(f),
            Refusal::AwaitsReservation => {
                f.write_str("no compatible reserved offering is left in this round: all are promised to other pods")
            }
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
                write!(f, "pool {pool}: among the cheapest instance types ")?;
                list(f, lacking)
            }
            Refusal::Audited(violation) => write!(f, "the plan breaks a rule: {violation}"),
        }
    }
}

impl fmt::Display for InvalidPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidPod::OptsOut => f.write_str("the pod asks for a node that is in no node pool"),
            InvalidPod::Restricted { key } => {
                write!(
                    f,
                    "label {:?} is restricted: pods cannot choose nodes by it",
                    key.as_str()
                )
            }
            InvalidPod::Contradiction { key } => {
                write!(
                    f,
                    "label {:?} is asked for with values that exclude each other",
                    key.as_str()
                )
            }
            InvalidPod::UnknownValues { requirement, known } => {
                let known: Vec<&str> = known.iter().map(LabelValue::as_str).collect();
                write!(f, "{requirement} is asked for, known values are {}", known.join(", "))
            }
        }
    }
}

impl fmt::Display for RuleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.rule, self.key)?;
        if self.domains.is_empty() {
            return f.write_str(" finds no domain at all");
        }
        f.write_str(" is met by none of ")?;
        for (index, (domain, count)) in self.domains.iter().take(SHOWN_DOMAINS).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{domain} ({count})")?;
        }
        match self.domains.len().saturating_sub(SHOWN_DOMAINS) {
            0 => Ok(()),
            rest => write!(f, " and {rest} others"),
        }
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleKind::Spread => "topology spread",
            RuleKind::Affinity => "pod affinity",
            RuleKind::AntiAffinity => "pod anti-affinity",
            RuleKind::Repelled => "anti-affinity of other pods",
        })
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
            PoolRefusal::NoInstanceTypes => {
                f.write_str("nodepool requirements filtered out all available instance types")
            }
            PoolRefusal::Taint(taint) => write!(f, "taint {taint} is not tolerated"),
            PoolRefusal::Requirements(reason) => reason.fmt(f),
            PoolRefusal::Volumes(reason) => write!(f, "the pod's volumes: {reason}"),
            PoolRefusal::Rule(reason) => reason.fmt(f),
            PoolRefusal::Devices(reason) => reason.fmt(f),
            PoolRefusal::NodeLimit { limit } => write!(f, "its limit of {limit} nodes is reached"),
            PoolRefusal::Limits { left } => write!(f, "every instance type exceeds what its limits leave ({left})"),
            PoolRefusal::InstanceTypes(unfit) => unfit.fmt(f),
            PoolRefusal::MinValues(lacking) => list(f, lacking),
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
        write!(
            f,
            "no instance type met the scheduling requirements or had a required offering ({})",
            parts.join(", ")
        )?;
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
            "{} values of {} are asked for, there are {}",
            self.wanted, self.key, self.available
        )
    }
}

fn list(f: &mut fmt::Formatter<'_>, lacking: &[Lacking]) -> fmt::Result {
    let keys: Vec<&str> = lacking.iter().map(|one| one.key.as_str()).collect();
    write!(
        f,
        "minValues requirement is not met for label(s) (label(s)=[{}]): ",
        keys.join(" ")
    )?;
    for (index, one) in lacking.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{one}")?;
    }
    Ok(())
}
