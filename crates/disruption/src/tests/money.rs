//! Pools that weigh savings against disruption.

use expect_test::expect;

use super::{check, pass_of, shown};
use crate::{Settings, balanced};

/// DI-A21: an oversized node is exchanged, a well-packed one is left alone.
#[test]
fn a_balanced_pool_takes_moves_that_are_worth_it() {
    check(
        "type small cpu=2 memory=8Gi price=0.2
         type large cpu=8 memory=32Gi price=0.8
         pool general policy=Balanced
         node a pool=general type=large
         node b pool=general type=large
         pod one cpu=1 on=a apart label:app=x
         pod many cpu=500m on=b count=15",
        &expect![[r#"
            consolidate a -> small/a/on-demand saves 0.60
            b stays: the saving is too small for the disruption: score 0.42, and NodePool general asks for 0.50
        "#]],
    );
}

/// DI-A21: many nodes with little on them go together; one whose pods fit elsewhere goes without a replacement; a budget of
/// nothing keeps them.
#[test]
fn a_balanced_pool_takes_moves_of_every_kind() {
    let many = |budget: &str| {
        format!(
            "type third cpu=3 memory=8Gi price=0.5
             type whole cpu=6 memory=32Gi price=0.6
             pool general policy=Balanced budgets={budget}
             node a pool=general type=third
             node b pool=general type=third
             node c pool=general type=third
             pod one cpu=2 on=a
             pod two cpu=2 on=b
             pod three cpu=2 on=c"
        )
    };
    check(
        &many("100%"),
        &expect![[r#"
            consolidate a,b,c -> whole/a/on-demand saves 0.90
        "#]],
    );
    check(
        &many("0%"),
        &expect![[r#"
            a stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 0, and 0 are down or going
            b stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 0, and 0 are down or going
            c stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 0, and 0 are down or going
        "#]],
    );
    check(
        "type large cpu=8 memory=32Gi price=0.8
         pool general policy=Balanced
         node a pool=general type=large
         node b pool=general type=large
         pod one cpu=1 on=a
         pod two cpu=500m on=b count=12",
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-A21: each pool goes by its own policy, and of nodes that could go those first that save most for their disruption.
#[test]
fn every_pool_goes_by_its_own_policy() {
    let pool = |policy: &str| {
        format!(
            "pool {policy} policy={policy} types=small,large
             node {policy} pool={policy} type=large
             pod {policy} cpu=1800m on={policy} apart label:app=x\n"
        )
    };
    let pools: String = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"].map(pool).concat();
    check(
        &format!(
            "type small cpu=2 memory=8Gi price=0.5
             type large cpu=8 memory=32Gi price=0.8
             {pools}"
        ),
        &expect![[r#"
            consolidate WhenEmptyOrUnderutilized -> small/a/on-demand saves 0.30
            Balanced stays: the saving is too small for the disruption: score 0.38, and NodePool Balanced asks for 0.50
            WhenEmpty stays: NodePool WhenEmpty gives up only empty nodes
        "#]],
    );
    check(
        "type small cpu=2 memory=8Gi price=0.2
         type large cpu=8 memory=32Gi price=0.8
         type huge cpu=16 memory=64Gi price=1.6
         pool general policy=Balanced budgets=1
         node a pool=general type=large
         node b pool=general type=huge
         node c pool=general type=large
         pod one cpu=1500m on=a apart label:app=x
         pod two cpu=1500m on=b apart label:app=x
         pod three cpu=1500m on=c apart label:app=x",
        &expect![[r#"
            consolidate b -> small/a/on-demand or 1 more saves 1.40
            a stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
            c stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
        "#]],
    );
}

/// DI-A13, DI-A14, DI-A16: totals include every node, savings are split by what the nodes cost, and only Balanced pools
/// vote.
#[test]
fn each_pool_is_measured_against_itself() {
    let pass = pass_of(
        &Settings::default(),
        "type large cpu=8 memory=32Gi price=0.8
         pool frugal policy=Balanced types=large
         pool plain types=large
         node a pool=frugal type=large
         node b pool=frugal type=large
         node c pool=plain type=large
         pod one cpu=1 on=a
         pod two cpu=6 on=b
         pod three cpu=1 on=c",
    );
    let mut scores = pass.commands.iter().flat_map(|command| &command.scores);
    let frugal = scores
        .find(|score| score.pool.as_str() == "frugal")
        .expect("its node goes");
    assert_eq!((frugal.total.price, frugal.total.disruption), (1.6, 4.0));
    assert!(frugal.score >= balanced::THRESHOLD);
}

/// However often a pass asks: each node that is refused alone counts once, and so does the last set that was refused.
#[test]
fn a_refused_move_is_scored_once() {
    let nodes: String = (0..6)
        .map(|n| format!("node n{n} pool=general type=large\npod p{n} cpu=1800m on=n{n} apart label:app=x\n"))
        .collect();
    let pass = pass_of(
        &Settings::default(),
        &format!(
            "type small cpu=2 memory=8Gi price=0.5
             type large cpu=8 memory=32Gi price=0.8
             pool general policy=Balanced
             {nodes}"
        ),
    );
    assert!(pass.commands.is_empty(), "{}", shown(&pass));
    let alone = pass.refused.iter().filter(|score| score.disruption == 2.0);
    assert_eq!((alone.count(), pass.refused.len()), (6, 7), "{:?}", pass.refused);
}

/// DI-A10, DI-A11, DI-A19: prices that are no numbers count as nothing, and those of sold-out offerings still count.
#[test]
fn prices_are_what_the_node_costs() {
    let text = "type large cpu=8 memory=32Gi price=0.8 soldout=on-demand\n type odd cpu=8 memory=32Gi price=NaN\n \
                pool general\n node a pool=general type=large\n node b pool=general type=odd";
    let snapshot = crate::situation::parse(text);
    let prices = crate::Prices::new(&snapshot);
    let price = |name: &str| prices.of(&snapshot.nodes[&model::NodeKey::Claim(name.into())]);
    assert_eq!((price("a"), price("b")), (Some(0.8), None));
}
