//! How pods are packed onto the instance types of the standard catalogues.

use std::collections::BTreeSet;

use model::vocabulary;

use super::{plan_of, story::Story};
use crate::Plan;

fn on(catalog: &str, text: &str) -> Plan {
    plan_of(&format!("catalog {catalog}\npool default\n{text}"))
}

fn bought(plan: &Plan) -> Vec<&str> {
    plan.launches
        .iter()
        .map(|launch| launch.choice.instance_type.as_str())
        .collect()
}

/// SC15.6.1
#[test]
fn a_small_pod_gets_a_small_node() {
    for pods in ["memory=100M", "memory=2000M", "memory=10M count=5"] {
        assert_eq!(
            bought(&on("standard", &format!("pod web {pods}"))),
            ["small-instance-type"],
            "{pods}"
        );
    }
}

/// SC15.6.2, SC15.6.8, SC15.7.1: what a pod asks for is added up before a solver sees it.
#[test]
fn a_pod_that_asks_for_more_gets_a_larger_node() {
    assert_eq!(
        bought(&on("standard", "pod web cpu=3 memory=1Gi")),
        ["default-instance-type"]
    );
    assert_eq!(bought(&on("standard", "pod web cpu=2")), ["default-instance-type"]);
}

/// SC15.6.3
#[test]
fn gaps_are_filled_before_nodes_are_added() {
    let large = "pod large memory=1800M select=arch:In:amd64 count=40";
    let plan = on("standard", large);
    assert_eq!((plan.launches.len(), plan.refusals.len()), (20, 0));
    assert!(
        bought(&plan).iter().all(|kind| *kind == "default-instance-type"),
        "{plan}"
    );
    let plan = on(
        "standard",
        &format!("{large}\npod small memory=400M select=arch:In:amd64 count=20"),
    );
    assert_eq!((plan.launches.len(), plan.refusals.len()), (20, 0));
}

/// SC15.6.4
#[test]
fn pods_of_different_size_get_nodes_of_different_size() {
    let plan = on("fake-5", "pod large cpu=4500m\npod small cpu=1");
    let kinds: BTreeSet<&str> = bought(&plan).into_iter().collect();
    assert_eq!((plan.launches.len(), kinds.len()), (2, 2), "{plan}");
}

/// SC15.6.5
#[test]
fn none_of_an_unknown_resource_is_no_demand() {
    assert_eq!(
        bought(&on("standard", "pod web has:foo.com/weird=0")),
        ["small-instance-type"]
    );
}

/// SC15.6.6, SC15.6.7
#[test]
fn the_number_of_pods_per_node_is_limited() {
    let plan = on("standard", "pod web memory=1M select=arch:In:amd64 count=25");
    assert_eq!(bought(&plan), ["small-instance-type"; 5], "{plan}");
    let single = "catalog standard\npool default types=single-pod-instance-type\npod web cpu=10m count=3";
    assert_eq!(bought(&plan_of(single)), ["single-pod-instance-type"; 3]);
}

/// SC15.6.9, SC15.6.10: the type that just holds what was added up.
#[test]
fn the_smallest_type_that_holds_a_pod_is_bought() {
    let types = "type t10 cpu=10 memory=4Gi price=1
                 type t11 cpu=11 memory=5Gi price=1.1
                 type t12 cpu=12 memory=6Gi price=1.2
                 pool default";
    assert_eq!(
        bought(&plan_of(&format!("{types}\npod web cpu=10900m memory=4900Mi"))),
        ["t11"]
    );
    assert_eq!(
        bought(&plan_of(&format!("{types}\npod web cpu=9900m memory=3900Mi"))),
        ["t10"]
    );
}

/// SC15.5.2
#[test]
fn pods_that_exclude_each_other_get_a_node_each() {
    for (left, right) in [
        ("arch:In:amd64", "arch:In:arm64"),
        ("os:In:linux", "os:In:windows"),
        ("type:In:small-instance-type", "type:In:default-instance-type"),
        ("zone:In:test-zone-1", "zone:In:test-zone-2"),
    ] {
        let plan = on(
            "standard",
            &format!("pod l cpu=10m select={left}\npod r cpu=10m select={right}"),
        );
        assert_eq!((plan.launches.len(), plan.refusals.len()), (2, 0), "{plan}");
    }
}

/// SC15.5.3
#[test]
fn what_the_pool_excludes_is_not_to_be_had() {
    for pod in [
        "cpu=1 select=type:In:arm-instance-type",
        "cpu=1 select=os:In:ios",
        "cpu=14",
    ] {
        let plan = plan_of(&format!(
            "catalog standard\npool default where=arch:In:amd64\npod web {pod}"
        ));
        assert_eq!(plan.refusals.len(), 1, "{plan}");
    }
}

