use proptest::prelude::*;

use super::*;

/// Reads `In A B`, `Gt 5`, `Exists`, …
fn requirement(text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let operator = words.next().unwrap().parse().unwrap();
    Requirement::new("key", operator, words.map(LabelValue::from)).unwrap()
}

#[track_caller]
fn check_intersection(a: &str, b: &str, expected: &str) {
    let (a, b) = (requirement(a), requirement(b));
    assert_eq!(a.intersect(&b).to_string(), expected, "{a} ∩ {b}");
    assert_eq!(b.intersect(&a).to_string(), expected, "{b} ∩ {a}");
}

const EVERY_KIND: [&str; 14] = [
    "Exists",
    "DoesNotExist",
    "In A",
    "In B",
    "In A B",
    "NotIn A",
    "In 1",
    "In 9",
    "In 1 9",
    "NotIn 1 2",
    "Gt 1",
    "Gt 9",
    "Lt 1",
    "Lt 9",
];

/// SC15.2.2
#[test]
fn intersections_of_every_kind() {
    for kind in EVERY_KIND {
        let text = requirement(kind).to_string();
        check_intersection("Exists", kind, &text);
        check_intersection("DoesNotExist", kind, "key DoesNotExist");
        check_intersection(kind, kind, &text);
    }
    check_intersection("In A", "In B", "key DoesNotExist");
    check_intersection("In A", "In A B", "key In [A]");
    check_intersection("NotIn A", "In A B", "key In [B]");
    check_intersection("NotIn A", "In A", "key DoesNotExist");
    check_intersection("NotIn A", "NotIn 1 2", "key NotIn [1 2 A]");
    check_intersection("NotIn 1 2", "Gt 1", "key NotIn [2] >=2");
    check_intersection("NotIn 1 2", "Gt 9", "key Exists >=10");
    check_intersection("NotIn 1 2", "Lt 1", "key Exists <=0");
    check_intersection("NotIn 1 2", "Lt 9", "key NotIn [1 2] <=8");
    check_intersection("NotIn A", "Gt 1", "key Exists >=2");
    check_intersection("Gt 1", "Lt 9", "key Exists >=2 <=8");
    check_intersection("Gt 9", "Lt 9", "key DoesNotExist");
    check_intersection("Gt 1", "Lt 1", "key DoesNotExist");
    check_intersection("Gt 1", "Gt 9", "key Exists >=10");
    check_intersection("Lt 1", "Lt 9", "key Exists <=0");
    check_intersection("In 1 9", "Gt 1", "key In [9]");
    check_intersection("In 1 9", "Lt 9", "key In [1]");
    check_intersection("In A", "Gt 1", "key DoesNotExist");
}

/// SC15.2.9
#[test]
fn inclusive_bounds_are_the_exclusive_ones_moved_by_one() {
    assert_eq!(requirement("Gte 2"), requirement("Gt 1"));
    assert_eq!(requirement("Lte 8"), requirement("Lt 9"));
    check_intersection("Gt 4", "Gte 5", "key Exists >=5");
    check_intersection("Gt 5", "Gte 5", "key Exists >=6");
    check_intersection("Gt 3", "Gte 6", "key Exists >=6");
    check_intersection("Lt 5", "Lte 5", "key Exists <=4");
    check_intersection("Lt 9", "Lte 5", "key Exists <=5");
    check_intersection("Gte 8", "Lte 8", "key Exists >=8 <=8");
    assert!(!requirement("Gte 0").has("-1"));
    assert!(!requirement("Lte 0").has("1"));
    let beyond = written("Gt", &[&i64::MAX.to_string()], Some(2));
    let beyond = Requirement::try_from(&beyond).unwrap();
    assert_eq!((beyond.to_string().as_str(), beyond.len()), ("key DoesNotExist", 0));
    assert_eq!(requirement(&format!("Lt {}", i64::MIN)).to_string(), "key DoesNotExist");
}

