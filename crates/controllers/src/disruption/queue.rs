//! Commands that are being carried out, and the nodes that they have.

use std::{collections::BTreeSet, time::Duration};

use disruption::Command;
use model::{ClaimName, NodeKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::log::Line;

/// A command whose nodes are marked and whose replacements exist.
#[derive(Clone, Debug)]
pub struct Started {
    pub command: Command,
    pub replacements: Vec<ClaimName>,
    pub deadline: Instant,
    /// As it was when it was begun.
    pub line: Line,
}

/// The nodes that commands have. Kept in memory alone: what a crash leaves behind is taken back by the next process.
#[derive(Debug, Default)]
pub struct Taken(Mutex<BTreeSet<NodeKey>>);

impl Taken {
    pub fn nodes(&self) -> BTreeSet<NodeKey> {
        self.0.lock().clone()
    }

    /// Takes all of these nodes, or none when one of them has been taken.
    pub fn take(&self, nodes: &[NodeKey]) -> bool {
        let mut taken = self.0.lock();
        let free = nodes.iter().all(|node| !taken.contains(node));
        if free {
            taken.extend(nodes.iter().cloned());
        }
        free
    }

    pub fn release<'n>(&self, nodes: impl IntoIterator<Item = &'n NodeKey>) {
        let mut taken = self.0.lock();
        for node in nodes {
            taken.remove(node);
        }
    }
}

/// How long a command may take. The more nodes are being replaced, the longer clouds and API servers need for each.
pub fn patience(tracked: usize) -> Duration {
    const PER_NODE: Duration = Duration::from_millis(80);
    let patience = PER_NODE.saturating_mul(u32::try_from(tracked).unwrap_or(u32::MAX));
    patience.clamp(Duration::from_secs(10 * 60), Duration::from_secs(60 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DI-Q8.
    #[test]
    fn the_deadline_grows_with_the_nodes_that_are_tracked() {
        for (tracked, seconds) in [
            (0, 600),
            (7_500, 600),
            (10_000, 800),
            (40_000, 3_200),
            (45_000, 3_600),
            (1_000_000, 3_600),
        ] {
            assert_eq!(patience(tracked), Duration::from_secs(seconds), "{tracked}");
        }
    }

    /// DI-C31.
    #[test]
    fn a_node_belongs_to_one_command_at_a_time() {
        let key = |name: &str| NodeKey::Claim(name.into());
        let taken = Taken::default();
        assert!(taken.take(&[key("a"), key("b")]));
        assert!(!taken.take(&[key("b"), key("c")]));
        assert!(taken.take(&[key("c")]));
        taken.release(&[key("a"), key("b")]);
        assert!(taken.take(&[key("b")]));
    }
}
