//! Why a pod's devices cannot be had.

use std::sync::Arc;

use model::PodKey;

/// Why a pod's claims for devices cannot be met, or not by the host that was tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DraRefusal {
    #[error(
        "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter, unless it runs with \
         --ignore-dra-requests=false"
    )]
    Ignored,
    #[error("resource claim {claim} does not exist: the pod is tried again once it does")]
    ClaimMissing { claim: PodKey },
    #[error(
        "no resource claim has been made yet for {name:?} from its template: the pod is tried again once there is one"
    )]
    ClaimNotMade { name: String },
    #[error("resource claim {claim} is being deleted: the pod is tried again once there is a new one")]
    ClaimDeleting { claim: PodKey },
    #[error("resource claim {claim}, request {request:?}: device class {class:?} does not exist, create it")]
    ClassMissing {
        claim: PodKey,
        request: String,
        class: Arc<str>,
    },
    #[error("resource claim {claim}, request {request:?}: selector {expression:?} cannot be used: {problem}")]
    Selector {
        claim: PodKey,
        request: String,
        expression: Arc<str>,
        problem: String,
    },
    #[error("resource claim {claim}: {what} is not supported")]
    Unsupported { claim: PodKey, what: String },
    #[error("resource claim {claim} asks for {devices} devices; a claim can have at most {most}, ask for fewer")]
    TooManyDevices { claim: PodKey, devices: usize, most: usize },
    #[error("the claims of the pod ask for {devices} devices together; at most {most} are looked for, ask for fewer")]
    TooManyForPod { devices: usize, most: usize },
    #[error("the devices of resource claim {claim} cannot be reached from this node")]
    OutOfReach { claim: PodKey },
    #[error("resource claim {claim} has devices of another node that is planned: its pods have to go there")]
    BoundElsewhere { claim: PodKey },
    #[error("resource claim {claim}, request {request:?} asks for all devices, but pool {pool} is {problem}")]
    PoolUnusable {
        claim: PodKey,
        request: String,
        pool: String,
        problem: PoolProblem,
    },
    #[error("no instance type has the devices left for request {request:?} of resource claim {claim}")]
    NoDevices { claim: PodKey, request: String },
    #[error(
        "devices for resource claim {claim} were not found within {steps} steps: fewer devices per claim, or narrower \
         selectors, make the search shorter"
    )]
    SearchTooLong { claim: PodKey, steps: u32 },
}

/// What is wrong with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolProblem {
    /// Not all of its slices are there.
    Incomplete,
    /// Device names repeat, or devices draw on counters that do not exist.
    Invalid,
}

impl std::fmt::Display for PoolProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PoolProblem::Incomplete => "incomplete: its driver has not published all slices yet",
            PoolProblem::Invalid => "invalid: its driver repeats a device or draws on an unknown counter",
        })
    }
}
