//! Empty nodes and budgets.

use expect_test::expect;
use model::budget::{Budget, DisruptionReason, NodeShare};
use scheduler::{Round, solve};

use super::{check, pass_of, shown};
use crate::{Ledger, Settings, situation};

#[test]
fn empty_nodes_go_dearest_first_as_far_as_the_budget_reaches() {
    check(
        "pool general budgets=2
         node a pool=general price=1
         node b pool=general price=3
         node c pool=general price=2",
        &expect![[r#"
            empty b,c saves 5.00
            a stays: the budgets of NodePool general let no more nodes go for reason Empty now: they allow 2, and 2 are down or going
        "#]],
    );
}

/// DI-E1, DI-E2, DI-E4, DI-E5, DI-E6, DI-E7.
#[test]
fn nodes_without_pods_worth_moving_are_empty() {
    check(
        "pool general
         node a pool=general
         node b pool=general
         node c pool=general
         node d pool=general
         node e pool=general drifted=60
         node f pool=general
         node g pool=general
         pod log on=a daemon
         pod job on=b finished
         pod filler on=c worthless
         pod web on=d cpu=1
         pod going on=f ending
         pod db on=g ending stateful cpu=1",
        &expect![[r#"
            empty a,b,e,f saves 4.00
            c stays: filler is stranded
            d stays: web is stranded
            g stays: db is stranded
        "#]],
    );
}

const SMALL: &str = "type small cpu=2 memory=8Gi price=0.2\n";

/// Whatever the pool's policy, pods that are worth nothing do not keep a node, as long as they fit on nodes that stay.
#[test]
fn worthless_pods_make_way_where_there_is_room_for_them() {
    let situation = |web: &str| {
        format!(
            "{SMALL}pool general policy=WhenEmpty
             node a pool=general type=small
             node b pool=general type=small
             pod filler cpu=1 on=a worthless
             pod web cpu={web} on=b"
        )
    };
    check(
        &situation("1"),
        &expect![[r#"
            empty a b<-filler saves 0.20
            b stays: NodePool general gives up only empty nodes
        "#]],
    );
    check(
        &situation("1500m"),
        &expect![[r#"
            a stays: NodePool general gives up only empty nodes
            b stays: NodePool general gives up only empty nodes
        "#]],
    );
    // Of two such nodes one takes the pods of the other. Neither looks for room on a node that goes itself.
    check(
        &format!(
            "{SMALL}pool general policy=WhenEmpty
             node a pool=general type=small
             node b pool=general type=small
             node c pool=general type=small
             pod one cpu=1 on=a worthless
             pod two cpu=1 on=b worthless"
        ),
        &expect![[r#"
            empty a,c b<-one saves 0.40
            b stays: pods of other nodes are moving to it
        "#]],
    );
    check(
        &format!(
            "{SMALL}pool general policy=WhenEmpty
             node a pool=general type=small
             node c pool=general type=small
             pod one cpu=1 on=a worthless"
        ),
        &expect![[r#"
            empty c saves 0.20
            a stays: NodePool general gives up only empty nodes
        "#]],
    );
}

/// They would wait again, and the next node would come and go.
#[test]
fn a_node_stays_under_the_worthless_pods_that_it_came_for() {
    let waiting = situation::parse(&format!("{SMALL}pool general\npod filler cpu=1 worthless pending"));
    let round = Round::new(waiting.pods_to_place(situation::now()), situation::now());
    let choices: Vec<String> = solve(&waiting, &round)
        .launches
        .iter()
        .map(|launch| launch.choice.to_string())
        .collect();
    assert_eq!(choices, ["small/a/on-demand"]);
    check(
        &format!("{SMALL}pool general\nnode a pool=general type=small\npod filler cpu=1 on=a worthless"),
        &expect![[r#"
            a stays: it costs $0.2000 an hour and a replacement would cost $0.2000
        "#]],
    );
}

/// What they run on may be too dear for them, as for any other pods.
#[test]
fn a_dear_node_of_worthless_pods_is_exchanged() {
    check(
        &format!(
            "{SMALL}type large cpu=8 memory=32Gi price=0.8
             pool general
             node a pool=general type=large
             pod filler cpu=1 on=a worthless"
        ),
        &expect![[r#"
            consolidate a -> small/a/on-demand saves 0.60
        "#]],
    );
}

/// Room that is promised to pods of an empty node is not promised again, and a drifted node that takes some waits.
#[test]
fn room_for_worthless_pods_is_taken() {
    check(
        &format!(
            "{SMALL}pool general after=0s
             pool never after=never
             node a pool=general type=small
             node b pool=never type=small
             node c pool=never type=small drifted=9
             pod filler cpu=1 on=a worthless
             pod one cpu=1 on=b
             pod two cpu=1 on=c"
        ),
        &expect![[r#"
            empty a b<-filler saves 0.20
            drift c -> small/a/on-demand saves 0.00
            b stays: NodePool never never consolidates
        "#]],
    );
    check(
        &format!(
            "{SMALL}pool general after=0s
             pool never after=never
             node a pool=general type=small
             node c pool=never type=small drifted=9
             pod filler cpu=1 on=a worthless
             pod two cpu=1 on=c"
        ),
        &expect![[r#"
            empty a c<-filler saves 0.20
            c stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-E3, DI-E12, DI-E16.
#[test]
fn a_node_waits_out_its_pools_patience() {
    check(
        "pool patient after=1m
         pool never after=never
         pool fixed replicas=2
         node a pool=patient settling event=20
         node b pool=never
         node c pool=fixed
         node d pool=never
         pod web on=d cpu=1",
        &expect![[r#"
            a stays: consolidateAfter has not passed; it will at 2026-01-01T12:00:40Z
            b stays: NodePool never never consolidates
            c stays: NodePool fixed has a fixed number of nodes
            d stays: NodePool never never consolidates
        "#]],
    );
}

fn fleet(nodes: usize, node: &str, pool: &str) -> String {
    let nodes = (0..nodes).map(|number| format!("node n{number} pool=general {node}\n"));
    format!("pool general {pool}\n{}", nodes.collect::<String>())
}

fn deleted(situation: &str) -> usize {
    let pass = pass_of(&Settings::default(), situation);
    assert!(pass.commands.len() <= 1, "empty nodes go in one command");
    pass.commands.iter().map(|command| command.nodes.len()).sum()
}

/// DI-B1, DI-B2, DI-B3, DI-B4, DI-B5, DI-B6.
#[test]
fn budgets_limit_how_many_go() {
    assert_eq!(deleted(&fleet(10, "", "budgets=30%")), 3);
    assert_eq!(deleted(&fleet(10, "", "budgets=100%")), 10);
    assert_eq!(deleted(&fleet(10, "", "budgets=0%")), 0);
    let pools = |budget: &str| {
        let pool = |number: usize| {
            let nodes = (0..3).map(|node| format!("node p{number}n{node} pool=p{number}\n"));
            format!("pool p{number} budgets={budget}\n{}", nodes.collect::<String>())
        };
        (0..10).map(pool).collect::<String>()
    };
    assert_eq!(deleted(&pools("50%")), 20, "a share is rounded up in every pool");
    assert_eq!(deleted(&pools("100%")), 30);
    assert_eq!(deleted(&pools("0")), 0);
}

fn left(situation: &str, reason: DisruptionReason) -> u32 {
    Ledger::open(&situation::parse(situation), situation::now()).left(&"general".into(), reason)
}

/// DI-B11, DI-B12, DI-B13, DI-B14, DI-B15, DI-B16.
#[test]
fn what_is_down_or_leaving_uses_the_budget_up() {
    use DisruptionReason::Empty;
    let ten = |extra: &str, pool: &str| format!("{}{extra}", fleet(10, "", pool));
    assert_eq!(left(&ten("node x pool=general foreign", "budgets=100%"), Empty), 10);
    assert_eq!(left(&ten("node x pool=general young", "budgets=100%"), Empty), 10);
    assert_eq!(left(&ten("node x pool=general terminating", "budgets=100%"), Empty), 10);
    assert_eq!(left(&fleet(10, "leaving", "budgets=10%"), Empty), 0);
    let two = |first: &str, second: &str| {
        let rest = (0..8).map(|number| format!("node n{number} pool=general\n"));
        let rest: String = rest.collect();
        format!("pool general budgets=100%\n{rest}node x pool=general {first}\nnode y pool=general {second}")
    };
    assert_eq!(left(&two("leaving", "marked"), Empty), 8);
    assert_eq!(left(&two("down", "down"), Empty), 8);
}

/// DI-B17, DI-B18, DI-B19, DI-B20, DI-B22: a budget that cannot be read closes the pool.
#[test]
fn the_strictest_budget_for_a_reason_counts() {
    use DisruptionReason::{Drifted, Empty, Underutilized};
    let all = |pool: &str| [Empty, Drifted, Underutilized].map(|reason| left(&fleet(10, "", pool), reason));
    assert_eq!(all("budgets=0"), [0, 0, 0]);
    assert_eq!(all(""), [model::budget::UNBOUNDED; 3]);
    assert_eq!(all("budgets=5,Drifted:2,Drifted:3,Empty:7"), [5, 2, 5]);
    assert_eq!(all("broken-budget"), [0, 0, 0]);
}

/// A budget that cannot be read says so, whatever the reason for which a node would go.
#[test]
fn a_budget_that_cannot_be_read_is_told() {
    check(
        "type large cpu=8 memory=32Gi price=0.8
         pool general broken-budget
         node a pool=general type=large
         node b pool=general type=large
         node c pool=general type=large drifted=9
         pod one cpu=1 on=b
         pod two cpu=1 on=c",
        &expect![[r#"
            a stays: the budgets of NodePool general cannot be read, so that none of its nodes goes: no such day
            b stays: the budgets of NodePool general cannot be read, so that none of its nodes goes: no such day
            c stays: the budgets of NodePool general cannot be read, so that none of its nodes goes: no such day
        "#]],
    );
}

/// DI-B21, DI-B23, DI-B24, DI-B25, DI-B26, DI-B27, DI-B29.
#[test]
fn a_schedule_opens_and_closes_a_budget() {
    let active = |schedule: &str, hours: i64, minutes: i64, at: &str| {
        let budget = Budget {
            window: Some(model::budget::Window {
                schedule: schedule.parse().expect("a schedule"),
                duration: jiff::SignedDuration::from_mins(hours * 60 + minutes),
            }),
            ..Budget::always(NodeShare::Count(0))
        };
        budget.is_active(at.parse().expect("a moment"))
    };
    // Midnight an hour east of Greenwich is eleven at night in UTC, by which schedules go.
    assert!(!active("@daily", 0, 30, "2026-01-02T00:00:00+01:00"));
    // Clocks in Europe skip an hour in this night; the window is as long as in any other.
    for (moment, open) in [
        ("2026-03-29T00:30:00+01:00", true),
        ("2026-03-29T03:30:00+02:00", true),
        ("2026-03-29T07:59:59+02:00", true),
        ("2026-03-29T08:00:00+02:00", false),
    ] {
        assert_eq!(active("0 22 * * *", 8, 0, moment), open, "{moment}");
    }
    assert!(active("@yearly", 24, 0, "2026-01-01T12:00:00Z"));
    assert!(active("@daily", 48, 0, "2026-01-01T12:00:00Z"));
    // The first of January 2026 is a Thursday.
    assert!(!active("0 20 * * 4", 2, 0, "2026-01-01T12:00:00Z"));
    assert!(active("0 11 * * 4", 2, 0, "2026-01-01T12:00:00Z"));
    for bad in ["@sometimes", "* * * * tue-mon"] {
        bad.parse::<model::budget::Schedule>().expect_err(bad);
    }
}

/// DI-B28: what is left for want of budget says so, whatever the method and the number of pools, and goes as soon as it is
/// looked at with the budget open.
#[test]
fn what_the_budget_leaves_is_told_and_goes_later() {
    for (word, pool, node, pod) in [
        ("empty", "", "", None),
        ("drift", "after=never", "drifted=9", Some("cpu=7")),
        ("drift", "replicas=2", "drifted=9", Some("cpu=7")),
        ("consolidate", "", "", Some("cpu=1 apart label:app=x")),
        ("consolidate", "", "", Some("cpu=5")),
    ] {
        for pools in [1, 3] {
            let decided = |budgets: &str| {
                let node = |pool: usize, n: usize| {
                    let pod = pod.map(|pod| format!("pod w{pool}{n} {pod} on=n{pool}{n}\n"));
                    let pod = pod.unwrap_or_default();
                    format!("node n{pool}{n} pool=p{pool} type=large {node}\n{pod}")
                };
                let pool = |n: usize| format!("pool p{n} {pool} budgets={budgets}\n{}{}", node(n, 1), node(n, 2));
                let situation: String = (0..pools).map(pool).collect();
                let types = "type small cpu=2 memory=8Gi price=0.2
                    type large cpu=8 memory=32Gi price=0.8
                    type huge cpu=16 memory=64Gi price=0.9\n";
                pass_of(&Settings::default(), &format!("{types}{situation}"))
            };
            let closed = decided("0");
            let kept = closed.stays.iter().filter(|stay| stay.why.word() == "Budget");
            assert_eq!(
                (closed.commands.len(), kept.count()),
                (0, 2 * pools),
                "{}",
                shown(&closed)
            );
            let open = decided("100%");
            let gone = open.commands.iter().map(|command| command.nodes.len());
            assert_eq!(gone.sum::<usize>(), 2 * pools, "{}", shown(&open));
            assert!(
                shown(&open).lines().all(|line| line.starts_with(word)),
                "{}",
                shown(&open)
            );
        }
    }
}

/// DI-E15: the empty node of a Balanced pool goes before the one that is under-used.
#[test]
fn the_empty_node_goes_first() {
    check(
        "type large cpu=8 memory=32Gi price=0.8
         pool general policy=Balanced budgets=1
         node a pool=general type=large
         node b pool=general type=large
         node c pool=general type=large
         pod one cpu=1 on=a
         pod two cpu=4 on=c",
        &expect![[r#"
            empty b saves 0.80
            a stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
            c stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
        "#]],
    );
}