/// SC15.5.4, SC15.5.5
#[test]
fn devices_lead_to_the_types_that_have_them() {
    let plan = on(
        "standard",
        "pod a has:fake.com/vendor-a=1\npod b has:fake.com/vendor-b=1",
    );
    assert_eq!((plan.launches.len(), plan.refusals.len()), (2, 0), "{plan}");
    for launch in &plan.launches {
        assert_eq!(launch.instance_types.len(), 1, "{plan}");
    }
    let both = on("standard", "pod both has:fake.com/vendor-a=1 has:fake.com/vendor-b=1");
    assert_eq!(both.refusals.len(), 1, "{both}");
}

/// SC15.5.6, SC15.5.7
#[test]
fn labels_of_types_choose_among_them() {
    assert_eq!(
        bought(&on("fake-5", "pod web cpu=100m select=size:In:large")),
        ["fake-it-4"]
    );
    assert_eq!(
        bought(&on("fake-5", "pod web cpu=100m select=size:In:small")),
        ["fake-it-0"]
    );
    assert_eq!(
        bought(&on("fake-5", "pod web cpu=100m select=special:Exists")),
        ["fake-it-4"]
    );
    let plain = on("fake-5", "pod web cpu=100m select=special:DoesNotExist");
    assert_eq!(plain.launches[0].instance_types.len(), 4, "{plain}");
    let none = on(
        "fake-5",
        "pod web cpu=100m select=size:In:large select=type:In:fake-it-0",
    );
    assert_eq!(none.refusals.len(), 1, "{none}");
}

/// SC15.5.8, SC15.5.9, SC15.3.13
#[test]
fn a_pool_lists_the_types_that_it_admits() {
    for (pool, expected) in [
        ("where=arch:In:arm64", &["arm-instance-type"][..]),
        ("where=os:In:ios", &["arm-instance-type"]),
        ("where=integer:Gt:8", &["arm-instance-type"]),
        ("where=integer:Gte:16", &["arm-instance-type"]),
        ("where=integer:Lt:4", &["small-instance-type"]),
        ("where=integer:Lte:2", &["small-instance-type"]),
    ] {
        let plan = plan_of(&format!("catalog standard\npool default {pool}\npod web cpu=10m"));
        let listed: Vec<&str> = plan.launches[0]
            .instance_types
            .iter()
            .map(model::InstanceTypeName::as_str)
            .collect();
        assert_eq!(listed, expected, "{pool}");
    }
    assert_eq!(on("standard", "pod web cpu=10m").launches[0].instance_types.len(), 6);
}

/// SC15.5.10: whatever pool and pod ask for, every type on the list has it, and the cheapest is bought.
#[test]
fn every_listed_type_is_what_was_asked_for() {
    let choices = [
        ("arch", "kubernetes.io/arch", "arm64"),
        ("os", "kubernetes.io/os", "windows"),
        ("zone", "topology.kubernetes.io/zone", "test-zone-2"),
        ("capacity", "karpenter.sh/capacity-type", "spot"),
    ];
    for mask in 0..16u32 {
        let chosen = |bit: usize| mask & (1 << bit) != 0;
        let asked: Vec<_> = choices
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen(*bit))
            .map(|(_, choice)| *choice)
            .collect();
        let (pool, pod): (Vec<_>, Vec<_>) = asked.iter().enumerate().partition(|(index, _)| index % 2 == 0);
        let word = |prefix: &str, parts: &[(usize, &(&str, &str, &str))]| {
            parts
                .iter()
                .map(|(_, (key, _, value))| format!(" {prefix}={key}:In:{value}"))
                .collect::<String>()
        };
        let mut story = Story::new(&format!("catalog assorted\npool default{}", word("where", &pool)));
        let plan = story.plan(&format!("pod web cpu=900m memory=500Mi{}", word("select", &pod)));
        let launch = &plan.launches[0];
        let mut cheapest = f64::INFINITY;
        for name in launch.instance_types.iter() {
            let kind = story.snapshot.instance_type(&launch.pool, name).unwrap();
            for (_, key, value) in &asked {
                assert_eq!(
                    kind.requirements.get(key).single().unwrap().as_str(),
                    *value,
                    "{mask}: {name}"
                );
            }
            cheapest = cheapest.min(kind.offerings[0].price);
        }
        let admitted = story.snapshot.catalogs[&launch.pool].iter().filter(|kind| {
            asked
                .iter()
                .all(|(_, key, value)| kind.requirements.get(key).has(value))
        });
        let least = admitted
            .map(|kind| kind.offerings[0].price)
            .fold(f64::INFINITY, f64::min);
        assert!(
            (launch.choice.price - cheapest).abs() < 1e-12 && (cheapest - least).abs() < 1e-12,
            "{plan}"
        );
    }
}

