//! Settings parsed once, wiring of the controllers, leader lease, health and metrics.
//!
//! [`Operator::run`] is the whole program below the command line: `karpenter controller`, the playground and simulated
//! worlds all run it, on a client, a provider and a clock of their choice.
//!
//! - [`settings`]: flags and environment, checked together.
//! - [`Operator`]: feeds, controllers, lease.
//! - [`throttle`]: a client that keeps to the request rate the API server was promised.
//! - [`endpoints`], [`logging`], [`lease`]: what probes, scrapers, people and other replicas see.

pub mod endpoints;
pub mod lease;
pub mod logging;
mod operator;
mod process;
pub mod settings;
pub mod throttle;

pub use operator::{Listeners, Operator, OperatorError};
