//! Machines that are there or on their way.

use expect_test::expect;

use super::check;

const SMALL: &str = "type small cpu=2 memory=4Gi price=0.1\ntype large cpu=8 memory=16Gi price=0.4";

fn with_types(text: &str) -> String {
    format!("{SMALL}\n{text}")
}

/// SC15.11.1, SC15.11.2, SC15.11.3
#[test]
fn what_is_there_is_used_first() {
    check(
        &with_types(
            "pool general
             node n1 cpu=2 memory=4Gi zone=a
             pod half cpu=1 count=3
             pod elsewhere cpu=1 select=zone:In:b",
        ),
        expect![[r#"
            launch general#1  small/b/spot  <- elsewhere half-3
            place n1  <- half-1 half-2
        "#]],
    );
}

/// SC15.11.4
#[test]
fn initialised_nodes_come_before_those_that_are_starting() {
    check(
        &with_types(
            "pool general
             claim a-launched pool=general cpu=2 memory=4Gi zone=a
             node b-booting pool=general cpu=2 memory=4Gi booting
             node c-ready pool=general cpu=2 memory=4Gi
             pod web cpu=2 count=4",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- web-4
            place a-launched  <- web-2
            place b-booting  <- web-3
            place c-ready  <- web-1
        "#]],
    );
}

/// SC15.11.5
#[test]
fn labels_of_a_node_are_final() {
    check(
        &with_types(
            "pool general
             node n1 cpu=8 memory=4Gi label:team=blue
             pod blue cpu=1 select=team:In:blue
             pod zone-a cpu=1 select=zone:In:a
             pod not-red cpu=1 select=team:NotIn:red",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- zone-a
            place n1  <- blue not-red
        "#]],
    );
}

#[test]
fn bound_pods_take_their_share_and_finished_ones_do_not() {
    check(
        &with_types(
            "node n1 cpu=4 memory=4Gi
             pod old cpu=3 on=n1
             pod done cpu=3 on=n1 done
             pod web cpu=1 count=2",
        ),
        expect![[r#"
            place n1  <- web-1
            refuse web-2: there is no node pool
        "#]],
    );
}

/// SC15.11.11, SC15.12.1
#[test]
fn pods_of_a_leaving_node_move_elsewhere() {
    check(
        &with_types(
            "pool general
             node n1 pool=general cpu=8 memory=16Gi leaving
             node n2 pool=general cpu=8 memory=16Gi marked
             pod old cpu=1 count=3 on=n1 again
             pod new cpu=1 count=2",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- new-1
            launch general#2  small/a/spot  <- old-1 new-2
            launch general#3  small/a/spot  <- old-2 old-3
        "#]],
    );
}

#[test]
fn a_claim_outside_the_zone_of_a_daemon_has_its_room_for_pods() {
    let situation = |zone: &str| {
        format!(
            "type small cpu=2 memory=4Gi zones=a,b price=0.1
             pool general
             claim c1 pool=general types=small zones={zone}
             daemon agent cpu=1 select=zone:In:a
             pod web cpu=1500m"
        )
    };
    check(
        &situation("b"),
        expect![[r#"
        place c1  <- web
    "#]],
    );
    check(
        &situation("a"),
        expect![[r#"
        launch general#1  small/b/spot  <- web
    "#]],
    );
}

/// SC15.9.15, SC15.9.16, SC15.9.17
#[test]
fn daemons_that_have_not_arrived_keep_their_place() {
    let situation = |pods: &str| {
        with_types(&format!(
            "node n1 cpu=16 memory=16Gi
             daemon logs cpu=1
             daemon elsewhere cpu=10 select=team:In:red
             {pods}"
        ))
    };
    check(
        &situation("pod web cpu=15"),
        expect![[r#"
        place n1  <- web
    "#]],
    );
    check(
        &situation("pod web cpu=15100m"),
        expect![[r#"
        refuse web: there is no node pool
    "#]],
    );
    check(
        &situation("pod logs-x cpu=1 on=n1 daemon\npod web cpu=15"),
        expect![[r#"
            place n1  <- web
        "#]],
    );
    check(
        &situation("pod odd cpu=3 on=n1 daemon\npod web cpu=14"),
        expect![[r#"
            refuse web: there is no node pool
        "#]],
    );
}

/// SC15.11.10
#[test]
fn a_port_on_a_node_is_taken_once() {
    check(
        &with_types(
            "node n1 cpu=8 memory=4Gi
             node n2 cpu=8 memory=4Gi
             pod old cpu=1 port=8080 on=n1
             pod server cpu=1 port=8080 count=2
             pod other cpu=1 port=9090",
        ),
        expect![[r#"
            place n1  <- other
            place n2  <- server-1
            refuse server-2: there is no node pool
        "#]],
    );
}

/// SC15.11.7, before the instance is known: the claim has room for what it was made for, whatever it becomes.
#[test]
fn pods_planned_onto_an_unlaunched_claim_are_planned_there_again() {
    check(
        &with_types(
            "pool general
             claim c1 pool=general types=small,large zones=a
             daemon logs cpu=500m
             pod web cpu=1500m
             pod zone-a cpu=1500m select=zone:In:a
             pod zone-b cpu=1500m select=zone:In:b",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- zone-a
            launch general#2  small/b/spot  <- zone-b
            place c1  <- web
        "#]],
    );
}

#[test]
fn a_claim_that_may_end_up_elsewhere_does_not_take_a_pod_that_cares() {
    check(
        &with_types(
            "pool general
             claim c1 pool=general types=small,large
             pod zone-a cpu=1500m select=zone:In:a
             pod not-a cpu=100m select=zone:NotIn:a
             pod any cpu=200m select=unheard:NotIn:x",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- zone-a
            launch general#2  small/b/spot  <- not-a
            place c1  <- any
        "#]],
    );
}

#[test]
fn an_overcommitted_node_takes_nothing() {
    check(
        &with_types(
            "node n1 cpu=4 memory=1Gi
             pod greedy cpu=1 memory=2Gi on=n1
             pod web cpu=1",
        ),
        expect![[r#"
            refuse web: there is no node pool
        "#]],
    );
}
