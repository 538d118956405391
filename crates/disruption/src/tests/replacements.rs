//! Nodes that are exchanged for something cheaper.

use expect_test::expect;
use scheduler::{MinValuesPolicy, Options, PreferencePolicy};

use super::{check, check_with, one_large, pass_of, shown, two_large, with_types};
use crate::Settings;

/// DI-R1: the old type is not among the options.
#[test]
fn a_dear_node_is_exchanged_for_a_cheaper_one() {
    check(
        &one_large("pod one cpu=1 on=a"),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
}

/// DI-R15: cheaper only as spot, and the pool buys on demand.
#[test]
fn a_pool_that_buys_on_demand_is_not_helped_by_spot_prices() {
    check(
        &with_types(
            "pool general sell=on-demand types=small
             node a pool=general type=small
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            a stays: it costs $0.2000 an hour and a replacement would cost $0.2000
        "#]],
    );
}

/// A launch that may be spot or on-demand is pinned to what was compared, and to on-demand where no spot is on sale.
#[test]
fn a_replacement_is_pinned_to_what_makes_it_cheaper() {
    check(
        &with_types(
            "pool general
             node a pool=general type=large
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            consolidate a -> small/a/spot or 2 more saves 0.72
        "#]],
    );
    check(
        "type small cpu=2 memory=8Gi price=0.2 sell=spot,on-demand soldout=spot
         type large cpu=8 memory=32Gi price=0.8 sell=spot,on-demand soldout=spot
         pool general
         node a pool=general type=large
         pod one cpu=1 on=a",
        &expect![[r#"
            consolidate a -> small/a/on-demand saves 0.60
        "#]],
    );
}

/// DI-R14: one dear zone is enough to refuse a type.
#[test]
fn a_type_that_is_dear_in_some_zone_is_no_replacement() {
    check(
        "type small cpu=2 memory=8Gi price=9 sell=on-demand soldout=on-demand offer:spot/a=0.1 offer:spot/b=0.9
         type large cpu=8 memory=32Gi price=0.8
         pool general
         node a pool=general type=large
         pod one cpu=1 on=a",
        &expect![[r#"
            a stays: it costs $0.8000 an hour and no replacement is reliably cheaper
        "#]],
    );
}

/// The cheapest come last in the order of their names.
fn spot_types(count: usize) -> String {
    let types = (0..count).map(|n| {
        let price = count - n + 9;
        format!("type t{n:02} cpu=4 memory=16Gi price=0.{price:02} sell=spot\n")
    });
    types.collect()
}

/// DI-R2, DI-R3, DI-R4, DI-R5.
#[test]
fn spot_is_exchanged_for_spot_only_with_enough_to_choose_from() {
    let on = Settings {
        spot_to_spot: true,
        ..Settings::default()
    };
    let situation = |kind: &str, count: usize| {
        format!(
            "{}pool general\nnode a pool=general type={kind} sell=spot\npod one cpu=1 on=a",
            spot_types(count)
        )
    };
    check_with(
        &on,
        &situation("t00", 40),
        &expect![[r#"
            consolidate a -> t39/a/spot or 14 more saves 0.16
        "#]],
    );
    check(
        &situation("t00", 40),
        &expect![[r#"
            a stays: a spot node is replaced by a spot node only with feature gate SpotToSpotConsolidation
        "#]],
    );
    check_with(
        &on,
        &situation("t25", 40),
        &expect![[r#"
            a stays: replacing spot by spot takes 15 cheaper instance types to choose from, and there are 14
        "#]],
    );
}

/// DI-R6: ordered by price before the list is cut.
#[test]
fn exactly_the_fifteen_cheapest_are_asked_for() {
    let on = Settings {
        spot_to_spot: true,
        ..Settings::default()
    };
    let situation = format!(
        "{}pool general\nnode a pool=general type=t00 sell=spot\npod one cpu=1 on=a",
        spot_types(40)
    );
    let pass = pass_of(&on, &situation);
    let launch = &pass.commands[0].replacements[0];
    let names: Vec<&str> = launch
        .instance_types
        .iter()
        .map(model::InstanceTypeName::as_str)
        .collect();
    let cheapest: Vec<String> = (25..40).rev().map(|n| format!("t{n:02}")).collect();
    assert_eq!(names, cheapest);
    let required = launch.requirements.get("node.kubernetes.io/instance-type");
    assert!(cheapest.iter().all(|name| required.has(name)) && !required.has("t24"));
}

/// DI-R4: each of several spot nodes that come in the place of one is chosen from fifteen types.
#[test]
fn a_spot_node_is_exchanged_for_two_only_with_enough_to_choose_from_for_each() {
    let on = Settings {
        spot_to_spot: true,
        ..Settings::default()
    };
    let situation = |count: usize| {
        let types: String = (0..count)
            .map(|n| format!("type t{n:02} cpu=2 memory=8Gi price=0.{:02} sell=spot\n", n + 10))
            .collect();
        format!(
            "{types}type big cpu=16 memory=64Gi price=2 sell=spot
             pool general
             node a pool=general type=big sell=spot
             pod one cpu=1500m on=a count=2"
        )
    };
    check_with(
        &on,
        &situation(20),
        &expect![[r#"
            consolidate a -> t00/a/spot or 14 more -> t00/a/spot or 14 more saves 0.72
        "#]],
    );
    check_with(
        &on,
        &situation(14),
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
}

/// DI-R19: a demand for variety that was lowered to what there is holds like any other.
#[test]
fn variety_that_was_lowered_is_kept() {
    let lenient = Settings {
        solver: Options {
            min_values_policy: MinValuesPolicy::BestEffort,
            ..Options::default()
        },
        ..Settings::default()
    };
    let situation = with_types(
        "pool general sell=on-demand min:type=9
         node a pool=general type=large
         pod one cpu=1 on=a",
    );
    check(
        &situation,
        &expect![[r#"
            a stays: one is stranded
        "#]],
    );
    check_with(
        &lenient,
        &situation,
        &expect![[r#"
            a stays: cheaper instance types have 2 values of node.kubernetes.io/instance-type, and the NodePool demands 3
        "#]],
    );
}

/// DI-R7, DI-R8, DI-R9.
#[test]
fn variety_that_the_pool_demands_is_kept() {
    let on = Settings {
        spot_to_spot: true,
        ..Settings::default()
    };
    let situation = |least: usize| {
        format!(
            "{}pool general min:type={least}\nnode a pool=general type=t00 sell=spot\npod one cpu=1 on=a",
            spot_types(40)
        )
    };
    check_with(
        &on,
        &situation(16),
        &expect![[r#"
            consolidate a -> t39/a/spot or 15 more saves 0.16
        "#]],
    );
    check_with(
        &on,
        &situation(5),
        &expect![[r#"
            consolidate a -> t39/a/spot or 14 more saves 0.16
        "#]],
    );
    check_with(
        &on,
        &situation(40),
        &expect![[r#"
            a stays: cheaper instance types have 39 values of node.kubernetes.io/instance-type, and the NodePool demands 40
        "#]],
    );
    check(
        &with_types(
            "pool general sell=on-demand min:type=3
             node a pool=general type=large
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            a stays: cheaper instance types have 2 values of node.kubernetes.io/instance-type, and the NodePool demands 3
        "#]],
    );
}

/// DI-R11: what is wrong with another pool does not matter. DI-X3 likewise.
#[test]
fn another_pools_trouble_changes_nothing() {
    check(
        &with_types(
            "pool general sell=on-demand
             pool broken nocatalog
             node a pool=general type=large
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
}

/// DI-R12, DI-R13.
#[test]
fn only_what_may_go_is_exchanged() {
    check(
        &with_types(
            "pool general sell=on-demand
             node a pool=general type=large
             node b pool=general type=large
             node c pool=general type=large protected
             pod one cpu=1500m on=a
             pod two cpu=7 on=b
             pod three cpu=7 on=c
             pdb two covers=two allows=0",
        ),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
            b stays: PodDisruptionBudget default/two allows no eviction of pod default/two now
            c stays: annotation karpenter.sh/do-not-disrupt is set on the node
        "#]],
    );
}

/// DI-R18, DI-X15: preferences are a reason to stay, unless they are ignored.
#[test]
fn ignored_preferences_do_not_matter() {
    let ignoring = Settings {
        solver: Options {
            preference_policy: PreferencePolicy::Ignore,
            ..Options::default()
        },
        ..Settings::default()
    };
    let likes_it = one_large("pod one cpu=1 on=a likes:type=large");
    check(
        &likes_it,
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
    check_with(
        &ignoring,
        &likes_it,
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
    let aloof = two_large(
        "pod one cpu=1 on=a aloof label:app=web
         pod two cpu=2 on=b aloof label:app=web",
    );
    check(
        &aloof,
        &expect![[r#"
            a stays: it costs $0.8000 an hour and a replacement would cost $0.8000
            b stays: it costs $0.8000 an hour and a replacement would cost $0.8000
        "#]],
    );
    check_with(
        &ignoring,
        &aloof,
        &expect![[r#"
            consolidate a b<-one saves 0.80
            b stays: pods of other nodes are moving to it
        "#]],
    );
}

/// DI-R17: what is paid for anyhow is used, and the reservation is named.
#[test]
fn a_reservation_replaces_what_is_paid_by_the_hour() {
    for sold in ["on-demand", "spot"] {
        let situation = format!(
            "type large cpu=8 memory=32Gi price=0.8 sell=spot,on-demand reserve:r1/a=1
             pool general
             node a pool=general type=large sell={sold}
             pod one cpu=1 on=a"
        );
        let pass = pass_of(&Settings::default(), &situation);
        let launches: Vec<_> = pass
            .commands
            .iter()
            .flat_map(|command| &command.replacements)
            .map(|launch| {
                let reservation = launch.requirements.get("example.com/reservation");
                (launch.choice.to_string(), reservation.has("r1"))
            })
            .collect();
        assert_eq!(
            launches,
            [("large/a/reserved".to_owned(), true)],
            "{sold}: {}",
            shown(&pass)
        );
    }
    check(
        "type small cpu=2 memory=8Gi price=0.2 reserve:r1/a=1
         type large cpu=8 memory=32Gi price=0.8 reserve:r2/a=1
         pool general
         node a pool=general type=large sell=reserved label:example.com/reservation=r2
         pod one cpu=1 on=a",
        &expect![[r#"
            consolidate a -> small/a/reserved saves 0.00
        "#]],
    );
}

/// DI-R20: a volume of the node that goes does not tie its pod to it.
#[test]
fn a_local_volume_does_not_keep_a_node() {
    check(
        &one_large("pod one cpu=1 on=a stateful local"),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
}

/// DI-R22: room of a buffer beside pods does not keep a dear node.
#[test]
fn a_buffer_beside_pods_does_not_keep_a_dear_node() {
    check(
        &with_types(
            "pool general sell=on-demand
             node a pool=general type=large held=1
             pod one cpu=1 on=a",
        ),
        &expect![[r#"
            consolidate a -> small/a/on-demand or 1 more saves 0.60
        "#]],
    );
}
