//! Decides which nodes may go.
//!
//! A snapshot and a moment in, commands out; nothing here reads a clock or touches the cluster. Whoever asks twice with
//! the same snapshot gets the same answer, which is how a command is validated before it is carried out.
//!
//! - [`decide`]: one look at the whole cluster, all commands that may be given now, and why each other node stays.
//! - [`validate`]: whether commands still hold a while later.
//! - [`rules`]: what keeps a node where it is, one rule per file, each with its reason as data.
//! - [`Candidate`]: a node that no rule holds back, with the facts that methods sort by.
//! - [`Ledger`]: how many nodes each pool may still lose.
//! - [`drift`]: when a node is no longer what its pool asks for, and its replacement.

pub mod balanced;
mod candidate;
mod command;
mod consolidation;
pub mod drift;
mod emptiness;
mod guards;
mod ledger;
mod pass;
mod prices;
pub mod rules;
mod settings;
#[cfg(test)]
mod situation;
mod stay;
#[cfg(test)]
mod tests;
mod validate;

pub use candidate::{Candidate, Class, candidates};
pub use command::{Command, Method};
pub use ledger::{Ledger, Page};
pub use model::budget::DisruptionReason;
pub use pass::{Pass, decide, decide_watched};
pub use prices::Prices;
pub use rules::Blocked;
pub use settings::Settings;
pub use stay::{Exempt, Stay, Why};
pub use validate::{Obstacle, Rejection, Validated, validate};
