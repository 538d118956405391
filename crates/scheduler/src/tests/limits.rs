//! Pools never exceed their limits, whatever their launches turn out to be.

use expect_test::expect;

use super::{check, with_sizes};

/// SC15.8.1, SC15.8.5
#[test]
fn a_pool_over_its_limit_launches_nothing() {
    check(
        &with_sizes(
            "pool general limit:cpu=20
             node n1 pool=general cpu=100 memory=1Gi pods=0
             pod web cpu=1",
        ),
        expect![[r#"
            refuse web: pool general: every instance type exceeds what its limits leave (cpu=-80)
        "#]],
    );
}

/// SC15.8.2, SC15.8.4
#[test]
fn types_beyond_what_the_limits_leave_are_not_listed() {
    check(
        &with_sizes(
            "pool general limit:cpu=2
             pod fits cpu=1750m",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- fits
        "#]],
    );
    check(
        &with_sizes(
            "pool general limit:cpu=2
             pod large cpu=2100m",
        ),
        expect![[r#"
            refuse large: pool general: no instance type met the scheduling requirements or had a required offering (2 beyond the limits, 1 too small), cpu 2100m is asked for and the largest has 2 left
        "#]],
    );
    check(
        &with_sizes(
            "pool general limit:memory=6Gi
             pod large cpu=3",
        ),
        expect![[r#"
            refuse large: pool general: no instance type met the scheduling requirements or had a required offering (2 beyond the limits, 1 too small), cpu 3 is asked for and the largest has 2 left
        "#]],
    );
}

/// SC15.8.3, in one round.
#[test]
fn launches_of_one_round_count_against_each_other() {
    check(
        &with_sizes(
            "pool general limit:cpu=3
             pod left cpu=1500m select=zone:In:a
             pod right cpu=1500m select=zone:In:b",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- left
            refuse right: pool general: every instance type exceeds what its limits leave (cpu=1)
        "#]],
    );
}

/// SC15.8.6, in one round: stricter than upstream, which counts nodes only from round to round.
#[test]
fn the_number_of_nodes_is_limited_within_a_round() {
    check(
        &with_sizes(
            "pool general limit:nodes=2
             pod server cpu=1 port=8080 count=3",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- server-1
            launch general#2  small/a/spot  <- server-2
            refuse server-3: pool general: its limit of 2 nodes is reached
        "#]],
    );
    check(
        &with_sizes(
            "pool general limit:nodes=2
             pod web cpu=1 memory=1Gi count=17",
        ),
        expect![[r#"
            launch general#1  large/a/spot  <- web-1 web-2 web-3 web-4 web-5 web-6 web-7 web-8
            launch general#2  large/a/spot  <- web-9 web-10 web-11 web-12 web-13 web-14 web-15 web-16
            refuse web-17: pool general: its limit of 2 nodes is reached
        "#]],
    );
}

#[test]
fn what_a_pool_may_not_launch_another_one_does() {
    check(
        &with_sizes(
            "pool first weight=10 limit:cpu=8
             pool second
             pod web cpu=7 count=2",
        ),
        expect![[r#"
            launch first#1  large/a/spot  <- web-1
            launch second#2  large/a/spot  <- web-2
        "#]],
    );
}

/// A claim that is not launched yet may become the largest of its types.
#[test]
fn unlaunched_claims_count_as_the_largest_they_can_become() {
    check(
        &with_sizes(
            "pool general limit:cpu=10
             claim c1 pool=general types=small,large
             pod web cpu=3",
        ),
        expect![[r#"
            refuse web: pool general: no instance type met the scheduling requirements or had a required offering (2 beyond the limits, 1 too small), cpu 3 is asked for and the largest has 2 left
        "#]],
    );
}
