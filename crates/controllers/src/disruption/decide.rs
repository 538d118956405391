//! Which nodes should go, and whether they still should a while later.
//!
//! Each method of crate `disruption` is asked in turn; the first that has something to say is heard.

use std::collections::BTreeSet;

use disruption::{Candidate, Class, Command, Stay, candidates, emptiness};
use jiff::Timestamp;
use model::{NodeKey, Snapshot};

/// What one look at the cluster comes to.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    pub command: Option<Command>,
    /// How many nodes the method could take, budgets aside.
    pub eligible: usize,
    /// Nodes that a rule keeps.
    pub staying: Vec<Stay>,
    /// Empty nodes whose pool never consolidates.
    pub never: Vec<Candidate>,
}

pub fn propose(snapshot: &Snapshot, now: Timestamp) -> Proposal {
    let (free, staying) = candidates(snapshot, Class::Graceful, &BTreeSet::new(), now);
    let eligible = free
        .iter()
        .filter(|candidate| emptiness::is_eligible(candidate))
        .count();
    let command = emptiness::decide(snapshot, &free, now).command;
    let never = free
        .into_iter()
        .filter(|candidate| candidate.is_empty() && never_consolidates(candidate));
    Proposal {
        command,
        eligible,
        staying,
        never: never.collect(),
    }
}

fn never_consolidates(candidate: &Candidate) -> bool {
    !candidate.pool.is_static() && candidate.pool.disruption.consolidate_after.is_none()
}

/// The same decision on the cluster as it is now, among the nodes that were proposed. Those that no longer qualify are
/// dropped one by one; nothing is left of a command when none of them does.
pub fn revalidate(snapshot: &Snapshot, proposed: &Command, now: Timestamp) -> Option<Command> {
    let wanted: BTreeSet<&NodeKey> = proposed.nodes.iter().collect();
    let (mut still, _) = candidates(snapshot, Class::Graceful, &BTreeSet::new(), now);
    still.retain(|candidate| wanted.contains(&candidate.node.key));
    emptiness::decide(snapshot, &still, now).command
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use model::{
        Claim, InstanceType, Labels, NodeFacts, Overhead, Pod, Pool, Requirements, Resources, StateNode,
        budget::{Budget, NodeShare},
        pool::Disruption,
        samples, vocabulary,
    };

    use super::*;

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1)
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    /// Empty nodes that have waited long enough, in one pool with this budget.
    fn snapshot(nodes: &[&str], budget: NodeShare) -> Snapshot {
        let mut snapshot = Snapshot::default();
        put_pool(&mut snapshot, budget);
        let shape = InstanceType::new(
            "s".into(),
            Requirements::default(),
            Vec::new(),
            Resources::default(),
            Overhead::default(),
        );
        snapshot.catalogs.insert("p".into(), [Arc::new(shape)].into());
        for name in nodes {
            let labels = labels(&[
                (vocabulary::NODEPOOL, "p"),
                (vocabulary::REGISTERED, "true"),
                (vocabulary::INITIALIZED, "true"),
            ]);
            let machine = StateNode {
                key: key(name),
                claim: Some(Claim {
                    consolidatable: true,
                    ..samples::claim(name)
                }),
                node: Some(NodeFacts {
                    labels,
                    ..samples::node(name)
                }),
                nominated_until: None,
                marked_for_deletion: false,
            };
            snapshot.put_node(Arc::new(machine));
        }
        snapshot
    }

    fn put_pool(snapshot: &mut Snapshot, budget: NodeShare) {
        let pool = samples::pool("p");
        let disruption = Disruption {
            budgets: Ok(vec![Budget::always(budget)]),
            ..pool.disruption.clone()
        };
        snapshot.pools.insert("p".into(), Arc::new(Pool { disruption, ..pool }));
    }

    fn key(name: &str) -> NodeKey {
        NodeKey::Claim(name.into())
    }

    fn nodes(command: Option<Command>) -> Vec<String> {
        command
            .map(|command| command.nodes.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn change(snapshot: &mut Snapshot, name: &str, change: impl FnOnce(&mut StateNode)) {
        let mut machine = (*snapshot.nodes[&key(name)]).clone();
        change(&mut machine);
        snapshot.put_node(Arc::new(machine));
    }

    fn all() -> NodeShare {
        NodeShare::Percent(100)
    }

    /// DI-E1, DI-E3.
    #[test]
    fn empty_nodes_go_in_one_command() {
        let mut snapshot = snapshot(&["a", "b", "c"], all());
        change(&mut snapshot, "c", |machine| {
            machine.claim.as_mut().expect("it has one").consolidatable = false;
        });
        let proposal = propose(&snapshot, now());
        assert_eq!(
            (nodes(proposal.command), proposal.eligible),
            (vec!["a".to_owned(), "b".to_owned()], 2)
        );
    }

    /// DI-E16.
    #[test]
    fn a_pool_that_never_consolidates_is_named() {
        let mut snapshot = snapshot(&["a"], all());
        let pool = (*snapshot.pools["p"]).clone();
        let disruption = Disruption {
            consolidate_after: None,
            ..pool.disruption.clone()
        };
        snapshot.pools.insert("p".into(), Arc::new(Pool { disruption, ..pool }));
        let proposal = propose(&snapshot, now());
        assert_eq!((nodes(proposal.command), proposal.never.len()), (Vec::new(), 1));
    }

    /// DI-E8: churn on one of two. DI-E9: churn, a nomination or a closed budget on the only one.
    #[test]
    fn only_what_still_holds_is_carried_out() {
        let mut later = snapshot(&["a", "b", "new"], all());
        let proposed = propose(&snapshot(&["a", "b"], all()), now())
            .command
            .expect("both are empty");
        assert_eq!(
            nodes(revalidate(&later, &proposed, now())),
            ["a", "b"],
            "a node that was not proposed waits its turn"
        );

        later.put_pod(Arc::new(Pod {
            node: Some("a".into()),
            ..samples::pod("came")
        }));
        assert_eq!(nodes(revalidate(&later, &proposed, now())), ["b"]);
        change(&mut later, "b", |machine| {
            machine.nominated_until = Some(now() + SignedDuration::from_secs(1));
        });
        assert_eq!(revalidate(&later, &proposed, now()), None);

        let mut closed = snapshot(&["a", "b"], all());
        put_pool(&mut closed, NodeShare::Count(0));
        assert_eq!(revalidate(&closed, &proposed, now()), None);
    }
}
