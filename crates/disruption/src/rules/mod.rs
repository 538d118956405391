//! What keeps a node where it is. One rule per file; the first that objects is the answer.

mod do_not_disrupt;
mod lifecycle;
mod pods;
mod pool;

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use model::{PodKey, Pool, PoolName, Snapshot, StateNode};

use crate::{candidate::Class, guards::Guards};

/// Why a node is not a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Blocked {
    /// The claim has no node yet.
    NoNode,
    NotInitialized,
    /// Somebody is removing it already.
    Leaving,
    /// Pods are on their way to it, and are waited for until then.
    Nominated(Timestamp),
    /// `karpenter.sh/do-not-disrupt` on the node.
    NodeProtected,
    /// It does not say which pool it belongs to.
    NoPoolLabel,
    PoolUnknown(PoolName),
    /// The provider has not told, or does not know, what the pool may launch.
    NoInstanceTypes(PoolName),
    /// `karpenter.sh/do-not-disrupt` on a pod, for good or until a moment that may be known.
    PodProtected {
        pod: PodKey,
        until: Option<Timestamp>,
    },
    /// A disruption budget allows no eviction of the pod now.
    Budget {
        pod: PodKey,
        budget: PodKey,
    },
    /// More than one disruption budget covers the pod, which the eviction API refuses.
    SeveralBudgets {
        pod: PodKey,
        budgets: Vec<PodKey>,
    },
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocked::NoNode => write!(f, "its node has not joined the cluster"),
            Blocked::NotInitialized => write!(f, "the node is still starting"),
            Blocked::Leaving => write!(f, "the node is on its way out already"),
            Blocked::Nominated(until) => write!(f, "pending pods are expected on the node until {until:.0}"),
            Blocked::NodeProtected => write!(f, "annotation karpenter.sh/do-not-disrupt is set on the node"),
            Blocked::NoPoolLabel => write!(f, "label karpenter.sh/nodepool is missing"),
            Blocked::PoolUnknown(pool) => write!(f, "NodePool {pool} does not exist"),
            Blocked::NoInstanceTypes(pool) => write!(f, "no instance types are known for NodePool {pool}"),
            Blocked::PodProtected { pod, until: None } => {
                write!(f, "pod {pod} has annotation karpenter.sh/do-not-disrupt")
            }
            Blocked::PodProtected {
                pod,
                until: Some(until),
            } => write!(
                f,
                "pod {pod} has annotation karpenter.sh/do-not-disrupt until {until:.0}"
            ),
            Blocked::Budget { pod, budget } => {
                write!(f, "PodDisruptionBudget {budget} allows no eviction of pod {pod} now")
            }
            Blocked::SeveralBudgets { pod, budgets } => {
                let names: Vec<String> = budgets.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "more than one PodDisruptionBudget covers pod {pod}, so that it cannot be evicted: {}",
                    names.join(", ")
                )
            }
        }
    }
}

impl Blocked {
    /// A pod's objection, which a termination grace period outlasts.
    fn is_pods_word(&self) -> bool {
        matches!(
            self,
            Blocked::PodProtected { .. } | Blocked::Budget { .. } | Blocked::SeveralBudgets { .. }
        )
    }

    /// The word that `plan` and metrics use.
    pub fn word(&self) -> &'static str {
        match self {
            Blocked::NoNode | Blocked::NotInitialized => "NodeStarting",
            Blocked::Leaving => "Leaving",
            Blocked::Nominated(_) => "Nominated",
            Blocked::NodeProtected | Blocked::PodProtected { .. } => "DoNotDisrupt",
            Blocked::NoPoolLabel | Blocked::PoolUnknown(_) => "NoNodePool",
            Blocked::NoInstanceTypes(_) => "UnknownPrice",
            Blocked::Budget { .. } | Blocked::SeveralBudgets { .. } => "PodDisruptionBudget",
        }
    }

    /// What is in the way, where it has a name.
    pub fn object(&self) -> Option<String> {
        match self {
            Blocked::PodProtected { pod, .. } | Blocked::SeveralBudgets { pod, .. } => Some(pod.to_string()),
            Blocked::Budget { budget, .. } => Some(budget.to_string()),
            Blocked::PoolUnknown(pool) | Blocked::NoInstanceTypes(pool) => Some(pool.to_string()),
            Blocked::NoNode
            | Blocked::NotInitialized
            | Blocked::Leaving
            | Blocked::Nominated(_)
            | Blocked::NodeProtected
            | Blocked::NoPoolLabel => None,
        }
    }
}

/// The pool of a node that may go, or the first rule that holds it back.
pub fn first_to_block<'a>(
    snapshot: &'a Snapshot,
    guards: &mut Guards<'a>,
    node: &'a StateNode,
    class: Class,
    now: Timestamp,
) -> Result<&'a Arc<Pool>, Blocked> {
    lifecycle::check(node, now)?;
    do_not_disrupt::check(node)?;
    let pool = pool::check(snapshot, node)?;
    match pods::check(snapshot, guards, node, now) {
        Err(blocked) if blocked.is_pods_word() && class == Class::Eventual && has_grace_period(node) => Ok(pool),
        Err(blocked) => Err(blocked),
        Ok(()) => Ok(pool),
    }
}

fn has_grace_period(node: &StateNode) -> bool {
    node.claim
        .as_ref()
        .is_some_and(|claim| claim.termination_grace.is_some())
}
