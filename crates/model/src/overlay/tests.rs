use expect_test::{Expect, expect};

use super::*;
use crate::{CapacityType, Overhead, requirement::SelectorRequirement, samples};

#[track_caller]
fn check_price(change: &str, base: f64, expected: f64) {
    let change: PriceChange = change.parse().expect(change);
    assert_eq!(change.applied_to(base), expected, "{change:?} on {base}");
}

#[test]
fn prices_are_set_raised_and_lowered_and_never_negative() {
    // SC15.24.1, LC-O14
    check_price("+10%", 10.0, 11.0);
    check_price("-10%", 10.0, 9.0);
    check_price("-25%", 1.5, 1.125);
    check_price("-100%", 10.0, 0.0);
    check_price("-200%", 10.0, 0.0);
    check_price("+5", 10.0, 15.0);
    check_price("-2.5", 10.0, 7.5);
    check_price("+.5", 10.0, 10.5);
    check_price("-15", 10.0, 0.0);
    check_price("+0.0001", 0.0001, 0.0002);
    check_price("80.0", 82781.0, 80.0);
}

#[test]
fn what_is_no_price_is_refused() {
    for text in ["", "10%", "ten", "1e3", "+inf", "-", "+-1", "--1", "1,5", "NaN", "+%"] {
        text.parse::<PriceChange>().expect_err(text);
    }
}

fn kind(name: &str) -> Arc<InstanceType> {
    let offerings = [
        ("a", CapacityType::Spot, 1.0),
        ("a", CapacityType::OnDemand, 2.0),
        ("b", CapacityType::OnDemand, 2.0),
    ];
    let offerings = offerings.into_iter().map(|(zone, capacity_type, price)| Offering {
        capacity_type,
        zone: zone.into(),
        price,
        available: true,
        requirements: Requirements::from_iter([
            Requirement::one_of(vocabulary::ZONE, [zone]),
            Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]),
        ]),
        reservation_capacity: None,
        capacity_override: None,
        overhead_override: None,
    });
    let requirements = Requirements::from_iter([
        Requirement::one_of(vocabulary::INSTANCE_TYPE, [name]),
        Requirement::one_of(vocabulary::ZONE, ["a", "b"]),
        Requirement::one_of(vocabulary::CAPACITY_TYPE, ["spot", "on-demand"]),
    ]);
    let capacity = Resources::new().with(ResourceName::CPU, crate::Quantity::from_int(2));
    Arc::new(InstanceType::new(
        name.into(),
        requirements,
        offerings.collect(),
        capacity,
        Overhead::default(),
    ))
}

/// `name weight=1 price=+10% fuse=2 key=value,value`.
fn overlay(line: &str) -> Overlay {
    let mut words = line.split_whitespace();
    let mut overlay = Overlay {
        name: words.next().unwrap().into(),
        weight: 0,
        requirements: Requirements::new(),
        price: None,
        capacity: Resources::new(),
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "weight" => overlay.weight = value.parse().unwrap(),
            "price" => overlay.price = Some(value.parse().unwrap()),
            "fuse" | "gpu" => overlay.capacity.set(key.into(), value.parse().unwrap()),
            _ => {
                let key = match key {
                    "zone" => vocabulary::ZONE,
                    "capacity" => vocabulary::CAPACITY_TYPE,
                    "type" => vocabulary::INSTANCE_TYPE,
                    "pool" => vocabulary::NODEPOOL,
                    other => other,
                };
                let written = SelectorRequirement {
                    key: key.into(),
                    operator: crate::Operator::In,
                    values: value.split(',').map(Into::into).collect(),
                    min_values: None,
                };
                overlay.requirements.add(Requirement::try_from(&written).unwrap());
            }
        }
    }
    overlay
}

/// Two pools with the types `large` and `small`; pool `blue` has the label `team=blue`.
fn overlaid(lines: &str) -> (OrdMap<PoolName, Catalog>, Overlaid) {
    let catalog: Catalog = [kind("large"), kind("small")].into();
    let mut pools = OrdMap::new();
    let mut catalogs = OrdMap::new();
    for name in ["blue", "red"] {
        let mut pool = samples::pool(name);
        if name == "blue" {
            pool.template.labels.insert("team".into(), "blue".into());
        }
        pools.insert(PoolName::from(name), Arc::new(pool));
        catalogs.insert(PoolName::from(name), catalog.clone());
    }
    let overlays: Vec<Overlay> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(overlay)
        .collect();
    let overlaid = apply(&catalogs, &pools, &overlays, &Vocabulary::core());
    (catalogs, overlaid)
}

