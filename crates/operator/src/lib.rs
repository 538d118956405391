//! The process around the controllers: settings parsed once, wiring, leader lease, probes, metrics, logs.
//!
//! - [`Engine`]: watches, index and controllers, without a socket. Simulations and the playground run it as it is.
//! - [`Operator`]: the engine as `karpenter controller` runs it, behind a lease and with its endpoints.
//! - [`webhooks`]: the webhooks of the time of Provisioners, with their certificates.
//! - [`requests`]: counts what goes to the API server.
//! - [`throttle`]: a client that keeps to the request rate that the settings allow.

pub mod endpoints;
mod engine;
pub mod lease;
pub mod legacy;
pub mod logging;
mod operator;
mod process;
mod profiling;
pub mod requests;
pub mod settings;
mod startup;
pub mod throttle;
pub mod webhooks;

pub use controllers::fleet::Fleet;
pub use engine::{Broken, Engine, Running};
pub use operator::{Operator, OperatorError};
pub use startup::{Duties, NotProvided, Provide, Provided};
