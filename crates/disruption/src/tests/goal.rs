//! The end that a pass aims at: who stays, who goes, and that pods move once.

use expect_test::expect;

use super::check;

#[test]
fn every_pod_moves_straight_to_a_node_that_stays() {
    check(
        "type large cpu=8 memory=32Gi price=0.8
         pool general
         node a pool=general type=large
         node b pool=general type=large
         node c pool=general type=large
         node d pool=general type=large
         pod one cpu=3 on=a
         pod two cpu=1 on=b
         pod three cpu=2 on=c
         pod four cpu=1 on=d",
        &expect![[r#"
            consolidate b a<-two saves 0.80
            consolidate c a<-three saves 0.80
            consolidate d a<-four saves 0.80
            a stays: pods of other nodes are moving to it
        "#]],
    );
}

#[test]
fn nodes_that_cost_too_much_for_their_room_go_even_when_they_are_full() {
    check(
        "type dear cpu=8 memory=32Gi price=1.6
         type large cpu=8 memory=32Gi price=0.8
         pool general
         node a pool=general type=dear
         node b pool=general type=large
         pod one cpu=6 memory=24Gi on=a
         pod two cpu=1 memory=4Gi on=b
         pod three cpu=1 memory=4Gi on=b",
        &expect![[r#"
            consolidate a b<-one saves 1.60
            b stays: pods of other nodes are moving to it
        "#]],
    );
}

#[test]
fn a_replacement_that_saves_little_does_not_move_pods() {
    check(
        "type large cpu=8 memory=32Gi price=0.8
         type newer cpu=8 memory=32Gi price=0.7
         pool general
         node a pool=general type=large
         pod one cpu=3 memory=12Gi on=a
         pod two cpu=4 memory=16Gi on=a",
        &expect![[r#"
            a stays: a replacement would save $0.1000 an hour, and to move its pods it would have to save $0.1531
        "#]],
    );
}

/// A budget of one lets one of three nodes go now; the others are not filled with its pods, because they are next.
#[test]
fn what_goes_later_receives_nothing_now() {
    check(
        "type large cpu=8 memory=32Gi price=0.8
         pool general budgets=1
         node a pool=general type=large
         node b pool=general type=large
         node c pool=general type=large
         node d pool=general type=large
         pod one cpu=4 on=a
         pod two cpu=1 on=b
         pod three cpu=1 on=c
         pod four cpu=1 on=d",
        &expect![[r#"
            consolidate b a<-two saves 0.80
            a stays: pods of other nodes are moving to it
            c stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
            d stays: the budgets of NodePool general let no more nodes go for reason Underutilized now: they allow 1, and 1 are down or going
        "#]],
    );
}

#[test]
fn nodes_whose_pods_share_a_new_node_go_together() {
    check(
        "type large cpu=8 memory=32Gi price=1.6
         type small cpu=4 memory=16Gi price=0.2
         pool general
         node a pool=general type=large
         node b pool=general type=large
         pod one cpu=1 on=a
         pod two cpu=1 on=b",
        &expect![[r#"
            consolidate a,b -> small/a/on-demand or 1 more saves 3.00
        "#]],
    );
}
