//! Faults that a scenario injects by name.

use jiff::SignedDuration;
use model::{InstanceTypeName, ProviderId};
use provider_sim::{Shortage, SimCloud};

use crate::{history::History, world::Controller};

/// What a fault can reach.
pub struct Reach<'a> {
    pub cloud: &'a SimCloud,
    pub controller: &'a Controller,
    pub history: &'a History,
}

pub trait Fault {
    fn strike(self, reach: &Reach<'_>);
}

/// The cloud takes a machine back, with two minutes of notice.
pub struct SpotInterruption {
    id: ProviderId,
}

impl SpotInterruption {
    pub fn of(node: &str) -> Self {
        Self {
            id: provider_sim::machine::provider_id(node),
        }
    }
}

impl Fault for SpotInterruption {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note(format!("cloud/{}", self.id), "interrupted");
        reach.cloud.interrupt(&self.id, SignedDuration::from_mins(2));
    }
}

/// A type, or everything, cannot be had.
pub struct InsufficientCapacity(pub Option<&'static str>);

impl Fault for InsufficientCapacity {
    fn strike(self, reach: &Reach<'_>) {
        reach
            .history
            .note("cloud", format!("out of {}", self.0.unwrap_or("everything")));
        let instance_type = self.0.map(InstanceTypeName::from);
        reach.cloud.change_faults(|faults| {
            faults.shortages.push(Shortage {
                instance_type,
                ..Shortage::default()
            });
        });
    }
}

/// Launches are refused with this probability.
pub struct LaunchesFail(pub f64);

impl Fault for LaunchesFail {
    fn strike(self, reach: &Reach<'_>) {
        reach
            .history
            .note("cloud", format!("launches fail with probability {}", self.0));
        reach.cloud.change_faults(|faults| faults.launch_failure = self.0);
    }
}

/// Machines boot and never join, with this probability.
pub struct KubeletsNeverRegister(pub f64);

impl Fault for KubeletsNeverRegister {
    fn strike(self, reach: &Reach<'_>) {
        reach
            .history
            .note("cloud", format!("machines never join with probability {}", self.0));
        reach.cloud.change_faults(|faults| faults.never_joins = self.0);
    }
}

/// The controller dies now and comes back a little later.
pub struct ControllerCrash;

impl Fault for ControllerCrash {
    fn strike(self, reach: &Reach<'_>) {
        reach.controller.crash();
    }
}