/// SC15.2.3
#[test]
fn the_larger_demand_for_variety_counts() {
    let with = |text: &str, least| Requirement {
        min_values: least,
        ..requirement(text)
    };
    assert_eq!(
        with("In A B", Some(1)).intersect(&requirement("In A")).to_string(),
        "key In [A] minValues 1"
    );
    assert_eq!(
        with("In A B", Some(1)).intersect(&with("In A B", Some(2))).min_values,
        Some(2)
    );
    assert_eq!(
        with("In A", Some(1)).intersect(&with("In B", Some(2))).to_string(),
        "key DoesNotExist minValues 2"
    );
    assert_eq!(
        with("Gt 9", Some(3)).intersect(&requirement("Lt 1")).min_values,
        Some(3)
    );
}

/// SC15.2.4
#[test]
fn membership() {
    for (kind, value, expected) in [
        ("Exists", "A", true),
        ("DoesNotExist", "A", false),
        ("In A B", "B", true),
        ("In A B", "C", false),
        ("NotIn 1 2", "1", false),
        ("NotIn 1 2", "9", true),
        ("Gt 1", "1", false),
        ("Gt 1", "2", true),
        ("Gt 1", "A", false),
        ("Lt 9", "1", true),
        ("Lt 9", "9", false),
        ("Lt 9", "", false),
    ] {
        assert_eq!(requirement(kind).has(value), expected, "{kind} has {value}");
    }
}

/// SC15.2.5, SC15.2.6
#[test]
fn operator_and_length() {
    for (kind, operator, len) in [
        ("Exists", Operator::Exists, i64::MAX),
        ("DoesNotExist", Operator::DoesNotExist, 0),
        ("In", Operator::DoesNotExist, 0),
        ("In A B", Operator::In, 2),
        ("NotIn 1 2", Operator::NotIn, i64::MAX - 2),
        ("NotIn", Operator::Exists, i64::MAX),
        ("Gt 1", Operator::Exists, i64::MAX),
        ("Lt 9", Operator::Exists, i64::MAX),
    ] {
        let requirement = requirement(kind);
        assert_eq!((requirement.operator(), requirement.len()), (operator, len), "{kind}");
    }
}

/// SC15.2.7
#[test]
fn any_value_is_the_smallest_and_always_the_same() {
    for (kind, expected) in [
        ("In B A", Some("A")),
        ("DoesNotExist", None),
        ("Exists", Some("0")),
        ("NotIn 0 1", Some("2")),
        ("Gt 9", Some("10")),
        ("Lt 1", Some("0")),
        ("Lt 9", Some("0")),
        ("Lt 0", Some("-1")),
    ] {
        assert_eq!(
            requirement(kind).any().as_ref().map(LabelValue::as_str),
            expected,
            "{kind}"
        );
    }
    let nothing_left = requirement("NotIn 2 3")
        .intersect(&requirement("Gt 1"))
        .intersect(&requirement("Lt 4"));
    assert_eq!(nothing_left.any(), None);
}

/// SC15.2.8
#[test]
fn long_lists_are_cut_in_messages() {
    assert_eq!(requirement("In B A").to_string(), "key In [A B]");
    assert_eq!(requirement("In a b c d e").to_string(), "key In [a b c d e]");
    assert_eq!(
        requirement("In g f e d c b a").to_string(),
        "key In [a b c d e and 2 others]"
    );
}

fn written(operator: &str, values: &[&str], min_values: Option<u32>) -> SelectorRequirement {
    SelectorRequirement {
        key: "key".into(),
        operator: operator.parse().unwrap(),
        values: values.iter().map(|value| LabelValue::from(*value)).collect(),
        min_values,
    }
}

/// SC15.2.10
#[test]
fn what_is_written_means_what_was_read() {
    for (operator, values, expected) in [
        ("In", &["A", "B"][..], vec![written("In", &["A", "B"], Some(1))]),
        ("NotIn", &["A"], vec![written("NotIn", &["A"], Some(1))]),
        ("Exists", &[], vec![written("Exists", &[], Some(1))]),
        ("DoesNotExist", &[], vec![written("DoesNotExist", &[], Some(1))]),
        ("Gt", &["1"], vec![written("Gte", &["2"], Some(1))]),
        ("Lt", &["9"], vec![written("Lte", &["8"], Some(1))]),
        ("Gte", &["1"], vec![written("Gte", &["1"], Some(1))]),
        ("Lte", &["9"], vec![written("Lte", &["9"], Some(1))]),
    ] {
        let read = Requirement::try_from(&written(operator, values, Some(1))).unwrap();
        assert_eq!(read.to_selector(), expected, "{operator}");
    }
    let narrow = requirement("Gte 8").intersect(&requirement("Lte 8"));
    assert_eq!(
        narrow.to_selector(),
        [written("Gte", &["8"], None), written("Lte", &["8"], None)]
    );
    let holed = requirement("Gte 1").intersect(&requirement("NotIn 3"));
    assert_eq!(
        holed.to_selector(),
        [written("Gte", &["1"], None), written("NotIn", &["3"], None)]
    );
}

