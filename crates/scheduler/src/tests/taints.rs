//! Taints and tolerations.

use expect_test::expect;

use super::check;

const SMALL: &str = "type small cpu=2 memory=4Gi price=0.1";

fn with_small(text: &str) -> String {
    format!("{SMALL}\n{text}")
}

/// SC15.10.1, SC15.10.2
#[test]
fn a_tolerated_taint_does_not_repel() {
    check(
        &with_small(
            "pool gpu taints=gpu:NoSchedule
             pod by-key cpu=100m tolerates=gpu
             pod by-effect cpu=110m tolerates=gpu:NoSchedule
             pod all cpu=120m tolerates=
             pod none cpu=130m
             pod other cpu=140m tolerates=cpu
             pod wrong-effect cpu=150m tolerates=gpu:NoExecute",
        ),
        expect![[r#"
            launch gpu#1  small/a/spot  <- all by-effect by-key
            refuse none: pool gpu: taint gpu:NoSchedule is not tolerated
            refuse other: pool gpu: taint gpu:NoSchedule is not tolerated
            refuse wrong-effect: pool gpu: taint gpu:NoSchedule is not tolerated
        "#]],
    );
}

/// SC15.10.3
#[test]
fn startup_taints_do_not_repel() {
    check(
        &with_small("pool general startup=boot:NoExecute\npod web cpu=1"),
        expect![[r#"
            launch general#1  small/a/spot  <- web
        "#]],
    );
}

/// SC15.4.8, SC15.4.9
#[test]
fn discouraging_taints_are_avoided_as_long_as_there_is_another_place() {
    check(
        &with_small(
            "pool slow weight=10 taints=slow:PreferNoSchedule
             pool fast
             pod web cpu=1",
        ),
        expect![[r#"
            launch fast#1  small/a/spot  <- web
        "#]],
    );
    check(
        &with_small("pool slow taints=slow:PreferNoSchedule\npod web cpu=1 count=3"),
        expect![[r#"
            launch slow#1  small/a/spot  <- web-1 web-2
            launch slow#2  small/a/spot  <- web-3
        "#]],
    );
}

/// SC15.10.5, SC15.10.6, SC15.10.7
#[test]
fn taints_of_nodes_repel_unless_the_node_is_still_starting() {
    check(
        &with_small(
            "pool general
             node booting pool=general cpu=2 memory=2Gi booting startup=boot:NoSchedule taints=node.kubernetes.io/not-ready:NoExecute,boot:NoSchedule
             node sick pool=general cpu=2 memory=2Gi taints=node.kubernetes.io/not-ready:NoExecute
             node again pool=general cpu=2 memory=2Gi startup=boot:NoSchedule taints=boot:NoSchedule
             node custom pool=general cpu=2 memory=2Gi taints=team:NoSchedule
             node clean pool=general cpu=2 memory=2Gi
             pod web cpu=2 count=3
             pod team cpu=1900m tolerates=team",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- web-3
            place booting  <- web-2
            place clean  <- web-1
            place custom  <- team
        "#]],
    );
}

#[test]
fn a_cordoned_node_takes_nothing() {
    check(
        &with_small("pool general\nnode n1 cpu=2 memory=2Gi cordoned\npod web cpu=1"),
        expect![[r#"
            launch general#1  small/a/spot  <- web
        "#]],
    );
}