/// A line per instance type that has changed.
#[track_caller]
fn check(lines: &str, expected: Expect) {
    let (_, overlaid) = overlaid(lines);
    let mut text = String::new();
    for (pool, catalog) in &overlaid.catalogs {
        for kind in catalog.iter().filter(|kind| kind.overlays.any()) {
            let prices: Vec<String> = kind
                .offerings
                .iter()
                .map(|offering| offering.price.to_string())
                .collect();
            text += &format!("{pool} {}: {} | {}", kind.name, prices.join(" "), kind.capacity);
            text += match (kind.overlays.price, kind.overlays.capacity) {
                (true, true) => " (price, capacity)\n",
                (true, false) => " (price)\n",
                _ => " (capacity)\n",
            };
        }
    }
    for name in &overlaid.conflicts {
        text += &format!("conflict: {name}\n");
    }
    expected.assert_eq(&text);
}

#[test]
fn an_overlay_changes_what_it_means_and_nothing_else() {
    // SC15.24.2, SC15.24.3, LC-O1, LC-O6, LC-O7, LC-O10
    check(
        "one type=small zone=a capacity=on-demand price=+50%",
        expect![[r#"
        blue small: 1 3 2 | cpu=2 (price)
        red small: 1 3 2 | cpu=2 (price)
    "#]],
    );
    check(
        "one pool=red type=small price=9",
        expect![[r#"
        red small: 9 9 9 | cpu=2 (price)
    "#]],
    );
    check(
        "one team=blue type=small fuse=1",
        expect![[r#"
        blue small: 1 2 2 | cpu=2 fuse=1 (capacity)
    "#]],
    );
    check("one team=green price=9", expect![""]);
    check("one zone=c price=9", expect![""]);
    check("one type=small", expect![""]);
}

#[test]
fn one_offering_that_is_meant_changes_the_capacity_of_the_whole_type() {
    check(
        "one pool=red type=small zone=b fuse=1 price=9",
        expect![[r#"
        red small: 1 2 9 | cpu=2 fuse=1 (price, capacity)
    "#]],
    );
}

/// LC-O4, LC-O8.
#[test]
fn the_heavier_overlay_wins_and_the_lighter_fills_the_rest() {
    check(
        "light weight=1 pool=red type=small price=5 fuse=1 gpu=1
         heavy weight=2 pool=red type=small zone=a price=+1 fuse=2",
        expect![[r#"
            red small: 2 3 5 | cpu=2 fuse=2 gpu=1 (price, capacity)
        "#]],
    );
}

/// LC-O3, LC-O5, LC-O9.
#[test]
fn of_two_with_one_weight_that_contradict_each_other_the_lower_name_is_applied_nowhere() {
    check(
        "a pool=red zone=a price=5
         b type=small price=+1",
        expect![[r#"
            blue small: 2 3 3 | cpu=2 (price)
            red small: 2 3 3 | cpu=2 (price)
            conflict: a
        "#]],
    );
    check(
        "a pool=red type=small fuse=1
         b pool=red type=small fuse=1",
        expect![[r#"
            red small: 1 2 2 | cpu=2 fuse=1 (capacity)
            conflict: a
        "#]],
    );
}

#[test]
fn a_contradiction_counts_below_a_heavier_overlay_too() {
    check(
        "a pool=red type=small price=5
         b pool=red type=small price=6
         heavy weight=1 pool=red type=small price=7",
        expect![[r#"
            red small: 7 7 7 | cpu=2 (price)
            conflict: a
        "#]],
    );
}

/// LC-O4, LC-O5.
#[test]
fn what_does_not_overlap_does_not_contradict() {
    check(
        "a pool=red type=small capacity=spot price=5
         b pool=red type=small capacity=on-demand price=6
         c pool=red type=small fuse=1
         d pool=red type=small gpu=1",
        expect![[r#"
            red small: 5 6 6 | cpu=2 fuse=1 gpu=1 (price, capacity)
        "#]],
    );
}

/// LC-O15.
#[test]
fn untouched_types_and_catalogs_are_shared() {
    let (before, after) = overlaid("one pool=red type=small price=5");
    let (blue, red) = (PoolName::from("blue"), PoolName::from("red"));
    assert!(Arc::ptr_eq(&before[&blue], &after.catalogs[&blue]));
    assert!(Arc::ptr_eq(&before[&red][0], &after.catalogs[&red][0]));
    assert!(!Arc::ptr_eq(&before[&red][1], &after.catalogs[&red][1]));
}
