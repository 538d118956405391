//! The rules a plan can break.

use std::fmt;

use model::{InstanceTypeName, LabelKey, NodeKey, PodKey, PoolName, ResourceName, Taint, resources::Shortfall};

/// Where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// By its position in the plan.
    Launch(usize),
    Node(NodeKey),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Launch(index) => write!(f, "launch {}", index + 1),
            Place::Node(node) => write!(f, "node {node}"),
        }
    }
}

/// A rule of the cluster that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("pod {pod} is in the plan more than once")]
    PodTwice { pod: PodKey },
    #[error("pod {pod} on {place} is not known")]
    UnknownPod { place: Place, pod: PodKey },
    #[error("node {node} takes no pods")]
    NodeGone { node: NodeKey },
    #[error("pool {pool} is not known")]
    UnknownPool { pool: PoolName },
    #[error("pool {pool} launches nothing")]
    ClosedPool { pool: PoolName },
    #[error("launch {} lists no instance type", launch + 1)]
    NothingToBuy { launch: usize },
    #[error("launch {} cannot buy {instance_type} as it is described", launch + 1)]
    NotForSale {
        launch: usize,
        instance_type: InstanceTypeName,
    },
    #[error("launch {} offers too few values of {key}", launch + 1)]
    TooAlike { launch: usize, key: LabelKey },
    #[error("{place}{}: {}", on(instance_type.as_ref()), list(short))]
    Overfull {
        place: Place,
        instance_type: Option<InstanceTypeName>,
        short: Vec<Shortfall>,
    },
    #[error("pod {pod} does not tolerate {taint} of {place}")]
    Untolerated { place: Place, pod: PodKey, taint: Taint },
    #[error("pod {pod} asks for labels that {place} need not have")]
    WrongLabels { place: Place, pod: PodKey },
    #[error("pod {pod} needs a port that is taken on {place}")]
    PortTaken { place: Place, pod: PodKey },
    #[error("pool {pool} may exceed its limit for {resource}")]
    OverLimit { pool: PoolName, resource: ResourceName },
    #[error("pod {pod} on {place} has rules about {rule}, which nobody has checked")]
    Unverifiable {
        place: Place,
        pod: PodKey,
        rule: &'static str,
    },
}

fn on(instance_type: Option<&InstanceTypeName>) -> String {
    instance_type.map(|name| format!(" as {name}")).unwrap_or_default()
}

fn list(short: &[Shortfall]) -> String {
    short.iter().map(Shortfall::to_string).collect::<Vec<_>>().join(", ")
}
