//! Places pods: a snapshot and a round in, a plan out.
//!
//! [`solve`] is the one place where it is decided which pod goes where. Provisioning asks it about pending pods,
//! disruption about the pods of a node that might go, the simulator and the command line about anything. It sees model
//! types only: no API object, no client, no clock.
//!
//! [`WhatIf`] asks the same of one cluster many times over: what if these machines were gone?
//!
//! [`dra`] finds devices for the pods that claim some.
//!
//! [`audit`] checks a plan against the rules of the cluster. It is written apart from the solver and shares no code with
//! it, so that a mistake in one is noticed by the other. [`guard`] takes out of a plan what breaks a rule.
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

mod amounts;
mod audit;
mod bits;
mod class;
mod crew;
mod defaults;
pub mod dra;
mod eligible;
mod explain;
mod finish;
mod greedy;
mod limits;
mod machine;
mod market;
mod open;
mod pack;
mod plan;
mod problem;
mod refusal;
mod reservations;
mod round;
mod rules;
#[cfg(test)]
mod situation;
mod solve;
mod states;
mod template;
#[cfg(test)]
mod tests;
mod topology;
mod variety;
mod volumes;
mod what_if;
mod wishes;
mod zones;

pub use audit::{Place, Violation, audit, guard};
pub use pack::unit_worth;
pub use plan::{Choice, Launch, Placement, Plan};
pub use refusal::{Ineligible, InvalidPod, Lacking, PoolRefusal, Refusal, RuleKind, RuleRefusal, Unfit, VolumeRefusal};
pub use round::{InvalidSurcharge, MinValuesPolicy, Options, PreferencePolicy, Round, Surcharge};
pub use solve::solve;
pub use what_if::{Answer, Moves, Search, Stage, WhatIf};
pub use zones::EffectiveZone;
