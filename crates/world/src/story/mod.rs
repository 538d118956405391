//! The words in which scenarios are told: what is in the world, what is waited for, what is expected.

mod expect;
mod faults;
mod objects;

use std::time::Duration;

pub use expect::{Condition, Expectation, Pods, Record, nothing_runs, pods, settled, that};
pub use faults::{
    ApiServerTrouble, CloudIsSilent, ControllerCrash, Fault, ImageWithdrawn, InsufficientCapacity, KubeletHangs,
    KubeletRecovers, KubeletsNeverRegister, LaunchesFail, MachineVanishes, NewImage, Reach, SlowTermination,
    SpotInterruption,
};
pub use objects::{Created, Deployed, HOSTNAME, Pool, beside, daemon_set, deployment, job, pool, stateful_set};

pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}
