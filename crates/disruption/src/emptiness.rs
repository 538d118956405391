//! Removes nodes that host nothing worth moving.

use jiff::Timestamp;
use model::{NodeKey, Snapshot, budget::DisruptionReason};

use crate::{Candidate, Command, Ledger};

/// What the method chose, and what budgets kept it from choosing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emptied {
    pub command: Option<Command>,
    /// Empty nodes that stay because their pool's budget is used up.
    pub out_of_budget: Vec<NodeKey>,
}

/// Whether the method would take the node, budgets aside.
pub fn is_eligible(candidate: &Candidate) -> bool {
    let consolidates = candidate.pool.disruption.consolidate_after.is_some();
    let waited = candidate.node.claim.as_ref().is_some_and(|claim| claim.consolidatable);
    !candidate.pool.is_static() && consolidates && waited && candidate.is_empty()
}

/// One deletion of all empty nodes that the budgets let go, dearest first, then by name. Nodes that a capacity buffer
/// counts on are not empty.
pub fn decide(snapshot: &Snapshot, candidates: &[Candidate], now: Timestamp) -> Emptied {
    let holds_room = |candidate: &&Candidate| snapshot.holds_room(&candidate.node.key);
    let eligible = candidates.iter().filter(|candidate| is_eligible(candidate));
    let mut chosen: Vec<&Candidate> = eligible.filter(|candidate| !holds_room(candidate)).collect();
    chosen.sort_by(|a, b| {
        b.savings_ratio()
            .total_cmp(&a.savings_ratio())
            .then_with(|| a.node.key.cmp(&b.node.key))
    });

    let mut ledger = Ledger::open(snapshot, DisruptionReason::Empty, now);
    let (going, staying): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|candidate| ledger.take(&candidate.pool.name));
    let keys = |candidates: Vec<&Candidate>| candidates.into_iter().map(|c| c.node.key.clone()).collect::<Vec<_>>();
    let nodes = keys(going);
    let command = (!nodes.is_empty()).then(|| Command {
        reason: DisruptionReason::Empty,
        nodes,
        replacements: Vec::new(),
    });
    Emptied {
        command,
        out_of_budget: keys(staying),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _};

    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Class, candidates, situation};

    #[track_caller]
    fn check(situation: &str, expected: &Expect) {
        let snapshot = situation::parse(situation);
        let (free, staying) = candidates(&snapshot, Class::Graceful, &BTreeSet::new(), situation::now());
        let emptied = decide(&snapshot, &free, situation::now());
        let mut shown = String::new();
        for node in emptied.command.iter().flat_map(|command| &command.nodes) {
            writeln!(shown, "delete {node}").unwrap();
        }
        for node in &emptied.out_of_budget {
            writeln!(shown, "no budget for {node}").unwrap();
        }
        for stay in staying {
            writeln!(shown, "{} stays: {}", stay.node, stay.blocked).unwrap();
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn empty_nodes_go_dearest_first_as_far_as_the_budget_reaches() {
        check(
            "pool general budgets=2
             node a pool=general price=1 consolidatable
             node b pool=general price=3 consolidatable
             node c pool=general price=2 consolidatable",
            &expect![[r#"
                delete b
                delete c
                no budget for a
            "#]],
        );
    }

    #[test]
    fn daemons_finished_pods_and_worthless_pods_do_not_fill_a_node() {
        check(
            "pool general
             node a pool=general consolidatable
             node b pool=general consolidatable
             node c pool=general consolidatable
             node d pool=general consolidatable
             pod log on=a daemon
             pod job on=b finished
             pod filler on=c worthless
             pod web on=d",
            &expect![[r#"
                delete a
                delete b
                delete c
            "#]],
        );
    }

    #[test]
    fn a_node_waits_out_its_pools_patience() {
        check("pool general\n node a pool=general", &expect![""]);
        check(
            "pool general after=never\n node a pool=general consolidatable",
            &expect![""],
        );
        check("pool general static\n node a pool=general consolidatable", &expect![""]);
    }

    #[test]
    fn what_is_down_or_leaving_uses_the_budget_up() {
        check(
            "pool general budgets=2
             node a pool=general consolidatable
             node b pool=general leaving
             node c pool=general down
             node d pool=general young",
            &expect![[r#"
                no budget for a
                b stays: the node is on its way out already
                d stays: the node is still starting
            "#]],
        );
    }

    #[test]
    fn a_percentage_rounds_up_and_a_broken_budget_shuts_the_pool() {
        check(
            "pool general budgets=10%
             node a pool=general consolidatable
             node b pool=general consolidatable",
            &expect![[r#"
                delete a
                no budget for b
            "#]],
        );
        check(
            "pool general broken-budget\n node a pool=general consolidatable",
            &expect![[r#"
                no budget for a
            "#]],
        );
    }

    #[test]
    fn a_budget_for_another_reason_does_not_count() {
        check(
            "pool general budgets=Drifted:0\n node a pool=general consolidatable",
            &expect![[r#"
                delete a
            "#]],
        );
    }

    #[test]
    fn every_rule_names_what_keeps_a_node() {
        check(
            "pool general
             node a pool=general consolidatable nominated
             node b pool=general consolidatable protected
             node c pool=general consolidatable unjoined
             node d consolidatable
             node e pool=other consolidatable
             node f pool=general consolidatable
             node g pool=general consolidatable
             node h pool=general consolidatable
             pod keep on=f daemon protected
             pod web on=g
             pod twice on=h
             pdb one covers=twice allows=1
             pdb two covers=twice allows=1
             pdb web covers=web allows=0",
            &expect![[r#"
                a stays: pending pods are expected on the node
                b stays: annotation karpenter.sh/do-not-disrupt is set on the node
                c stays: its node has not joined the cluster
                d stays: label karpenter.sh/nodepool is missing
                e stays: NodePool other does not exist
                f stays: pod default/keep has annotation karpenter.sh/do-not-disrupt
                g stays: PodDisruptionBudget default/web allows no eviction of pod default/web now
                h stays: more than one PodDisruptionBudget covers pod default/twice, so that it cannot be evicted
            "#]],
        );
    }
}
