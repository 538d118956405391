//! Faults that a scenario injects by name.

use jiff::SignedDuration;
use model::{InstanceTypeName, ProviderId};
use provider_sim::{Latency, Shortage, SimCloud};

use crate::{
    faults::{ApiFaults, Weather},
    history::History,
    kubelet::Hung,
    world::Controller,
};

/// What a fault can reach.
pub struct Reach<'a> {
    pub cloud: &'a SimCloud,
    pub controller: &'a Controller,
    pub weather: &'a Weather,
    pub hung: &'a Hung,
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

/// The machine of a node is gone from one moment to the next.
pub struct MachineVanishes<'a>(pub &'a str);

impl Fault for MachineVanishes<'_> {
    fn strike(self, reach: &Reach<'_>) {
        let id = provider_sim::machine::provider_id(self.0);
        reach.history.note(format!("cloud/{id}"), "vanishes");
        reach.cloud.interrupt(&id, SignedDuration::ZERO);
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

/// From here on requests of the controller go wrong like this; the default is not at all.
pub struct ApiServerTrouble(pub ApiFaults);

impl Fault for ApiServerTrouble {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note("api server", format!("{:?}", self.0));
        reach.weather.set(self.0);
    }
}

/// The machine of a node runs on, and its kubelet is not heard of any more.
pub struct KubeletHangs<'a>(pub &'a str);

impl Fault for KubeletHangs<'_> {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note(format!("node/{}", self.0), "hangs");
        reach.hung.hang(self.0);
    }
}

/// A kubelet that hung is back.
pub struct KubeletRecovers<'a>(pub &'a str);

impl Fault for KubeletRecovers<'_> {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note(format!("node/{}", self.0), "recovers");
        reach.hung.recover(self.0);
    }
}

/// There is a new image: all machines that run now are out of date.
pub struct NewImage;

impl Fault for NewImage {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note("cloud", "has a new image");
        let now = reach.cloud.now();
        reach.cloud.change_faults(|faults| faults.image_since = Some(now));
    }
}

/// The new image is taken back: no machine is out of date.
pub struct ImageWithdrawn;

impl Fault for ImageWithdrawn {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note("cloud", "takes its new image back");
        reach.cloud.change_faults(|faults| faults.image_since = None);
    }
}

/// Machines take this long to go.
pub struct SlowTermination(pub SignedDuration);

impl Fault for SlowTermination {
    fn strike(self, reach: &Reach<'_>) {
        reach.history.note("cloud", format!("machines take {} to go", self.0));
        let latency = Latency::exactly(self.0);
        reach.cloud.change_faults(|faults| faults.termination_latency = latency);
    }
}

/// Calls to the cloud other than launches are not answered with this probability.
pub struct CloudIsSilent(pub f64);

impl Fault for CloudIsSilent {
    fn strike(self, reach: &Reach<'_>) {
        reach
            .history
            .note("cloud", format!("answers are missing with probability {}", self.0));
        reach.cloud.change_faults(|faults| faults.unanswered = self.0);
    }
}
