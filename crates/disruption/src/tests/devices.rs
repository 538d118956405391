//! Pods that hold devices.

use expect_test::expect;
use scheduler::Options;

use super::check_with;
use crate::Settings;

fn with_devices() -> Settings {
    Settings {
        solver: Options {
            ignore_dra: false,
            ..Options::default()
        },
        ..Settings::default()
    }
}

const TYPES: &str = "type one cpu=4 memory=16Gi price=0.4 gpus=1
    type two cpu=8 memory=32Gi price=0.6 gpus=2
    type big cpu=16 memory=64Gi price=1.6 gpus=1
    type plain cpu=4 memory=16Gi price=0.2
    pool general
    ";

fn with_types(rest: &str) -> String {
    format!("{TYPES}{rest}")
}

/// DI-R23: the device is left behind, and the replacement brings one of its own. The node that goes is no target, although
/// its device is free then.
#[test]
fn a_pod_gets_a_device_of_the_replacement() {
    check_with(
        &with_devices(),
        &with_types(
            "node a pool=general type=big gpus=1
             pod web cpu=1 on=a holds=a/gpu-0",
        ),
        &expect![[r#"
            consolidate a -> one/a/on-demand or 1 more saves 1.20
        "#]],
    );
}

/// DI-R24: no other device can be had, because none is sold or because somebody who stays holds it.
#[test]
fn a_pod_whose_device_cannot_be_had_elsewhere_stays() {
    check_with(
        &with_devices(),
        "type big cpu=16 memory=64Gi price=1.6 gpus=1
         type plain cpu=4 memory=16Gi price=0.2
         pool general types=plain
         node a pool=general type=big gpus=1
         pod web cpu=1 on=a holds=a/gpu-0",
        &expect![[r#"
            a stays: web is stranded
        "#]],
    );
    check_with(
        &with_devices(),
        "type big cpu=16 memory=64Gi price=1.6 gpus=1
         type plain cpu=4 memory=16Gi price=0.2
         pool general types=plain
         node a pool=general type=big gpus=1
         node b pool=general type=big gpus=1 protected
         pod web cpu=1 on=a holds=a/gpu-0
         pod other cpu=1 on=b holds=b/gpu-0",
        &expect![[r#"
            a stays: web is stranded
            b stays: annotation karpenter.sh/do-not-disrupt is set on the node
        "#]],
    );
}

/// DI-R25: both pods find their devices on one machine.
#[test]
fn two_nodes_are_exchanged_for_one_with_two_devices() {
    check_with(
        &with_devices(),
        &with_types(
            "node a pool=general type=one gpus=1
             node b pool=general type=one gpus=1
             pod web cpu=3 on=a holds=a/gpu-0
             pod api cpu=3 on=b holds=b/gpu-0",
        ),
        &expect![[r#"
            consolidate a,b -> two/a/on-demand saves 0.20
        "#]],
    );
}

/// DI-R26: of a device that is shared, only the portion is free that the pods that move have had.
#[test]
fn only_the_portion_of_those_who_move_is_free() {
    let situation = |wanted: &str| {
        format!(
            "type big cpu=16 memory=64Gi price=1.6
             type plain cpu=4 memory=16Gi price=0.2
             pool general
             fabric f memory=16Gi
             node a pool=general type=big
             node b pool=general type=plain protected
             pod web cpu=3 on=a holds=f/gpu-0/4Gi wants={wanted}
             pod other cpu=3 on=b holds=f/gpu-0/12Gi"
        )
    };
    check_with(
        &with_devices(),
        &situation("4Gi"),
        &expect![[r#"
        consolidate a -> plain/a/on-demand saves 1.40
        b stays: annotation karpenter.sh/do-not-disrupt is set on the node
    "#]],
    );
    check_with(
        &with_devices(),
        &situation("8Gi"),
        &expect![[r#"
        a stays: web is stranded
        b stays: annotation karpenter.sh/do-not-disrupt is set on the node
    "#]],
    );
}

/// Pods that hold devices do not move to other drifted nodes either, whatever is free there.
#[test]
fn a_drifted_node_takes_no_pods_that_hold_devices() {
    check_with(
        &with_devices(),
        "type two cpu=8 memory=32Gi price=0.6 gpus=2
         pool general after=never
         node a pool=general type=two gpus=2 drifted=30
         node b pool=general type=two gpus=2 drifted=10
         pod web cpu=1 on=a holds=a/gpu-0
         pod api cpu=1 on=b holds=b/gpu-0",
        &expect![[r#"
            drift a -> two/a/on-demand saves 0.00
            b stays: pods use devices of the cluster, so that commands are given one by one
        "#]],
    );
}
