use expect_test::expect;

use super::*;
use crate::{requirement::Operator, vocabulary::Vocabulary};

fn requirement(key: &str, text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let operator: Operator = words.next().unwrap().parse().unwrap();
    Requirement::new(key, operator, words.map(LabelValue::from)).unwrap()
}

/// Reads `zone In a b; team Exists`. The empty text restricts nothing.
fn requirements(text: &str) -> Requirements {
    let entries = text.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| entry.split_once(' ').map(|(key, rest)| requirement(key, rest)).unwrap())
        .collect()
}

fn explained(result: Result<(), Incompatible>) -> String {
    result.map_or_else(|reason| reason.to_string(), |()| "fine".to_owned())
}

const KINDS: [&str; 15] = [
    "",
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

fn table(key: &str, allow: AllowUndefined<'_>) -> String {
    let side = |kind: &str| {
        if kind.is_empty() {
            Requirements::new()
        } else {
            requirements(&format!("{key} {kind}"))
        }
    };
    let mut lines = String::new();
    for ours in KINDS {
        let cells = KINDS.iter().map(|demand| {
            if side(ours).is_compatible(&side(demand), allow) {
                "+"
            } else {
                "."
            }
        });
        lines += &format!(
            "{:<13}{}\n",
            if ours.is_empty() { "-" } else { ours },
            cells.collect::<String>()
        );
    }
    lines
}

/// SC15.2.12: rows are the node's side, columns the pod's, both in the order of `KINDS`.
#[test]
fn compatibility_with_labels_that_the_provider_will_set() {
    let vocabulary = Vocabulary::core();
    let actual = table("topology.kubernetes.io/zone", AllowUndefined::WellKnown(&vocabulary));
    expect![[r#"
        -            +++++++++++++++
        Exists       ++.++++++++++++
        DoesNotExist +.+...+...+....
        In A         ++.+.+....+....
        In B         ++..+++...+....
        In A B       ++.++++...+....
        NotIn A      +++.+++++++++++
        In 1         ++....++.+....+
        In 9         ++....+.++++...
        In 1 9       ++....++++++..+
        NotIn 1 2    +++++++.+++++++
        Gt 1         ++....+.+++++.+
        Gt 9         ++....+...+++..
        Lt 1         ++....+...+..++
        Lt 9         ++....++.+++.++
    "#]]
    .assert_eq(&actual);
}

/// SC15.2.13
#[test]
fn a_node_without_the_label_meets_only_demands_for_its_absence() {
    let strict = table("team", AllowUndefined::Nothing);
    assert_eq!(strict.lines().next().unwrap(), "-            +.+...+...+....");
}

/// SC15.2.14
#[test]
fn absence_satisfies_both_kinds_of_negation() {
    let check = |ours: &str, demand: &str, expected: bool| {
        let (ours, demand) = (
            requirements(&format!("team {ours}")),
            requirements(&format!("team {demand}")),
        );
        assert_eq!(
            ours.is_compatible(&demand, AllowUndefined::Nothing),
            expected,
            "{ours} against {demand}"
        );
        assert_eq!(ours.compatible(&demand, AllowUndefined::Nothing).is_ok(), expected);
    };
    check("DoesNotExist", "NotIn A", true);
    check("NotIn A", "DoesNotExist", true);
    check("Exists", "DoesNotExist", false);
    check("DoesNotExist", "Exists", false);
    check("Gt 1", "DoesNotExist", false);
    check("DoesNotExist", "Gt 1", false);
    check("NotIn A", "NotIn B", true);
    check("Gt 9", "Lt 1", false);
}

/// SC15.2.15
#[test]
fn a_mistyped_label_is_recognised() {
    let vocabulary = Vocabulary::core();
    for (key, meant) in [
        ("zone", "topology.kubernetes.io/zone"),
        ("region", "topology.kubernetes.io/region"),
        ("nodepool", "karpenter.sh/nodepool"),
        ("instance-type", "node.kubernetes.io/instance-type"),
        ("arch", "kubernetes.io/arch"),
        ("capacity-type", "karpenter.sh/capacity-type"),
        ("topology.kubernetesio/zone", "topology.kubernetes.io/zone"),
        ("node.io/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/regio", "topology.kubernetes.io/region"),
        ("node.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("karpenter/nodepool", "karpenter.sh/nodepool"),
    ] {
        let demand = requirements(&format!("{key} In x"));
        let reason = Requirements::new()
            .compatible(&demand, AllowUndefined::WellKnown(&vocabulary))
            .unwrap_err();
        assert_eq!(
            reason.to_string(),
            format!("label {key:?} is not defined, {key} In [x] is asked for (typo of {meant:?}?)"),
        );
    }
    let demand = requirements("deployment In x");
    let reason = Requirements::new().compatible(&demand, AllowUndefined::WellKnown(&vocabulary));
    assert_eq!(
        explained(reason),
        r#"label "deployment" is not defined, deployment In [x] is asked for"#
    );
}

#[test]
fn all_conflicts_are_told_with_both_sides() {
    let node = requirements("zone In a b; arch In amd64; team In blue");
    let demand = requirements("zone In c; arch NotIn amd64; team Exists; size DoesNotExist");
    assert_eq!(
        explained(node.compatible(&demand, AllowUndefined::Nothing)),
        "arch NotIn [amd64] is asked for, arch In [amd64] is there; zone In [c] is asked for, zone In [a b] is there",
    );
    let more = requirements("zone In c; one Exists; two Exists; three Exists; four Exists");
    assert_eq!(
        explained(node.intersects(&more)),
        "zone In [c] is asked for, zone In [a b] is there"
    );
    assert_eq!(
        explained(more.intersects(&node)),
        "zone In [a b] is asked for, zone In [c] is there"
    );
}

#[test]
fn labels_that_one_side_leaves_open_do_not_matter_to_an_intersection() {
    assert_eq!(
        explained(requirements("zone In a").intersects(&requirements("team In blue"))),
        "fine"
    );
}

#[test]
fn adding_narrows_and_reading_an_open_label_gives_any() {
    let mut all = requirements("zone In a b; zone In b c");
    assert_eq!(all.to_string(), "zone In [b]");
    assert!(all.get("team").has("whatever"));
    assert!(!all.get("zone").has("a"));
    assert_eq!(all.labels(), Labels::from([("zone".into(), "b".into())]));
    all.merge(&requirements("zone In a; team Exists"));
    assert_eq!(all.to_string(), "team Exists, zone DoesNotExist");
}

/// SC15.2.1
#[test]
fn old_labels_are_found_under_their_new_keys() {
    let labels = Labels::from([("beta.kubernetes.io/os".into(), "linux".into())]);
    let all = Requirements::from_labels(&labels);
    assert_eq!(all.to_string(), "kubernetes.io/os In [linux]");
    assert!(all.get("beta.kubernetes.io/os").has("linux"));
}

/// SC15.2.11
#[test]
fn a_set_is_shown_sorted_and_without_the_host_name() {
    let all = requirements("zone In b a; kubernetes.io/hostname In h; arch In amd64");
    assert_eq!(all.to_string(), "arch In [amd64], zone In [a b]");
}

#[test]
fn a_set_is_written_in_the_order_of_its_keys() {
    let written = requirements("zone In b a; cpu Gt 3; cpu Lt 9; team Exists").to_selector();
    let written: Vec<String> = written
        .iter()
        .map(|entry| {
            let values: Vec<&str> = entry.values.iter().map(LabelValue::as_str).collect();
            format!("{} {} {}", entry.key, entry.operator, values.join(","))
        })
        .collect();
    assert_eq!(written, ["cpu Gte 4", "cpu Lte 8", "team Exists ", "zone In a,b"]);
}