/// SC15.5.11
#[test]
fn what_nobody_sells_is_not_launched() {
    let without = |gone: &dyn Fn(&str) -> bool, pool: &str, pod: &str| {
        let mut story = Story::new(&format!("catalog assorted\npool default {pool}"));
        let catalog = story.snapshot.catalogs["default"].clone();
        let kept = catalog
            .iter()
            .filter(|kind| !gone(kind.name.as_str()))
            .cloned()
            .collect();
        story.snapshot.catalogs.insert("default".into(), kept);
        story.plan(&format!("pod web cpu=100m {pod}"))
    };
    let arm = |name: &str| name.contains("arm64");
    let arm_in_two = |name: &str| name.contains("arm64") && name.contains("test-zone-2");
    for plan in [
        without(&arm, "", "select=arch:In:arm64"),
        without(&arm_in_two, "", "select=arch:In:arm64 select=zone:In:test-zone-2"),
        without(&arm_in_two, "where=arch:In:arm64", "select=zone:In:test-zone-2"),
    ] {
        assert_eq!((plan.launches.len(), plan.refusals.len()), (0, 1), "{plan}");
    }
}

/// SC15.5.12: where upstream takes one node for three pods, ours takes several only if they cost less.
#[test]
fn every_listed_type_holds_all_pods() {
    let mut story = Story::new("catalog assorted\npool default");
    let before = story.snapshot.catalogs["default"].clone();
    let mut number = 0;
    for cpu in ["100m", "1", "2", "2500m", "4", "8", "16"] {
        for memory in ["100M", "1G", "2.5G", "8G", "16G", "32G"] {
            number += 1;
            let plan = story.plan(&format!("pod w{number} cpu={cpu} memory={memory} count=3"));
            assert!(plan.refusals.is_empty(), "{plan}");
            let mut all = model::Resources::default();
            for launch in &plan.launches {
                all.add_assign(&launch.requests);
                for name in launch.instance_types.iter() {
                    let kind = story.snapshot.instance_type(&launch.pool, name).unwrap();
                    assert!(
                        launch.requests.fits(kind.allocatable()),
                        "{name} for {}",
                        launch.requests
                    );
                }
            }
            let holding = before.iter().filter(|kind| all.fits(kind.allocatable()));
            let one_node = holding
                .map(|kind| kind.offerings[0].price)
                .fold(f64::INFINITY, f64::min);
            assert!(plan.launch_price() < one_node + 1e-9, "{one_node}: {plan}");
            assert!(
                plan.launches.len() == 1 || plan.launch_price() < one_node - 1e-9,
                "{one_node}: {plan}"
            );
        }
    }
    assert_eq!(before, story.snapshot.catalogs["default"]);
}

/// SC15.5.15, SC15.5.16
#[test]
fn an_offering_may_have_more_than_its_type() {
    let types = |sold_out: &str| {
        format!(
            "type plain cpu=4 memory=8Gi price=0.1
             type special cpu=4 memory=8Gi price=0.5 zones=a sell=spot override=a/spot/example.com/device=2 {sold_out}
             pool default
             pod web cpu=1 has:example.com/device=1"
        )
    };
    let plan = plan_of(&types(""));
    assert_eq!(plan.launches[0].instance_types.len(), 1, "{plan}");
    assert_eq!(bought(&plan), ["special"]);
    let gone = plan_of(&types("soldout=a/spot"));
    assert_eq!(gone.refusals.len(), 1, "{gone}");
}

/// SC15.5.17
#[test]
fn requirements_of_a_pool_that_leave_nothing_refuse_every_pod() {
    for pool in [
        "types=unknown",
        "where=arch:In:unknown",
        "where=arch:In:amd64 where=arch:In:arm64",
        "zones=unknown",
    ] {
        let plan = plan_of(&format!(
            "catalog standard\npool default {pool}\npod web cpu=10m count=2"
        ));
        assert_eq!(plan.refusals.len(), 2, "{plan}");
        let text = plan.refusals.values().next().unwrap().to_string();
        assert_eq!(
            text, "pool default: nodepool requirements filtered out all available instance types",
            "{pool}"
        );
    }
}

/// SC15.11.6: pods that come in batches leave no more than one node half empty.
#[test]
fn batches_fill_what_earlier_ones_left() {
    let mut story = Story::new("type four cpu=4 memory=64Gi pods=4\npool default");
    for (batch, count) in [3, 1, 7, 2, 10, 5, 9, 1, 4, 6].into_iter().enumerate() {
        let plan = story.provision(&format!("pod b{batch} cpu=1 count={count}"));
        assert!(plan.refusals.is_empty(), "{plan}");
        let with_room = story
            .snapshot
            .nodes
            .values()
            .filter(|node| story.snapshot.pods_of(node).count() < 4);
        assert!(with_room.count() <= 1);
    }
}

/// SC15.3.14: selector, requirement and preference on one label.
#[test]
fn demands_and_wishes_on_one_label_are_intersected() {
    let plan = on(
        "standard",
        "pod web cpu=10m select=arch:In:arm64 term=zone:In:test-zone-1|test-zone-3 prefer=1*zone:In:test-zone-2|test-zone-3",
    );
    let launch = &plan.launches[0];
    assert_eq!(
        (launch.choice.zone.as_str(), bought(&plan)),
        ("test-zone-3", vec!["arm-instance-type"])
    );
    assert_eq!(
        launch.requirements.get(vocabulary::ZONE).single().unwrap().as_str(),
        "test-zone-3"
    );
}
