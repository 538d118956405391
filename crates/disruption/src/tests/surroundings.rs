//! What else there is in a cluster besides nodes that are too dear: nodes that leave or start, pods that nobody owns, pods
//! that have to stay in their zone, capacity that is paid for already.

use expect_test::expect;

use super::{check, pass_of, shown, two_large, with_types};
use crate::Settings;

/// DI-X7: a pod that nobody owns is moved and counted like any other.
#[test]
fn pods_without_an_owner_are_moved() {
    let situation = two_large(
        "pod one cpu=1 on=a owner=none
         pod two cpu=2 on=b count=3",
    );
    let pass = pass_of(&Settings::default(), &situation);
    assert_eq!(pass.commands.iter().map(|command| command.pods).sum::<usize>(), 1);
    expect![[r#"
        consolidate a b<-one saves 0.80
        b stays: pods of other nodes are moving to it
    "#]]
    .assert_eq(&shown(&pass));
}

/// DI-X16: a node that was launched for the pods of one that leaves waits for them.
#[test]
fn a_node_that_pods_are_on_their_way_to_stays() {
    let pass = pass_of(
        &Settings::default(),
        &with_types(
            "pool general sell=on-demand
             node a pool=general type=large leaving
             node b pool=general type=large nominated
             pod one cpu=6 on=a",
        ),
    );
    assert!(pass.commands.is_empty(), "{}", shown(&pass));
}

/// DI-Q11: pods whose node leaves anyway may wait for one that is starting; that keeps no other node.
#[test]
fn pods_of_leaving_nodes_may_wait_for_a_starting_one() {
    let pass = pass_of(
        &Settings::default(),
        &with_types(
            "pool general sell=on-demand types=large
             node a pool=general type=large leaving
             node b pool=general type=large young
             node c pool=general type=large
             node d pool=general type=large
             pod gone cpu=8 on=a
             pod one cpu=1 on=c
             pod two cpu=2 on=d count=3",
        ),
    );
    let shown = shown(&pass);
    assert!(shown.starts_with("consolidate c d<-one saves 0.80\n"), "{shown}");
}

/// DI-R21: the replacement stays in the zone that the spread of its pods asks for, although another is named first.
#[test]
fn a_spread_keeps_the_zone_of_a_replacement() {
    check(
        &with_types(
            "pool general sell=on-demand
             node a pool=general type=large zone=b
             node b pool=general type=small zone=a
             pod one cpu=1 on=a spread label:app=web
             pod two cpu=1 on=b spread label:app=web",
        ),
        &expect![[r#"
            consolidate a -> small/b/on-demand or 1 more saves 0.60
            b stays: it costs $0.2000 an hour and a replacement would cost $0.2000
        "#]],
    );
}

/// DI-A17: what a pool may not buy does not count, and neither do the prices of other zones.
#[test]
fn savings_are_measured_by_what_the_pool_may_buy() {
    let saving = |pool: &str| {
        let pass = pass_of(
            &Settings::default(),
            &format!(
                "type small cpu=2 memory=8Gi price=9 zones=c offer:on-demand/a=0.2 offer:on-demand/b=0.3 offer:spot/a=0.1
                 type large cpu=8 memory=32Gi price=0.8 zones=a,b
                 pool general {pool}
                 node a pool=general type=large zone=b
                 pod one cpu=1 on=a"
            ),
        );
        pass.commands
            .iter()
            .map(|command| format!("{:.2}", command.saving))
            .collect::<Vec<_>>()
    };
    assert_eq!(saving("sell=on-demand zones=a"), ["0.60"]);
    assert_eq!(saving("sell=on-demand zones=b"), ["0.50"]);
    assert_eq!(saving("zones=a"), ["0.70"], "spot");
}

/// DI-A15: where there is nothing to decide about, nothing is scored and nothing is done.
#[test]
fn nothing_comes_of_nothing() {
    let pass = pass_of(&Settings::default(), "pool general policy=Balanced");
    assert!(pass.commands.is_empty() && pass.refused.is_empty());
}

/// DI-M3, DI-O4: no pass is cut short by a clock. Where no work is left for sets of nodes, each node alone has still been
/// looked at and has its reason.
#[test]
fn every_node_is_looked_at_whatever_the_effort() {
    let situation = "type third cpu=3 memory=8Gi price=0.5
         type whole cpu=6 memory=32Gi price=0.9
         pool general
         node a pool=general type=third
         node b pool=general type=third
         node c pool=general type=third
         pod one cpu=2 on=a
         pod two cpu=2 on=b
         pod three cpu=2 on=c";
    let none = Settings {
        effort: 0,
        ..Settings::default()
    };
    expect![[r#"
        a stays: it costs $0.5000 an hour and a replacement would cost $0.5000
        b stays: it costs $0.5000 an hour and a replacement would cost $0.5000
        c stays: it costs $0.5000 an hour and a replacement would cost $0.5000
    "#]]
    .assert_eq(&shown(&pass_of(&none, situation)));
    assert_eq!(pass_of(&Settings::default(), situation).commands.len(), 1);
}