/// SC15.2.1
#[test]
fn old_keys_become_new_ones() {
    let old = Requirement::new("beta.kubernetes.io/arch", Operator::In, [LabelValue::from("arm64")]).unwrap();
    assert_eq!(old, Requirement::one_of("kubernetes.io/arch", ["arm64"]));
    assert_eq!(
        Requirement::exists("failure-domain.beta.kubernetes.io/zone").key,
        "topology.kubernetes.io/zone"
    );
}

#[test]
fn a_bound_needs_one_whole_number() {
    let error = |operator, values: &[&str]| {
        Requirement::new("key", operator, values.iter().map(|value| LabelValue::from(*value)))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(Operator::Gt, &[]), "Gt on key needs exactly one value, not 0");
    assert_eq!(
        error(Operator::Lte, &["1", "2"]),
        "Lte on key needs exactly one value, not 2"
    );
    assert_eq!(
        error(Operator::Lt, &["many"]),
        r#"Lt on key needs a whole number, not "many""#
    );
}

#[test]
fn operators_are_read_as_they_are_written() {
    for operator in Operator::ALL {
        assert_eq!(operator.to_string().parse(), Ok(operator));
    }
    assert!("in".parse::<Operator>().is_err());
}

fn label_value() -> impl Strategy<Value = LabelValue> {
    prop_oneof![(-3i64..12).prop_map(|number| number.to_string()), "[ab]"].prop_map(LabelValue::from)
}

/// As requirements make them: exclusions outside the bounds do not occur.
fn values() -> impl Strategy<Value = Values> {
    let set = || prop::collection::btree_set(label_value(), 0..4);
    let bound = || prop::option::of(-3i64..12);
    let range = (bound(), bound()).prop_filter_map("crossed", |(min, max)| {
        IntRange { min, max: None }.intersect(IntRange { min: None, max })
    });
    prop_oneof![
        set().prop_map(Values::Only),
        (set(), range).prop_map(|(except, range)| Values::in_range(range).intersect(&Values::AllBut {
            except,
            range: IntRange::ALL
        })),
    ]
}

proptest! {
    #[test]
    fn an_intersection_admits_what_both_admit(a in values(), b in values(), v in label_value()) {
        prop_assert_eq!(a.intersect(&b).has(v.as_str()), a.has(v.as_str()) && b.has(v.as_str()));
    }

    #[test]
    fn intersecting_is_commutative_associative_and_idempotent(a in values(), b in values(), c in values()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(a.intersect(&a), a.clone());
        prop_assert_eq!(a.intersect(&Values::ANY), a.clone());
        prop_assert_eq!(a.intersect(&Values::NONE), Values::NONE);
    }

    #[test]
    fn writing_and_reading_changes_nothing(values in values(), min_values in prop::option::of(1u32..50)) {
        let requirement = Requirement { key: "key".into(), values, min_values };
        let read = requirement.to_selector().iter().map(|entry| Requirement::try_from(entry).unwrap()).reduce(|a, b| a.intersect(&b));
        prop_assert_eq!(read, Some(requirement));
    }

    #[test]
    fn overlap_is_a_non_empty_intersection(a in values(), b in values()) {
        prop_assert_eq!(a.overlaps(&b), !a.intersect(&b).is_empty());
    }

    #[test]
    fn any_value_is_admitted(a in values()) {
        if let Some(value) = a.any() {
            prop_assert!(a.has(value.as_str()), "{:?} does not have {}", a, value);
        }
        prop_assert!(a.any().is_some() || a.is_empty() || a.listed().is_none());
    }
}
