//! Nodes that go because their pods fit elsewhere, or on something cheaper.

use std::collections::BTreeSet;

use expect_test::expect;
use model::NodeKey;

use super::{check, one_large, pass_of, shown, two_large, with_types};
use crate::{Method, Settings, decide, situation};

/// DI-X1: the best ratio goes, and the others take its pods.
#[test]
fn the_node_with_the_least_to_move_goes() {
    check(
        &two_large(
            "pod one cpu=1 on=a
             pod two cpu=2 on=b count=3",
        ),
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-S6.
#[test]
fn nodes_of_either_policy_are_looked_at() {
    for policy in ["WhenEmptyOrUnderutilized", "Balanced"] {
        let situation = with_types(&format!(
            "pool general sell=on-demand types=large policy={policy}
             node a pool=general type=large
             node b pool=general type=large
             pod one cpu=1 on=a
             pod two cpu=2 on=b count=3"
        ));
        let pass = pass_of(&Settings::default(), &situation);
        assert_eq!(pass.eligible[&Method::Consolidation], 2, "{policy}");
        assert_eq!(pass.commands.len(), 1, "{policy}: {}", shown(&pass));
    }
}

/// DI-X2: a node that nobody manages has room. DI-X11: the destination's pool never consolidates.
#[test]
fn any_node_with_room_takes_pods() {
    check(
        &with_types(
            "pool general sell=on-demand types=large
             pool never after=never
             node a pool=general type=large
             node b type=large foreign
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            consolidate a b<-one saves 0.80
        "#]],
    );
    check(
        &with_types(
            "pool general sell=on-demand types=large
             pool never after=never sell=on-demand
             node a pool=general type=large
             node b pool=never type=large
             pod one cpu=1 on=a
             pod two cpu=1 on=b",
        ),
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: NodePool never never consolidates
        "#]],
    );
}

/// DI-X4, DI-X5, DI-X6, DI-S4: whoever is kept stays, the other goes.
#[test]
fn a_kept_node_stays_and_takes_the_pods_of_the_other() {
    for (kept, reason) in [
        (
            "pod two cpu=1 on=b protected",
            "pod default/two has annotation karpenter.sh/do-not-disrupt",
        ),
        (
            "pod two cpu=1 on=b\npdb two covers=two allows=0",
            "PodDisruptionBudget default/two allows no eviction of pod default/two now",
        ),
        (
            "pod two cpu=1 on=b keep=5m started=60",
            "pod default/two has annotation karpenter.sh/do-not-disrupt until 2026-01-01T12:04:00Z",
        ),
    ] {
        let situation = with_types(&format!(
            "pool general sell=on-demand types=large
             node a pool=general type=large
             node b pool=general type=large grace
             pod one cpu=3 on=a
             {kept}"
        ));
        let expected = format!("consolidate a b<-one saves 0.80\nb stays: {reason}\n");
        let pass = pass_of(&Settings::default(), &situation);
        assert_eq!(shown(&pass), expected);
        assert_eq!(pass.eligible[&Method::Consolidation], 1, "b counts for no method");
        let freed = situation.replace(kept, "pod two cpu=1 on=b");
        let freed = pass_of(&Settings::default(), &freed);
        assert_eq!(freed.eligible[&Method::Consolidation], 2);
    }
}

/// DI-X6: an expired or unreadable duration protects nobody.
#[test]
fn an_expired_protection_is_none() {
    for keep in ["keep=5m started=600", "keep=bad started=0"] {
        let situation = two_large(&format!(
            "pod one cpu=1 on=a {keep}
             pod two cpu=6 on=b count=1"
        ));
        let shown = shown(&pass_of(&Settings::default(), &situation));
        assert!(
            shown.starts_with("consolidate a b<-one saves 0.80\n"),
            "{keep}: {shown}"
        );
    }
}

/// DI-X8, DI-X9: running pods do not wait for a node that is starting.
#[test]
fn a_starting_node_is_no_destination() {
    let situation = |more: &str| {
        with_types(&format!(
            "pool general sell=on-demand types=large
             node a pool=general type=large
             node b pool=general type=large young
             pod one cpu=5 on=a
             {more}"
        ))
    };
    check(
        &situation(""),
        &expect![[r#"
            a stays: pod default/one would have to wait for node b, which is starting
            b stays: the node is still starting
        "#]],
    );
    check(
        &situation("node c pool=general type=large\npod two cpu=3 on=c"),
        &expect![[r#"
            consolidate a c<-one saves 0.80
            b stays: the node is still starting
            c stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-X10: a node that is to be left alone takes no pods by choice.
#[test]
fn an_unsettled_node_is_no_destination() {
    let situation = |event: &str| {
        with_types(&format!(
            "pool general sell=on-demand types=large
             pool patient after=1m sell=on-demand types=large
             node a pool=general type=large
             node b pool=patient type=large event={event} settling
             pod one cpu=5 on=a
             pod two cpu=1 on=b"
        ))
    };
    check(
        &situation("20"),
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
            b stays: consolidateAfter has not passed; it will at 2026-01-01T12:00:40Z
        "#]],
    );
    check(
        &situation("70"),
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: its claim has no condition Consolidatable yet
        "#]],
    );
}

/// DI-X12: a pod that fits nowhere changes nothing. DI-X13, DI-X14: nobody is stranded.
#[test]
fn nobody_is_stranded() {
    check(
        &two_large(
            "pod one cpu=1 on=a
             pod two cpu=2 on=b
             pod huge cpu=99 pending",
        ),
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: pods of other nodes are moving to it
        "#]],
    );
    check(
        &with_types(
            "pool general deleting
             node a pool=general type=small
             node b pool=general type=small
             pod one cpu=1500m on=a
             pod two cpu=1500m on=b",
        ),
        &expect![[r#"
            a stays: one is stranded
            b stays: two is stranded
        "#]],
    );
    check(
        &two_large(
            "pod lone cpu=1 on=a apart
             pod lone2 cpu=1 on=b apart label:app=lone",
        ),
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
            b stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
}

/// DI-E11: a pending pod that needs the room keeps the node.
#[test]
fn a_pending_pod_takes_the_room_first() {
    check(
        &two_large(
            "pod one cpu=2 on=a
             pod two cpu=2 on=b
             pod wants cpu=5 pending",
        ),
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
            b stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
}

/// DI-S2, DI-S3, DI-S5.
#[test]
fn consolidation_is_not_for_everyone() {
    check(
        &with_types(
            "pool lazy policy=WhenEmpty
             pool fixed replicas=1
             pool general
             node a pool=lazy type=large
             node b pool=fixed type=large
             node c pool=general type=large missing:zone
             node d pool=general type=large missing:sell
             node e pool=general type=unheard-of
             node f pool=general type=large missing:type
             pod one cpu=1 on=a
             pod two cpu=1 on=b
             pod three cpu=1 on=c
             pod four cpu=1 on=d
             pod five cpu=1 on=e
             pod six cpu=1 on=f",
        ),
        &expect![[r#"
            a stays: NodePool lazy gives up only empty nodes
            b stays: NodePool fixed has a fixed number of nodes
            c stays: label topology.kubernetes.io/zone is missing
            d stays: label karpenter.sh/capacity-type is missing
            e stays: its instance type unheard-of is not known to the provider
            f stays: label node.kubernetes.io/instance-type is missing
        "#]],
    );
}

/// DI-S1: what keeps an empty node, where something does, is not that it cannot be consolidated.
#[test]
fn an_empty_node_is_not_called_unconsolidatable() {
    let pass = pass_of(
        &Settings::default(),
        &with_types(
            "pool general policy=WhenEmptyOrUnderutilized
             pool shut policy=WhenEmptyOrUnderutilized budgets=0
             node a pool=general type=large
             node b pool=shut type=large",
        ),
    );
    expect![[r#"
        empty a saves 0.80
        b stays: the budgets of NodePool shut let no more nodes go for reason Empty now: they allow 0, and 0 are down or going
    "#]]
    .assert_eq(&shown(&pass));
    assert!(pass.stays.iter().all(|stay| !stay.why.is_unconsolidatable()));
}

/// DI-B7: what several nodes could be spared of is spared as far as the budget reaches.
#[test]
fn deletions_stop_where_the_budget_does() {
    let nodes: String = (0..10)
        .map(|n| format!("node n{n} pool=general type=large\npod p{n} cpu=100m on=n{n}\n"))
        .collect();
    let situation = with_types(&format!("pool general sell=on-demand types=large budgets=30%\n{nodes}"));
    let pass = pass_of(&Settings::default(), &situation);
    let gone: usize = pass.commands.iter().map(|command| command.nodes.len()).sum();
    assert_eq!(gone, 3);
}

/// DI-B8, DI-B30: three nodes are exchanged in five passes, and no fourth as long as they are on their way.
#[test]
fn exchanges_stop_where_the_budget_does() {
    let situation = |going: &BTreeSet<NodeKey>| {
        let nodes = (0..10).map(|n| {
            let marked = going.contains(&NodeKey::Claim(format!("n{n}").as_str().into()));
            let marked = if marked { "marked" } else { "" };
            format!("node n{n} pool=general type=large {marked}\npod p{n} cpu=3 on=n{n} apart label:app=p\n")
        });
        let nodes: String = nodes.collect();
        with_types(&format!("pool general sell=on-demand budgets=30%\n{nodes}"))
    };
    let mut going = BTreeSet::new();
    let decided: Vec<usize> = (0..5)
        .map(|_| {
            let snapshot = situation::parse(&situation(&going));
            let pass = decide(&snapshot, &Settings::default(), &going, situation::now());
            let replaced = pass.commands.iter().filter(|command| !command.replacements.is_empty());
            going.extend(replaced.flat_map(|command| command.nodes.clone()));
            pass.commands.len()
        })
        .collect();
    assert_eq!((decided, going.len()), (vec![3, 0, 0, 0, 0], 3));
}

/// DI-M1: nodes that cannot go alone go together.
#[test]
fn several_nodes_are_exchanged_for_one() {
    check(
        "type third cpu=3 memory=8Gi price=0.5
         type whole cpu=6 memory=32Gi price=0.9
         pool general
         node a pool=general type=third
         node b pool=general type=third
         node c pool=general type=third
         pod one cpu=2 on=a
         pod two cpu=2 on=b
         pod three cpu=2 on=c",
        &expect![[r#"
            consolidate a,b,c -> whole/a/on-demand saves 0.60
        "#]],
    );
}

/// DI-M2, DI-M4, DI-R10: of two nodes of the cheapest type one is spared, and they are not exchanged for one like them,
/// also where the pool demands more variety than would be left.
#[test]
fn two_nodes_are_not_exchanged_for_one_of_the_same_type() {
    for demand in ["", "min:type=2"] {
        let situation = format!(
            "type small cpu=2 memory=8Gi price=0.2
             type tiny cpu=1 memory=4Gi price=0.19
             pool general {demand}
             node a pool=general type=small
             node b pool=general type=small
             pod one cpu=500m on=a
             pod two cpu=500m on=b"
        );
        check(
            &situation,
            &expect![[r#"
                consolidate b a<-two saves 0.20
                a stays: pods of other nodes are moving to it
            "#]],
        );
    }
}

/// A replacement whose saving would not outlast the exchange is none.
#[test]
fn a_trifle_is_not_worth_an_exchange() {
    check(
        "type small cpu=2 memory=8Gi price=0.98
         type large cpu=8 memory=32Gi price=1.0
         pool general
         node a pool=general type=large
         pod one cpu=1 on=a",
        &expect![[r#"
            a stays: it costs $1.0000 an hour and a replacement would cost $0.9800
        "#]],
    );
}

/// DI-O1, DI-O2, DI-O3: nodes go in the order of what they save for their disruption, whatever their pool, and a pass
/// leaves no node unseen.
#[test]
fn every_pools_nodes_are_seen_in_every_pass() {
    let nodes: String = (0..20)
        .map(|n| {
            let pool = if n % 2 == 0 { "even" } else { "odd" };
            format!("node n{n:02} pool={pool} type=large\npod p{n:02} cpu=7 on=n{n:02}\n")
        })
        .collect();
    let situation = with_types(&format!("pool even sell=on-demand\npool odd sell=on-demand\n{nodes}"));
    let pass = pass_of(&Settings::default(), &situation);
    assert_eq!((pass.candidates, pass.stays.len()), (20, 20));
    let cheaper = situation
        .replace("pod p03 cpu=7", "pod p03 cpu=3")
        .replace("pod p07 cpu=7", "pod p07 cpu=1");
    let pass = pass_of(&Settings::default(), &cheaper);
    let taken: usize = pass.commands.iter().map(|command| command.nodes.len()).sum();
    assert_eq!(
        taken + pass.stays.len(),
        20,
        "every node is taken or has a reason to stay"
    );
    let savings: Vec<f64> = pass.commands.iter().map(|command| command.saving).collect();
    assert!(savings.len() > 1, "there is room for two pods and a smaller type");
    assert!(savings.is_sorted_by(|a, b| a >= b), "the best goes first: {savings:?}");
}

/// DI-R16: a new node is no node that is to be left alone.
#[test]
fn a_replacement_comes_although_others_are_left_alone() {
    check(
        &with_types(
            "pool general sell=on-demand
             pool patient after=1m sell=on-demand
             node a pool=general type=large
             node b pool=patient type=large event=20 settling
             pod one cpu=1 on=a
             pod two cpu=1 on=b",
        ),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
            b stays: consolidateAfter has not passed; it will at 2026-01-01T12:00:40Z
        "#]],
    );
}

/// DI-E13, DI-X18: a node that a capacity buffer counts on is not free to go because it is empty; others are,
/// and so is it once nothing counts on it.
#[test]
fn a_buffer_keeps_an_empty_node() {
    let situation = |held: u32| {
        with_types(&format!(
            "pool general sell=on-demand types=large
             node a pool=general type=large held={held}
             node b pool=general type=large"
        ))
    };
    check(
        &situation(2),
        &expect![[r#"
            empty b saves 0.80
            a stays: a capacity buffer counts on its room
        "#]],
    );
    check(
        &situation(0),
        &expect![[r#"
            empty a,b saves 1.60
        "#]],
    );
}

/// DI-E14: with a pod of its own such a node is like any other.
#[test]
fn a_buffer_does_not_keep_a_node_with_pods() {
    check(
        &two_large(
            "node c pool=general type=large held=2
             pod one cpu=6 on=a
             pod two cpu=7 on=b
             pod three cpu=1 on=c",
        ),
        &expect![[r#"
            consolidate c b<-three saves 0.80
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
            b stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-Q14: every pod that moves is counted, whoever owns it.
#[test]
fn a_command_counts_the_pods_that_move() {
    let situation = one_large(
        "pod one cpu=100m on=a count=3
         pod log cpu=100m on=a daemon
         pod done cpu=100m on=a finished",
    );
    let pass = pass_of(&Settings::default(), &situation);
    assert_eq!(pass.commands.iter().map(|command| command.pods).sum::<usize>(), 3);
}
