//! Places pods: a snapshot and a round in, a plan out.
//!
//! [`solve`] is the one place where it is decided which pod goes where. Provisioning asks it about pending pods,
//! disruption about the pods of a node that might go, the simulator and the command line about anything. It sees model
//! types only: no API object, no client, no clock.
//!
//! [`dra`] finds devices for the pods that claim some.
//!
//! [`audit`] checks a plan against the rules of the cluster. It is written apart from the solver and shares no code with
//! it, so that a mistake in one is noticed by the other.
//!
//! ```
//! use model::{PodKey, Snapshot};
//! use scheduler::{Refusal, Round, solve};
//!
//! let pod = PodKey::new("default", "web-0");
//! let round = Round::new(vec![pod.clone()], "2026-01-01T00:00:00Z".parse().unwrap());
//! let plan = solve(&Snapshot::default(), &round);
//! assert_eq!(plan.refusals[&pod], Refusal::Unknown);
//! ```

mod audit;
mod class;
pub mod dra;
mod finish;
mod machine;
mod open;
mod plan;
mod refusal;
mod round;
mod rules;
#[cfg(test)]
mod situation;
mod solve;
mod template;
#[cfg(test)]
mod tests;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the solver asks whether volumes can be had, and places no pod with any"
    )
)]
mod volumes;

pub use audit::{Violation, audit};
pub use plan::{Choice, Launch, Placement, Plan};
pub use refusal::{Ineligible, Lacking, PoolRefusal, Refusal, Unfit, UnsupportedRule, VolumeRefusal};
pub use round::{MinValuesPolicy, Options, PreferencePolicy, Round};
pub use solve::solve;
