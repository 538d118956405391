//! A decided disruption.

use model::{NodeKey, budget::DisruptionReason};
use scheduler::Launch;

/// Nodes to remove for one reason, and what has to be running before they go.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub reason: DisruptionReason,
    /// In the order in which they were chosen.
    pub nodes: Vec<NodeKey>,
    /// Empty for a plain deletion.
    pub replacements: Vec<Launch>,
}
