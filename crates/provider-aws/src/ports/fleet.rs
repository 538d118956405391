//! Fleets: one request for one or more instances out of many offerings.

use super::{Interface, Tags};
use crate::error::AwsError;

/// Instant fleet. Batching joins requests that differ in `count` alone.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetRequest {
    pub dry_run: bool,
    pub context: Option<String>,
    pub groups: Vec<FleetGroup>,
    pub market: Market,
    /// Repeating a request with the same token launches nothing new.
    pub client_token: Option<String>,
    /// For the instances, their volumes and the fleet itself.
    pub tags: Tags,
    pub count: u32,
}

/// One launch template and the offerings that it is good for.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetGroup {
    pub template_name: String,
    /// The latest where absent.
    pub version: Option<String>,
    pub overrides: Vec<FleetOverride>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetOverride {
    pub instance_type: String,
    pub subnet: String,
    /// Left out by dry runs, as are image and priority.
    pub zone: Option<String>,
    pub image_id: Option<String>,
    /// Lower is better; the price.
    pub priority: Option<f64>,
}

/// What the capacity is bought as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Market {
    Spot(Allocation),
    OnDemand(Allocation),
    CapacityBlock,
    /// Capacity of a reservation that its owner may take back.
    InterruptibleReservation,
}

/// How a fleet chooses among the overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allocation {
    /// By EC2's own prices: `price-capacity-optimized` for spot, `lowest-price` on demand.
    Price,
    /// By the priorities of the overrides: `capacity-optimized-prioritized` for spot, `prioritized` on demand.
    Priority,
}

impl Market {
    /// `DefaultTargetCapacityType`.
    pub fn target(self) -> &'static str {
        match self {
            Market::Spot(_) => "spot",
            Market::OnDemand(_) => "on-demand",
            Market::CapacityBlock => "capacity-block",
            Market::InterruptibleReservation => "reserved-capacity",
        }
    }

    /// `AllocationStrategy`, for the markets that have one.
    pub fn strategy(self) -> Option<&'static str> {
        match self {
            Market::Spot(Allocation::Price) => Some("price-capacity-optimized"),
            Market::Spot(Allocation::Priority) => Some("capacity-optimized-prioritized"),
            Market::OnDemand(Allocation::Price) => Some("lowest-price"),
            Market::OnDemand(Allocation::Priority) => Some("prioritized"),
            Market::CapacityBlock | Market::InterruptibleReservation => None,
        }
    }
}

/// What a fleet got and what it did not get; both can be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetAnswer {
    pub instances: Vec<FleetInstances>,
    pub errors: Vec<FleetError>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetInstances {
    pub ids: Vec<String>,
    pub instance_type: String,
    /// EC2's word; empty means on demand.
    pub lifecycle: String,
    /// The override that was chosen, as far as EC2 echoes it.
    pub chosen: FleetOverride,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetError {
    pub error: AwsError,
    /// The override that failed, if EC2 says which.
    pub failed: Option<FleetOverride>,
}

/// A launch of one instance that is only tried.
#[derive(Clone, Debug, PartialEq)]
pub struct DryLaunch {
    pub template_name: String,
    pub instance_type: String,
    /// Each in the same subnet.
    pub interfaces: Vec<Interface>,
    pub subnet: String,
    /// For the instance, its volumes and its interfaces.
    pub tags: Tags,
}
