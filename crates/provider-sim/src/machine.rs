//! One machine of the simulated cloud: what it is, and which moments of its life are settled.
//!
//! ```text
//!  launched ──► pending ──boots──► running ──joins──► (its Node exists)
//!                  │                  │  notice
//!                  └─── terminate ────┴────────────► terminating ──► gone
//! ```
//!
//! The moments are fixed when they are decided, and the state is read off the clock. There is no timer that a
//! crash could lose and no task that has to keep up.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use model::{
    CapacityType, ClaimName, InstanceTypeName, Labels, NodeName, PoolName, ProviderId, Resources, Taint, Zone,
};

/// What every provider id of this cloud begins with.
pub const PROVIDER_ID_PREFIX: &str = "kwok://";

/// The id of the machine behind a node.
pub fn provider_id(node: &str) -> ProviderId {
    format!("{PROVIDER_ID_PREFIX}{node}").into()
}

/// The node of a machine, if the id is one of this cloud's.
pub fn node_name(id: &str) -> Option<&str> {
    id.strip_prefix(PROVIDER_ID_PREFIX).filter(|name| !name.is_empty())
}

/// A thing on sale.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferingKey {
    pub instance_type: InstanceTypeName,
    pub zone: Zone,
    pub capacity_type: CapacityType,
}

impl fmt::Display for OfferingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineState {
    Pending,
    Running,
    Terminating,
    Gone,
}

/// The end of a machine, asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub requested: Timestamp,
    pub gone: Timestamp,
}

/// The cloud takes a machine back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// From here on the cloud tells whoever asks.
    pub notice: Timestamp,
    pub gone: Timestamp,
}

/// The machine's Node object, as far as this cloud has seen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeObject {
    NotYet,
    Created,
    /// Deleted, or never to be created because the machine has ended.
    Removed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub provider_id: ProviderId,
    pub node: NodeName,
    /// The launch token: the claim's UID. Empty when it is not known any more.
    pub token: String,
    pub claim: Option<ClaimName>,
    pub pool: Option<PoolName>,
    pub offering: OfferingKey,
    /// US dollars per hour.
    pub price: f64,
    /// Labels, annotations and taints that the node joins with.
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<Taint>,
    pub capacity: Resources,
    pub allocatable: Resources,
    pub launched: Timestamp,
    pub boots: Timestamp,
    /// When its kubelet joins the cluster; `None` if it never does.
    pub joins: Option<Timestamp>,
    pub ending: Option<Ending>,
    pub reclaim: Option<Reclaim>,
    pub node_object: NodeObject,
}

impl Machine {
    pub fn state(&self, now: Timestamp) -> MachineState {
        if self.gone_at().is_some_and(|gone| gone <= now) {
            MachineState::Gone
        } else if self.ending.is_some() {
            MachineState::Terminating
        } else if self.boots <= now {
            MachineState::Running
        } else {
            MachineState::Pending
        }
    }

    /// When nothing is left of it, as far as that is settled.
    pub fn gone_at(&self) -> Option<Timestamp> {
        let ends = [
            self.ending.map(|ending| ending.gone),
            self.reclaim.map(|reclaim| reclaim.gone),
        ];
        ends.into_iter().flatten().min()
    }

    /// Neither ended nor ending.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.state(now) < MachineState::Terminating
    }

    /// What it has cost up to a moment.
    pub fn cost(&self, now: Timestamp) -> f64 {
        let end = self.gone_at().map_or(now, |gone| gone.min(now));
        let lived = end.duration_since(self.launched).max(SignedDuration::ZERO);
        self.price * lived.as_secs_f64() / 3600.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_names_and_provider_ids_tell_each_other() {
        assert_eq!(provider_id("a-1"), "kwok://a-1");
        assert_eq!(node_name("kwok://a-1"), Some("a-1"));
        assert_eq!(node_name("kwok://"), None);
        assert_eq!(node_name("aws:///us-west-2a/i-1"), None);
    }
}
