//! Nodes that are no longer what their pool asks for.

use expect_test::expect;

use super::{check, pass_of};
use crate::Settings;

const TYPES: &str = "
    type small cpu=2 memory=8Gi price=0.2
    type large cpu=8 memory=32Gi price=0.8\n";

fn with_types(rest: &str) -> String {
    format!("{TYPES}{rest}")
}

/// DI-D1, DI-D3, DI-D5, DI-D6: empty ones first, then the oldest; several at once as far as budgets allow.
#[test]
fn drifted_nodes_are_replaced_oldest_first() {
    check(
        &with_types(
            "pool general after=never budgets=3
             node a pool=general type=large drifted=10
             node b pool=general type=large drifted=30
             node c pool=general type=large drifted=20
             node d pool=general type=large drifted=5
             node e pool=general type=large
             pod one cpu=7 on=a
             pod two cpu=7 on=b
             pod three cpu=7 on=c
             pod five cpu=8 on=e",
        ),
        &expect![[r#"
            drift d saves 0.80
            drift b -> large/a/on-demand saves 0.00
            drift c -> large/a/on-demand saves 0.00
            a stays: the budgets of NodePool general let no more nodes go for reason Drifted now: they allow 3, and 3 are down or going
            e stays: NodePool general never consolidates
        "#]],
    );
}

/// DI-D2: what cannot be rescheduled is passed over.
#[test]
fn a_drifted_node_whose_pods_fit_nowhere_stays() {
    check(
        &with_types(
            "pool general after=never
             node a pool=general type=large drifted=30
             node b pool=general type=large drifted=10
             pod one cpu=7 on=a select:team=blue
             pod two cpu=7 on=b",
        ),
        &expect![[r#"
            drift b -> large/a/on-demand saves 0.00
            a stays: one is stranded
        "#]],
    );
}

/// DI-D4: without pods nothing takes its place.
#[test]
fn an_empty_drifted_node_goes_without_replacement() {
    check(
        &with_types("pool general after=never\n node a pool=general type=large drifted=30"),
        &expect![[r#"
            drift a saves 0.80
        "#]],
    );
}

/// Pods of drifted nodes do not move to other drifted nodes, from where they would have to move again.
#[test]
fn pods_of_drifted_nodes_move_once() {
    check(
        &with_types(
            "pool general after=never
             node a pool=general type=large drifted=30
             node b pool=general type=large drifted=10
             pod one cpu=1 on=a
             pod two cpu=1 on=b",
        ),
        &expect![[r#"
            drift a -> small/a/on-demand or 1 more saves 0.60
            drift b -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
}

/// DI-D8, DI-D9, DI-D12.
#[test]
fn pods_that_refuse_to_leave_keep_a_drifted_node() {
    check(
        &with_types(
            "pool general after=never
             node a pool=general type=large drifted=30
             node b pool=general type=large drifted=30
             node c pool=general type=large drifted=30
             node d pool=general type=large drifted=30 grace
             pod one cpu=7 on=a protected
             pod two cpu=7 on=b
             pod three cpu=7 on=c keep=bad
             pod four cpu=7 on=d protected
             pdb two covers=two allows=0",
        ),
        &expect![[r#"
            drift c -> large/a/on-demand saves 0.00
            drift d saves 0.80
            a stays: pod default/one has annotation karpenter.sh/do-not-disrupt
            b stays: PodDisruptionBudget default/two allows no eviction of pod default/two now
        "#]],
    );
}

/// A pod that a budget will let go some day gets a new place; one that no budget ever will is waited for.
#[test]
fn pods_that_can_never_leave_get_no_new_place() {
    check(
        &with_types(
            "pool general after=never
             node a pool=general type=large drifted=30 grace
             node b pool=general type=large drifted=20 grace
             node c pool=general type=large drifted=10 grace
             pod one cpu=7 on=a
             pod two cpu=7 on=b
             pod three cpu=7 on=c
             pdb one covers=one allows=0
             pdb two covers=two allows=0 never
             pdb some covers=three allows=1
             pdb more covers=three allows=1",
        ),
        &expect![[r#"
            drift a -> large/a/on-demand saves 0.00
            drift b saves 0.80
            drift c saves 0.80
        "#]],
    );
}

fn drifts(situation: &str) -> usize {
    pass_of(&Settings::default(), &with_types(situation)).commands.len()
}

/// DI-B9, DI-B10.
#[test]
fn budgets_limit_drift() {
    let fleet = |budget: &str| {
        let nodes = (0..10).map(|n| {
            let drifted = if n < 5 { "drifted=9" } else { "" };
            format!("node n{n} pool=general type=large {drifted}\npod p{n} cpu=8 on=n{n}\n")
        });
        let nodes: String = nodes.collect();
        format!("pool general after=never budgets={budget}\n{nodes}")
    };
    assert_eq!(drifts(&fleet("30%")), 3);
    let pools: String = (0..10)
        .map(|n| {
            format!("pool p{n} after=never budgets=1\nnode n{n} pool=p{n} type=large drifted=9\nnode m{n} pool=p{n} type=large drifted=8\npod o{n} cpu=8 on=n{n}\npod q{n} cpu=8 on=m{n}\n")
        })
        .collect();
    assert_eq!(drifts(&pools), 10);
}

/// DI-T1 to DI-T9, DI-D10: DI-T1, DI-T2, DI-T3, DI-T4, DI-T5, DI-T6, DI-T7, DI-T8, DI-T9.
#[test]
fn fixed_pools_replace_one_for_one_where_there_is_room() {
    let fleet = |nodes: usize, pool: &str, node: &str| {
        let nodes: String = (0..nodes)
            .map(|n| format!("node n{n} pool=fixed type=large {node}\n"))
            .collect();
        format!("pool fixed {pool}\n{nodes}")
    };
    for (row, nodes, pool, node, expected) in [
        ("DI-T1", 10, "replicas=10 budgets=3", "drifted=9", 3),
        ("DI-T1", 10, "replicas=10 budgets=30%", "drifted=9", 3),
        ("DI-T2", 5, "replicas=5 limit:nodes=5", "drifted=9", 0),
        ("DI-T3", 5, "replicas=5 limit:nodes=7", "drifted=9", 2),
        ("DI-T4", 5, "replicas=5 limit:nodes=6", "drifted=9", 1),
        ("DI-T5", 2, "replicas=2 limit:nodes=5", "drifted=9", 2),
        ("DI-T6", 5, "replicas=5", "drifted=9", 5),
        ("DI-T7", 6, "replicas=5", "drifted=9", 0),
        ("DI-T8", 5, "replicas=0", "drifted=9", 0),
        ("DI-T9", 5, "replicas=5", "", 0),
        ("DI-T9", 5, "replicas=5", "drifted=9 protected", 0),
    ] {
        assert_eq!(drifts(&fleet(nodes, pool, node)), expected, "{row} {pool}");
    }
}

/// Why drifted nodes of a fixed pool have to wait, one pool for each reason.
#[test]
fn a_fixed_pool_says_why_a_drifted_node_stays() {
    check(
        &with_types(
            "pool full replicas=2 limit:nodes=1500m
             pool large replicas=1
             pool gone replicas=1 types=unheard-of
             pool shut replicas=1 budgets=0
             node a pool=full type=large drifted=9
             node b pool=full type=large drifted=8
             node c pool=large type=large drifted=9
             node d pool=large type=large drifted=9
             node e pool=gone type=large drifted=9
             node f pool=shut type=large drifted=9",
        ),
        &expect![[r#"
            a stays: NodePool full may have 2 nodes, which leaves no room for a replacement next to them
            b stays: NodePool full may have 2 nodes, which leaves no room for a replacement next to them
            c stays: NodePool large has 2 nodes and asks for 1; those that are too many go first
            d stays: NodePool large has 2 nodes and asks for 1; those that are too many go first
            e stays: nothing that NodePool gone asks for is on sale
            f stays: the budgets of NodePool shut let no more nodes go for reason Drifted now: they allow 0, and 0 are down or going
        "#]],
    );
}

/// Pods that move do not go to a node of a fixed pool that is to be replaced itself, now or later.
#[test]
fn a_drifted_node_of_a_fixed_pool_takes_no_pods() {
    check(
        &with_types(
            "pool fixed replicas=2 budgets=1
             pool general after=never
             node a pool=fixed type=large drifted=30
             node b pool=fixed type=large drifted=20
             node c pool=general type=large drifted=10
             pod one cpu=1 on=c",
        ),
        &expect![[r#"
            drift a -> small/a/on-demand or 1 more saves 0.60
            drift c -> small/a/on-demand or 1 more saves 0.60
            b stays: the budgets of NodePool fixed let no more nodes go for reason Drifted now: they allow 1, and 1 are down or going
        "#]],
    );
}

/// An empty node would go for its drift whatever its pool says of empty nodes, so the budget for drift is what keeps it.
#[test]
fn an_empty_drifted_node_is_kept_by_the_budget_for_drift() {
    check(
        &with_types(
            "pool general after=never budgets=Drifted:0
             node a pool=general type=large drifted=30",
        ),
        &expect![[r#"
            a stays: the budgets of NodePool general let no more nodes go for reason Drifted now: they allow 0, and 0 are down or going
        "#]],
    );
}

/// A claim without the labels that its pool requires would have drifted itself as soon as it was there.
#[test]
fn a_replacement_of_a_fixed_pool_carries_what_the_pool_requires() {
    let situation = "pool fixed replicas=1 require:team=blue\nnode a pool=fixed type=large drifted=9";
    let pass = pass_of(&Settings::default(), &with_types(situation));
    let launch = &pass.commands[0].replacements[0];
    assert_eq!(launch.labels.get("team").map(model::LabelValue::as_str), Some("blue"));
}
