//! Whether commands still hold a while later.

use std::collections::BTreeSet;

use model::NodeKey;

use crate::{Obstacle, Settings, Validated, decide, situation, validate};

/// Decides on one situation and looks again on another.
fn reviewed(before: &str, later: &str) -> Validated {
    let settings = Settings::default();
    let (then, now) = (situation::parse(before), situation::parse(later));
    let commands = decide(&then, &settings, &BTreeSet::new(), situation::now()).commands;
    assert!(!commands.is_empty(), "something is decided at first");
    validate(&now, &settings, commands, &BTreeSet::new(), situation::now())
}

#[track_caller]
fn check(before: &str, later: &str, kept: &[&str], rejected: &[(Obstacle, usize)]) {
    let validated = reviewed(before, later);
    let nodes: Vec<String> = validated
        .commands
        .iter()
        .flat_map(|command| command.nodes.iter().map(ToString::to_string))
        .collect();
    assert_eq!(nodes, kept);
    let going: BTreeSet<&NodeKey> = validated.commands.iter().flat_map(|command| &command.nodes).collect();
    let mut targets = validated.commands.iter().flat_map(|command| &command.placements);
    assert!(
        targets.all(|placement| !going.contains(&placement.node)),
        "pods move to nodes that stay"
    );
    let found: Vec<_> = validated
        .rejected
        .iter()
        .map(|rejection| (rejection.obstacle, rejection.nodes.len()))
        .collect();
    assert_eq!(found, rejected);
}

const EMPTY: &str = "pool general\nnode a pool=general\nnode b pool=general\n";

/// DI-E8, DI-E9, DI-V6.
#[test]
fn an_empty_node_that_is_used_again_is_dropped() {
    check(EMPTY, EMPTY, &["a", "b"], &[]);
    check(
        EMPTY,
        &format!("{EMPTY}pod web on=a cpu=1"),
        &["b"],
        &[(Obstacle::Churn, 1)],
    );
    let one = "pool general\nnode a pool=general\n";
    check(
        one,
        "pool general\nnode a pool=general nominated",
        &[],
        &[(Obstacle::Budget, 1)],
    );
    check(
        one,
        "pool general budgets=0\nnode a pool=general",
        &[],
        &[(Obstacle::Budget, 1)],
    );
    check(
        one,
        "pool general\nnode a pool=general leaving",
        &[],
        &[(Obstacle::Churn, 1)],
    );
    check(
        one,
        "pool general\nnode a pool=general settling",
        &[],
        &[(Obstacle::Churn, 1)],
    );
}

/// What is worth nothing needs room as well, also when it came only after the decision.
#[test]
fn worthless_pods_need_their_room() {
    let cluster = "type small cpu=2 memory=8Gi price=0.2
        pool general policy=WhenEmpty
        node a pool=general type=small
        node b pool=general type=small
        pod filler cpu=1 on=a worthless
        pod web cpu=1 on=b\n";
    check(cluster, cluster, &["a"], &[]);
    let bare = cluster.replace("pod filler cpu=1 on=a worthless", "");
    check(&bare, cluster, &["a"], &[]);
    for before in [cluster, &bare] {
        let full = format!("{cluster}pod more cpu=500m on=b");
        check(before, &full, &[], &[(Obstacle::Scheduling, 1)]);
    }
}

const REPLACE: &str = "
    type small cpu=2 memory=8Gi price=0.2
    type medium cpu=4 memory=8Gi price=0.4
    type large cpu=8 memory=32Gi price=0.8
    pool general
    node a pool=general type=large
    pod one cpu=1 on=a\n";

/// DI-V2, DI-V3, DI-V4, DI-V6: one node, and one failure.
#[test]
fn an_exchange_holds_as_a_whole_or_not_at_all() {
    check(REPLACE, REPLACE, &["a"], &[]);
    let later = |more: &str| format!("{REPLACE}{more}");
    check(REPLACE, &later("pod two cpu=2 on=a"), &[], &[(Obstacle::Scheduling, 1)]);
    check(
        REPLACE,
        &later("pod two cpu=100m on=a protected"),
        &[],
        &[(Obstacle::Churn, 1)],
    );
    check(
        REPLACE,
        &later("pdb one covers=one allows=0"),
        &[],
        &[(Obstacle::Churn, 1)],
    );
    check(
        REPLACE,
        &REPLACE.replace("type=large\n", "type=large nominated\n"),
        &[],
        &[(Obstacle::Budget, 1)],
    );
    check(
        REPLACE,
        &REPLACE.replace("pool general\n", "pool general budgets=0\n"),
        &[],
        &[(Obstacle::Budget, 1)],
    );
    // A price that has risen in between is a saving that is gone.
    check(
        REPLACE,
        &REPLACE.replace("price=0.8", "price=0.1"),
        &[],
        &[(Obstacle::Scheduling, 1)],
    );
    // So is one of what would come instead, whichever of its types the cloud chooses.
    for (before, later) in [("price=0.2", "price=0.9"), ("price=0.4", "price=0.9")] {
        check(
            REPLACE,
            &REPLACE.replace(before, later),
            &[],
            &[(Obstacle::Scheduling, 1)],
        );
    }
    check(REPLACE, &REPLACE.replace("price=0.2", "price=0.5"), &["a"], &[]);
}

