//! Which instance types a launch lists, and which it would buy.

use expect_test::expect;

use super::{check, check_claims, planned, with_sizes};
use crate::{MinValuesPolicy, Options};

/// SC15.5.9, SC15.5.14: all types that would do are listed, cheapest first; the cheapest is bought.
#[test]
fn every_type_that_would_do_is_listed_by_price() {
    check_claims(
        "type small cpu=2 memory=4Gi price=0.3
         type medium cpu=4 memory=8Gi price=0.2 sell=on-demand
         type large cpu=8 memory=16Gi price=0.1 soldout=a/spot,b/spot
         pool general
         pod web cpu=1",
        expect![[r#"
            types large small medium
            requests cpu=1 pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large medium small]
        "#]],
    );
}

/// SC15.5.13
#[test]
fn only_offerings_that_the_pool_admits_count_for_the_price() {
    check(
        "type cheap-spot cpu=2 memory=4Gi price=0.3
         type cheap-on-demand cpu=2 memory=4Gi price=0.25 sell=on-demand
         pool general sell=on-demand
         pod web cpu=1",
        expect![[r#"
            launch general#1  cheap-on-demand/a/on-demand  <- web
        "#]],
    );
}

/// SC15.6.1, SC15.6.6, SC15.6.7
#[test]
fn pods_get_the_cheapest_nodes_that_hold_them() {
    check(
        &with_sizes("pool general\npod web cpu=1 count=5"),
        expect![[r#"
            launch general#1  small/a/spot  <- web-1
            launch general#2  small/a/spot  <- web-2 web-3
            launch general#3  small/a/spot  <- web-4 web-5
        "#]],
    );
    check(
        &with_sizes("pool general\npod web cpu=1 count=11"),
        expect![[r#"
        launch general#1  large/a/spot  <- web-1 web-2 web-3 web-4 web-5 web-6 web-7 web-8
        launch general#2  medium/a/spot  <- web-9 web-10 web-11
    "#]],
    );
    check(
        "type tiny cpu=4 memory=4Gi pods=2
         pool general
         pod web cpu=10m count=5",
        expect![[r#"
            launch general#1  tiny/a/spot  <- web-1 web-2
            launch general#2  tiny/a/spot  <- web-3 web-4
            launch general#3  tiny/a/spot  <- web-5
        "#]],
    );
}

#[test]
fn small_pods_fill_the_gaps_that_large_ones_leave() {
    check(
        &with_sizes(
            "pool general types=medium
             pod large cpu=3 count=2
             pod small cpu=1 count=2",
        ),
        expect![[r#"
            launch general#1  medium/a/spot  <- large-1 small-1
            launch general#2  medium/a/spot  <- large-2 small-2
        "#]],
    );
}

/// The launch with the fewest pods is asked first.
#[test]
fn pods_are_dealt_out_over_open_launches() {
    check(
        &with_sizes(
            "pool general types=large
             pod left cpu=5 select=zone:In:a
             pod right cpu=5 select=zone:In:b
             pod crowd cpu=500m count=7",
        ),
        expect![[r#"
            launch general#1  large/a/spot  <- left crowd-1 crowd-3 crowd-5 crowd-7
            launch general#2  large/b/spot  <- right crowd-2 crowd-4 crowd-6
        "#]],
    );
}

/// SC15.5.1, SC15.5.3
#[test]
fn a_pod_that_is_too_large_for_everything_is_refused() {
    check(
        &with_sizes(
            "pool general
             pod huge cpu=512 memory=1Gi
             pod mistyped cpu=2M
             pod gpu cpu=1 has:nvidia.com/gpu=1
             pod wrong cpu=4 select=type:In:small",
        ),
        expect![[r#"
            refuse gpu: pool general: no instance type met the scheduling requirements or had a required offering (3 too small), nvidia.com/gpu 1 is asked for and the largest has 0 left
            refuse huge: pool general: no instance type met the scheduling requirements or had a required offering (3 too small), cpu 512 is asked for and the largest has 8 left
            refuse mistyped: pool general: no instance type met the scheduling requirements or had a required offering (3 too small), cpu 2M is asked for and the largest has 8 left (was M written for m in the cpu request?)
            refuse wrong: pool general: no instance type met the scheduling requirements or had a required offering (2 with other labels, 1 too small), cpu 4 is asked for and the largest has 2 left
        "#]],
    );
}

/// SC15.5.4, SC15.5.5
#[test]
fn devices_choose_their_type() {
    check(
        &with_sizes(
            "type gpu cpu=4 memory=8Gi has:nvidia.com/gpu=2 price=2
             pool general
             pod train cpu=1 has:nvidia.com/gpu=1 count=3
             pod web cpu=1 has:example.com/unheard=0",
        ),
        expect![[r#"
            launch general#1  gpu/a/spot  <- web train-1 train-2
            launch general#2  gpu/a/spot  <- train-3
        "#]],
    );
}

/// SC15.5.17, and types that are not on sale.
#[test]
fn a_pool_without_any_type_on_sale_is_not_asked() {
    check(
        "type small cpu=2 memory=4Gi zones=a soldout=a/spot,a/on-demand
         pool general
         pool elsewhere zones=nowhere
         pod web cpu=1",
        expect![[r#"
            refuse web: pool general: nodepool requirements filtered out all available instance types; pool elsewhere: nodepool requirements filtered out all available instance types
        "#]],
    );
}

/// SC15.9.1, SC15.9.13
#[test]
fn daemons_take_their_share_of_a_new_node() {
    check_claims(
        &with_sizes(
            "pool general startup=boot:NoSchedule
             daemon logs cpu=1 memory=1Gi
             pod web cpu=1500m memory=1Gi count=2",
        ),
        expect![[r#"
            types medium large
            requests cpu=4 memory=3Gi pods=3
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large medium]
        "#]],
    );
}

/// SC15.9.2, SC15.9.7, SC15.9.8, SC15.9.9, SC15.9.10, SC15.9.14
#[test]
fn only_daemons_that_will_run_there_count() {
    check(
        &with_sizes(
            "pool general label:team=blue taints=slow:PreferNoSchedule
             pool tainted taints=gpu:NoSchedule
             daemon red cpu=10 select=team:In:red
             daemon blue cpu=1 term=team:In:red term=team:In:blue
             daemon ready cpu=1 select=karpenter.sh/initialized:In:true
             pod web cpu=1500m
             pod on-tainted cpu=1500m tolerates=gpu select=pool:In:tainted",
        ),
        expect![[r#"
            launch tainted#1  small/a/spot  <- on-tainted
            launch general#2  medium/a/spot  <- web
        "#]],
    );
}

/// SC15.9.11, SC15.9.12
#[test]
fn daemons_differ_by_instance_type() {
    check(
        "type small cpu=2 memory=4Gi price=0.1 label:size=small
         type large cpu=8 memory=16Gi price=0.4 label:size=large
         pool general
         daemon few cpu=100m select=size:In:small
         daemon many cpu=7 port=8080 select=size:In:large
         pod web cpu=1500m count=2
         pod server cpu=500m port=8080",
        expect![[r#"
            launch general#1  small/a/spot  <- web-1
            launch general#2  small/a/spot  <- web-2
            launch general#3  small/a/spot  <- server
        "#]],
    );
}

#[test]
fn a_daemon_of_one_zone_takes_nothing_elsewhere_and_the_claim_says_so() {
    let situation = |pods: &str| {
        format!(
            "type small cpu=2 memory=4Gi zones=a,b,c price=0.1
             type large cpu=8 memory=16Gi zones=a,b,c price=0.4
             pool general
             daemon agent cpu=1 port=8080 select=zone:In:a
             {pods}"
        )
    };
    // Too large for the small type beside the daemon: it is bought where the daemon does not run.
    check_claims(
        &situation("pod web cpu=1500m"),
        expect![[r#"
            types small large
            requests cpu=1500m pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large small]
            topology.kubernetes.io/zone In [b c]
        "#]],
    );
    check(
        &situation("pod web cpu=1500m select=zone:In:a"),
        expect![[r#"
            launch general#1  large/a/spot  <- web
        "#]],
    );
    // Small enough for every zone: the claim leaves them all open.
    check_claims(
        &situation("pod web cpu=500m"),
        expect![[r#"
        types small large
        requests cpu=1500m pods=2
        labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
        karpenter.sh/capacity-type In [on-demand spot]
        karpenter.sh/nodepool In [general]
        karpenter.test/testnodeclass In [default]
        node.kubernetes.io/instance-type In [large small]
    "#]],
    );
    // The port of the daemon is free elsewhere.
    check_claims(
        &situation("pod web cpu=500m port=8080"),
        expect![[r#"
        types small large
        requests cpu=500m pods=1
        labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
        karpenter.sh/capacity-type In [on-demand spot]
        karpenter.sh/nodepool In [general]
        karpenter.test/testnodeclass In [default]
        node.kubernetes.io/instance-type In [large small]
        topology.kubernetes.io/zone In [b c]
    "#]],
    );
}

#[test]
fn a_daemon_of_one_capacity_type_is_kept_away_from_by_capacity_type() {
    check_claims(
        "type small cpu=2 memory=4Gi zones=a,b price=0.1
         pool general
         daemon saver cpu=1 select=capacity:In:spot
         pod web cpu=1500m",
        expect![[r#"
            types small
            requests cpu=1500m pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [small]
        "#]],
    );
}

#[test]
fn a_daemon_of_one_offering_costs_the_fewest_others() {
    check_claims(
        "type small cpu=2 memory=4Gi zones=a,b price=0.1
         pool general
         daemon saver cpu=1 select=capacity:In:spot select=zone:In:a
         pod web cpu=1500m",
        expect![[r#"
            types small
            requests cpu=1500m pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [small]
            topology.kubernetes.io/zone In [b]
        "#]],
    );
}

#[test]
fn daemons_that_no_one_label_keeps_away_leave_one_offering() {
    check_claims(
        "type small cpu=2 memory=4Gi zones=a,b price=0.1
         pool general
         daemon one cpu=1 select=capacity:In:spot select=zone:In:a
         daemon other cpu=1 select=capacity:In:on-demand select=zone:In:b
         pod web cpu=1500m",
        expect![[r#"
            types small
            requests cpu=1500m pods=1
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [small]
            topology.kubernetes.io/zone In [b]
        "#]],
    );
}

/// A pool that demands variety counts every daemon that may come, so that the cloud keeps its choice.
#[test]
fn where_variety_is_demanded_zones_stay_open() {
    check_claims(
        "type small cpu=2 memory=4Gi zones=a,b price=0.1
         type medium cpu=4 memory=8Gi zones=a price=0.2
         type large cpu=8 memory=16Gi zones=a,b price=0.4
         pool general where=type:In:small|medium|large:2
         daemon agent cpu=1 select=zone:In:a
         pod web cpu=1500m",
        expect![[r#"
            types medium large
            requests cpu=2500m pods=2
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large medium] minValues 2
        "#]],
    );
}

/// SC15.5.6, SC15.5.7
#[test]
fn labels_of_instance_types_can_be_asked_for() {
    check(
        "type small cpu=2 memory=4Gi price=0.1 label:size=small
         type large cpu=8 memory=16Gi price=0.4 label:size=large label:special=optional
         type plain cpu=8 memory=16Gi price=0.5 label:size=large
         pool general
         pod small cpu=1 select=size:In:small
         pod large cpu=4 select=size:In:large
         pod special cpu=5 select=special:Exists
         pod contradiction cpu=1 select=size:In:small select=type:In:large",
        expect![[r#"
            launch general#1  large/a/spot  <- special
            launch general#2  large/a/spot  <- large
            launch general#3  small/a/spot  <- small
            refuse contradiction: pool general: no instance type met the scheduling requirements or had a required offering (3 with other labels)
        "#]],
    );
}

/// Kube-reserved and other overhead is no room for pods.
#[test]
fn overhead_of_the_machine_is_left_to_it() {
    check(
        "type small cpu=2 memory=4Gi reserved:cpu=100m price=0.1
         type large cpu=8 memory=16Gi reserved:cpu=100m price=0.4
         pool general
         pod exact cpu=1900m select=zone:In:a
         pod more cpu=1901m select=zone:In:b",
        expect![[r#"
            launch general#1  large/b/spot  <- more
            launch general#2  small/a/spot  <- exact
        "#]],
    );
}

/// A workload of many replicas is one class: the number of pods does not matter to the number of questions.
#[test]
fn twenty_thousand_like_pods_fill_the_largest_nodes() {
    let plan = planned(
        &with_sizes("pool general\npod web cpu=100m memory=100Mi count=20000"),
        Options::default(),
    );
    let counts: std::collections::BTreeSet<usize> = plan.launches.iter().map(|launch| launch.pods.len()).collect();
    assert_eq!(
        (plan.launches.len(), counts, plan.refusals.len()),
        (250, [80].into(), 0)
    );
}

/// SC15.11.10 and SC15.9.12 on new nodes.
#[test]
fn a_port_of_the_node_is_taken_once() {
    check(
        &with_sizes(
            "pool general
             pod server cpu=100m port=8080 count=2
             pod other cpu=100m port=9090",
        ),
        expect![[r#"
            launch general#1  small/a/spot  <- other server-1
            launch general#2  small/a/spot  <- server-2
        "#]],
    );
    check(
        &with_sizes(
            "pool general
             daemon proxy cpu=100m port=8080
             pod server cpu=100m port=8080",
        ),
        expect![[r#"
            refuse server: pool general: no instance type met the scheduling requirements or had a required offering (3 with a daemon on the pod's port)
        "#]],
    );
}

/// SC15.18.1, SC15.18.4, SC15.18.5
#[test]
fn a_launch_keeps_as_many_types_as_the_pool_demands() {
    check_claims(
        &with_sizes(
            "pool general where=type:Exists::2
             pod web cpu=1500m count=4",
        ),
        expect![[r#"
            types medium large
            requests cpu=3 pods=2
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large medium] minValues 2
            types medium large
            requests cpu=3 pods=2
            labels karpenter.sh/nodepool=general karpenter.test/testnodeclass=default
            karpenter.sh/capacity-type In [on-demand spot]
            karpenter.sh/nodepool In [general]
            karpenter.test/testnodeclass In [default]
            node.kubernetes.io/instance-type In [large medium] minValues 2
        "#]],
    );
    check(
        &with_sizes("pool general where=type:Exists::4\npod web cpu=1"),
        expect![[r#"
            refuse web: pool general: minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type]): 4 values of node.kubernetes.io/instance-type are asked for, there are 3
        "#]],
    );
    let narrow = Options {
        max_instance_types: 1,
        ..Options::default()
    };
    let plan = planned(
        &with_sizes("pool general where=type:Exists::2\npod web cpu=1 count=2"),
        narrow,
    );
    expect![[r#"
        refuse web-1: pool general: among the cheapest instance types minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type]): 2 values of node.kubernetes.io/instance-type are asked for, there are 1
        refuse web-2: pool general: among the cheapest instance types minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type]): 2 values of node.kubernetes.io/instance-type are asked for, there are 1
    "#]].assert_eq(&plan.to_string());
}

/// SC15.18.8, SC15.18.9
#[test]
fn best_effort_takes_the_variety_that_there_is() {
    let options = Options {
        min_values_policy: MinValuesPolicy::BestEffort,
        ..Options::default()
    };
    let situation = with_sizes(
        "pool general weight=10 where=type:Exists::4
         pool plain
         pod web cpu=3",
    );
    let plan = planned(&situation, options);
    expect![[r#"
        launch general#1  medium/a/spot  <- web
    "#]]
    .assert_eq(&plan.to_string());
    let launch = &plan.launches[0];
    assert!(launch.min_values_relaxed);
    assert_eq!(
        launch
            .requirements
            .requirement("node.kubernetes.io/instance-type")
            .unwrap()
            .min_values,
        Some(2)
    );
}

#[test]
fn a_launch_lists_no_more_types_than_it_may() {
    let two = Options {
        max_instance_types: 2,
        ..Options::default()
    };
    let plan = planned(&with_sizes("pool general\npod web cpu=1"), two);
    let names: Vec<&str> = plan.launches[0]
        .instance_types
        .iter()
        .map(model::InstanceTypeName::as_str)
        .collect();
    assert_eq!(names, ["small", "medium"]);
}

/// A launch that comes to nothing when its list is cut takes its pods along, and nobody counts on them any more.
#[test]
fn pods_do_not_follow_others_onto_a_launch_that_comes_to_nothing() {
    let narrow = Options {
        max_instance_types: 1,
        ..Options::default()
    };
    let plan = planned(
        &with_sizes(
            "pool picky where=type:Exists::2 label:pool-of=picky
             pool plain
             pod db cpu=1 label:app=db select=pool:In:picky
             pod web cpu=500m label:app=web near=zone:app=db select=pool:In:plain
             pod other cpu=250m select=pool:In:plain",
        ),
        narrow,
    );
    let refused: Vec<&str> = plan.refusals.keys().map(|pod| &*pod.name).collect();
    assert_eq!((refused, plan.launches.len()), (vec!["db", "web"], 1), "{plan}");
}
