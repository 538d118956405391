//! Decides which nodes may go.
//!
//! A snapshot and a moment in, commands out; nothing here reads a clock or touches the cluster. Whoever asks twice with
//! the same snapshot gets the same answer, which is how a command is validated before it is carried out.
//!
//! - [`rules`]: what keeps a node where it is, one rule per file, each with its reason as data.
//! - [`Candidate`]: a node that no rule holds back, with the facts that methods sort by.
//! - [`Ledger`]: how many nodes each pool may still lose.
//! - [`emptiness`]: the method that removes nodes without pods worth moving.

mod candidate;
mod command;
pub mod emptiness;
mod ledger;
pub mod rules;
#[cfg(test)]
mod situation;

pub use candidate::{Candidate, Class, Stay, candidates};
pub use command::Command;
pub use ledger::Ledger;
pub use model::budget::DisruptionReason;
pub use rules::Blocked;