const TOGETHER: &str = "
    type large cpu=8 memory=32Gi price=1.6
    type small cpu=4 memory=16Gi price=0.2
    pool general
    node a pool=general type=large
    node b pool=general type=large
    pod one cpu=1 on=a
    pod two cpu=1 on=b\n";

/// DI-V4: of two nodes that go together each counts as a failure, whichever of them it was.
#[test]
fn two_nodes_that_go_together_fail_together() {
    check(TOGETHER, TOGETHER, &["a", "b"], &[]);
    for (change, into, obstacle) in [
        (
            "node b pool=general type=large",
            "node b pool=general type=large nominated",
            Obstacle::Budget,
        ),
        ("pool general", "pool general budgets=1", Obstacle::Budget),
        (
            "node b pool=general type=large",
            "node b pool=general type=large leaving",
            Obstacle::Churn,
        ),
        ("on=b", "on=b protected", Obstacle::Churn),
        ("cpu=1 on=b", "cpu=4 on=b", Obstacle::Scheduling),
    ] {
        let later = TOGETHER.replacen(change, into, 1);
        assert_ne!(later, TOGETHER);
        check(TOGETHER, &later, &[], &[(obstacle, 2)]);
    }
}

/// A launch is pinned to what was compared, so that a type which is on sale otherwise does not help it.
#[test]
fn a_replacement_that_is_sold_out_meanwhile_is_not_launched() {
    let spot = REPLACE
        .replace("price=0.2", "price=0.2 sell=spot,on-demand")
        .replace("price=0.4", "price=0.4 sell=spot,on-demand");
    check(&spot, &spot, &["a"], &[]);
    let one_left = spot.replace("price=0.2 ", "price=0.2 soldout=spot ");
    check(&spot, &one_left, &["a"], &[]);
    let none_left = one_left.replace("price=0.4 ", "price=0.4 soldout=spot ");
    check(&spot, &none_left, &[], &[(Obstacle::Scheduling, 1)]);
}

const DELETE: &str = "
    type large cpu=8 memory=32Gi price=0.8
    pool general types=large
    node a pool=general type=large
    node b pool=general type=large
    pod one cpu=1 on=a
    pod two cpu=6 on=b\n";

/// DI-V3, DI-V5: one command's end is not another's.
#[test]
fn a_deletion_needs_its_room() {
    check(DELETE, DELETE, &["a"], &[]);
    let full = format!("{DELETE}pod three cpu=2 on=b");
    check(DELETE, &full, &[], &[(Obstacle::Scheduling, 1)]);
    let gone = DELETE.replace("node a pool=general type=large\n", "");
    check(DELETE, &gone, &[], &[(Obstacle::Churn, 1)]);
}

const TWO: &str = "
    type large cpu=8 memory=32Gi price=0.8
    pool general types=large
    node a pool=general type=large
    node b pool=general type=large
    node c pool=general type=large
    pod one cpu=1 on=a
    pod two cpu=1 on=b
    pod three cpu=6 on=c\n";

/// Two commands had the room of one node in mind, and now it has room for one of them. The other could only go to the node
/// that the first gives up, so it does not hold.
#[test]
fn what_another_command_gives_up_is_no_room() {
    check(TWO, TWO, &["a", "b"], &[]);
    let fuller = format!("{TWO}pod four cpu=1 on=c");
    check(TWO, &fuller, &["a"], &[(Obstacle::Scheduling, 1)]);
    let full = format!("{TWO}pod four cpu=2 on=c");
    check(TWO, &full, &[], &[(Obstacle::Scheduling, 1), (Obstacle::Scheduling, 1)]);
}

/// The first command would move a pod to node c, but what it launches has become dear. So there is room for the second.
#[test]
fn a_command_that_does_not_hold_takes_no_room() {
    let settings = Settings::default();
    let cluster = |medium: &str, nodes: &str| {
        situation::parse(&format!(
            "type medium cpu=4 memory=16Gi price={medium}
             type large cpu=8 memory=32Gi price=0.8
             pool general
             node c pool=general type=large protected
             pod six cpu=6 on=c
             {nodes}"
        ))
    };
    let first = "node a pool=general type=large\npod four cpu=4 on=a\npod one cpu=1 on=a";
    let second = "node b pool=general type=large\npod two cpu=2 on=b";
    let decided = |nodes: &str| decide(&cluster("0.4", nodes), &settings, &BTreeSet::new(), situation::now()).commands;
    let commands: Vec<_> = [first, second].into_iter().flat_map(decided).collect();
    let targets = commands.iter().map(|command| command.placements.len());
    assert_eq!(targets.collect::<Vec<_>>(), [1, 1], "both have room of c in mind");
    let now = cluster("0.9", &format!("{first}\n{second}"));
    let validated = validate(&now, &settings, commands, &BTreeSet::new(), situation::now());
    let kept: Vec<_> = validated.commands.iter().map(super::line).collect();
    assert_eq!(kept, ["consolidate b c<-two saves 0.80"]);
    assert_eq!(validated.rejected.len(), 1);
}
