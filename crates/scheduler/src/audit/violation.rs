//! The rules a plan can break.

use std::{fmt, sync::Arc};

use model::{
    InstanceTypeName, LabelKey, LabelValue, NodeKey, PodKey, PoolName, ResourceName, Taint, resources::Shortfall,
};

/// Where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    #[error("launch {} is from pool {pool}, which is not known", launch + 1)]
    UnknownPool { launch: usize, pool: PoolName },
    #[error("launch {} is from pool {pool}, which launches nothing", launch + 1)]
    ClosedPool { launch: usize, pool: PoolName },
    #[error("launch {} is for nobody", launch + 1)]
    Purposeless { launch: usize },
    #[error("launch {} lists no instance type", launch + 1)]
    NothingToBuy { launch: usize },
    #[error("launch {} cannot buy {instance_type} as it is described", launch + 1)]
    NotForSale {
        launch: usize,
        instance_type: InstanceTypeName,
    },
    #[error("launch {} has to be what pool {pool} does not admit", launch + 1)]
    OutsidePool { launch: usize, pool: PoolName },
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
    #[error("pod {pod} on {place} uses volume claim {claim}, which cannot be used")]
    VolumeUnusable { place: Place, pod: PodKey, claim: PodKey },
    #[error("pod {pod} cannot reach the volume of claim {claim} from {place}")]
    VolumeElsewhere { place: Place, pod: PodKey, claim: PodKey },
    #[error("node {node} attaches {most} volumes of {driver}, not {wanted}")]
    TooManyVolumes {
        node: NodeKey,
        driver: Arc<str>,
        wanted: usize,
        most: u32,
    },
    #[error("pool {pool} may exceed its limit for {resource}")]
    OverLimit {
        pool: PoolName,
        resource: ResourceName,
        /// How many of the pool's launches are too many, counted from the last.
        excess: usize,
    },
    #[error("reservation {id} holds {most} machines and is promised to {promised}")]
    Overbooked { id: LabelValue, promised: usize, most: u32 },
    #[error("pod {pod} on {place} keeps away from pod {other} over {key}, and both may be in one domain")]
    TooNear {
        place: Place,
        pod: PodKey,
        other: PodKey,
        key: LabelKey,
    },
    #[error("pod {pod} on {place} finds none of the pods there that it asks for over {key}")]
    TooFar { place: Place, pod: PodKey, key: LabelKey },
    #[error("pod {pod} on {place} is spread over {key}: {count} where the least is {least} and the skew {max_skew}")]
    Uneven {
        place: Place,
        pod: PodKey,
        key: LabelKey,
        count: u32,
        least: u32,
        max_skew: u32,
    },
    #[error("pod {pod} is spread over {key}, which {place} does not have")]
    NoDomain { place: Place, pod: PodKey, key: LabelKey },
}

fn on(instance_type: Option<&InstanceTypeName>) -> String {
    instance_type.map(|name| format!(" as {name}")).unwrap_or_default()
}

fn list(short: &[Shortfall]) -> String {
    short.iter().map(Shortfall::to_string).collect::<Vec<_>>().join(", ")
}
