//! What a pool's machines add up to.

use api::{convert, v1::NodePoolStatus};
use model::{PoolName, Quantity, Resources, Snapshot};

/// Always listed, zero or not, so that a column in kubectl is never empty.
const ALWAYS: [&str; 5] = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"];

pub fn usage(snapshot: &Snapshot, pool: &PoolName) -> Resources {
    zeros().plus(&snapshot.pool_usage(pool))
}

/// What a pool without machines uses.
pub fn zeros() -> Resources {
    ALWAYS.into_iter().map(|name| (name.into(), Quantity::ZERO)).collect()
}

pub fn note(usage: &Resources, status: &mut NodePoolStatus) {
    status.nodes = Some(usage.get("nodes").value_ceil());
    status.resources = Some(convert::resources_text(usage));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Claim, NodeKey, StateNode};

    use super::*;
    use model::samples::claim;

    fn machine(name: &str, cpu: i64, leaving: bool) -> Arc<StateNode> {
        let labels = [("karpenter.sh/nodepool".into(), "p".into())].into();
        let capacity = Resources::default().with("cpu".into(), Quantity::from_int(cpu));
        Arc::new(StateNode {
            key: NodeKey::Claim(name.into()),
            claim: Some(Claim {
                labels,
                capacity,
                ..claim(name)
            }),
            node: None,
            nominated_until: None,
            marked_for_deletion: leaving,
        })
    }

    /// LC-P1, LC-P2, LC-P3.
    #[test]
    fn machines_that_stay_are_counted_and_zeros_are_shown() {
        let mut snapshot = Snapshot::default();
        let text = |snapshot: &Snapshot| {
            let mut status = NodePoolStatus::default();
            note(&usage(snapshot, &"p".into()), &mut status);
            let resources = status.resources.expect("always there");
            let listed = resources
                .iter()
                .map(|(name, amount)| format!("{name}={}", amount.0))
                .collect::<Vec<_>>();
            (listed.join(" "), status.nodes)
        };
        assert_eq!(
            text(&snapshot),
            ("cpu=0 ephemeral-storage=0 memory=0 nodes=0 pods=0".to_owned(), Some(0))
        );
        snapshot.put_node(machine("a", 4, false));
        snapshot.put_node(machine("b", 8, false));
        snapshot.put_node(machine("c", 16, true));
        assert_eq!(
            text(&snapshot),
            ("cpu=12 ephemeral-storage=0 memory=0 nodes=2 pods=0".to_owned(), Some(2))
        );
    }
}
