//! What the cloud is asked for when a machine is launched, and what it answers.

use std::sync::Arc;

use jiff::SignedDuration;
use model::{
    CapacityType, ClaimName, InstanceType, LabelKey, LabelValue, Labels, Offering, PoolName, ProviderId, Resources,
    Taint,
};

use crate::machine::{Machine, OfferingKey};

/// One machine, ordered.
#[derive(Clone, Debug)]
pub struct Order {
    /// Equal tokens mean the same machine.
    pub token: String,
    pub claim: ClaimName,
    pub pool: Option<PoolName>,
    /// What may be bought, the most welcome first.
    pub bids: Vec<Bid>,
    /// From the boot to the node's appearance.
    pub registration_delay: SignedDuration,
    /// What the node reports beyond its shape: see [`figures`](crate::node::figures).
    pub requests: Resources,
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<Taint>,
}

/// A shape under one of its offerings.
#[derive(Clone, Debug)]
pub struct Bid {
    pub shape: Arc<InstanceType>,
    /// The index of the offering in the shape.
    pub offering: usize,
    /// Set for reserved offerings.
    pub reservation: Option<Reservation>,
}

/// A number of machines that are set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Machines with this label and value count against it, whatever their shape.
    Labelled { label: LabelKey, id: LabelValue, size: u32 },
    /// Machines under this very offering count against it.
    Unlabelled { size: u32 },
}

impl Reservation {
    pub fn size(&self) -> u32 {
        match self {
            Reservation::Labelled { size, .. } | Reservation::Unlabelled { size } => *size,
        }
    }

    pub fn counts(&self, machine: &Machine, offering: &OfferingKey) -> bool {
        machine.offering.capacity_type == CapacityType::Reserved
            && match self {
                Reservation::Labelled { label, id, .. } => machine.labels.get(label) == Some(id),
                Reservation::Unlabelled { .. } => machine.offering == *offering,
            }
    }
}

impl Bid {
    pub fn offering(&self) -> &Offering {
        &self.shape.offerings[self.offering]
    }

    pub fn key(&self) -> OfferingKey {
        let offering = self.offering();
        OfferingKey {
            instance_type: self.shape.name.clone(),
            zone: offering.zone.clone(),
            capacity_type: offering.capacity_type,
        }
    }
}

/// A machine, and the offerings that would have been preferred but could not be had.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub machine: Arc<Machine>,
    pub short: Vec<OfferingKey>,
}

/// Why an order was not met.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoDelivery {
    #[error("none of {} offerings can be had", short.len())]
    Short { short: Vec<OfferingKey> },
    #[error("the simulated cloud failed this launch on purpose")]
    Failed,
    #[error("the answer was lost")]
    Lost,
    #[error("machine {id} of another claim with this name is not gone yet")]
    NameTaken { id: ProviderId },
}
