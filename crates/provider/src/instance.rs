//! What goes to the cloud and what comes back.

use jiff::Timestamp;
use model::{ClaimName, Labels, PoolName, ProviderId, Requirements, Resources, Taint, node::NodeClassRef};

/// One instance, asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRequest {
    pub claim: ClaimName,
    /// The claim's UID. Equal tokens mean the same instance.
    pub token: String,
    pub pool: Option<PoolName>,
    pub class: NodeClassRef,
    /// What the instance's type, zone, capacity type and other labels may be. The provider buys the cheapest available
    /// offering that these admit and that holds `requests`.
    pub requirements: Requirements,
    pub requests: Resources,
    /// Labels, annotations and taints that the node is to join with.
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
}

/// What the cloud launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    pub provider_id: ProviderId,
    pub image_id: Option<String>,
    pub capacity: Resources,
    pub allocatable: Resources,
    /// Labels that the choice of the instance settled: type, zone, capacity type, …
    pub labels: Labels,
    pub annotations: Labels,
}

/// An instance that the cloud has.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub provider_id: ProviderId,
    /// The claim it was launched for, where the cloud's tags still say so.
    pub claim: Option<ClaimName>,
    pub launched: Timestamp,
    pub labels: Labels,
}

/// How far a termination has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// Asked for, not finished.
    Requested,
    /// Nothing is left.
    Gone,
}
