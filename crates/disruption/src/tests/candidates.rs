//! Which nodes may go at all.

use std::collections::BTreeSet;

use crate::{Class, Prices, candidates, situation};

/// Whether node `n` may go, gracefully and eventually.
#[track_caller]
fn check(rows: &str, situation: &str, expected: [bool; 2]) {
    let text = format!("type some cpu=1\npool general\n{situation}");
    let snapshot = situation::parse(&text);
    let prices = Prices::new(&snapshot);
    let found = [Class::Graceful, Class::Eventual].map(|class| {
        let (free, _) = candidates(&snapshot, &prices, class, &BTreeSet::new(), situation::now());
        free.iter().any(|candidate| candidate.key().to_string() == "n")
    });
    assert_eq!(found, expected, "{rows}: {situation}");
}

const YES: [bool; 2] = [true, true];
const NO: [bool; 2] = [false, false];
const EVENTUALLY: [bool; 2] = [false, true];

#[test]
fn pods_have_their_say() {
    let plain = "node n pool=general\n";
    let grace = "node n pool=general grace\n";
    for (rows, node, rest, expected) in [
        ("DI-C1", plain, "pod p on=n protected", NO),
        ("DI-C2", plain, "pod p on=n protected mirror", NO),
        ("DI-C3", plain, "pod p on=n protected daemon", NO),
        ("DI-C4 DI-C5", grace, "pod p on=n protected", EVENTUALLY),
        ("DI-C6 DI-C7", grace, "pod p on=n\npdb b covers=p allows=0", EVENTUALLY),
        ("DI-C8", plain, "pod p on=n\npdb b covers=p allows=0", NO),
        ("DI-C9", plain, "pod p on=n protected ending", YES),
        ("DI-C10 DI-C38", plain, "pod p on=n protected finished", YES),
        (
            "DI-C13",
            plain,
            "pod p on=n\npdb b covers=p allows=1\npdb c covers=p allows=1",
            NO,
        ),
        ("DI-C14", plain, "pod p on=n\npdb b covers=p allows=0 never", NO),
        ("DI-C15", plain, "pod p on=n daemon\npdb b covers=p allows=0 never", NO),
        ("DI-C16", plain, "pod p on=n mirror\npdb b covers=p allows=0 never", YES),
        (
            "DI-C17",
            plain,
            "pod p on=n finished\npdb b covers=p allows=0 never",
            YES,
        ),
        ("DI-C17", plain, "pod p on=n ending\npdb b covers=p allows=0 never", YES),
        ("DI-C18", plain, "pod p on=n\npdb b covers=p allows=0 in=other", YES),
        (
            "DI-C19",
            plain,
            "pod p on=n unready\npdb b covers=p allows=0 lenient",
            YES,
        ),
        ("DI-C20", plain, "pod p on=n unready\npdb b covers=p allows=0", NO),
        ("DI-C32", plain, "pod p on=n keep=2m started=0", NO),
        ("DI-C32", plain, "pod p on=n keep=2m started=180", YES),
        (
            "DI-C33",
            plain,
            "pod p on=n keep=1m started=120\npod q on=n keep=3m started=120",
            NO,
        ),
        (
            "DI-C33",
            plain,
            "pod p on=n keep=1m started=200\npod q on=n keep=3m started=200",
            YES,
        ),
        ("DI-C34", plain, "pod p on=n keep=2m", NO),
        ("DI-C35", plain, "pod p on=n keep=bad started=0", YES),
    ] {
        check(rows, &format!("{node}{rest}"), expected);
    }
}

#[test]
fn a_node_goes_only_from_the_middle_of_its_life() {
    for (rows, node, expected) in [
        ("DI-C11", "pool=general protected", NO),
        ("DI-C12", "pool=general unprotected", YES),
        ("DI-C21", "pool=general foreign", NO),
        ("DI-C22", "pool=general unjoined", NO),
        ("DI-C23", "pool=general nominated", NO),
        ("DI-C24", "pool=general leaving", NO),
        ("DI-C25", "pool=general marked", NO),
        ("DI-C26", "pool=general young", NO),
        ("DI-C27", "", NO),
        ("DI-C28", "pool=other", NO),
        ("DI-C29", "pool=general missing:zone missing:sell missing:type", YES),
        ("DI-C30", "pool=general type=unheard-of", YES),
    ] {
        check(rows, &format!("node n {node}"), expected);
    }
}

/// DI-C23: eligible after the window.
#[test]
fn a_nomination_passes() {
    let snapshot = situation::parse("pool general\nnode n pool=general nominated");
    let prices = Prices::new(&snapshot);
    let later = situation::now() + jiff::SignedDuration::from_secs(21);
    let (free, _) = candidates(&snapshot, &prices, Class::Graceful, &BTreeSet::new(), later);
    assert_eq!(free.len(), 1);
}

/// DI-C31.
#[test]
fn a_node_that_a_command_has_is_no_candidate() {
    let snapshot = situation::parse("pool general\nnode n pool=general");
    let prices = Prices::new(&snapshot);
    let taken = BTreeSet::from([model::NodeKey::Claim("n".into())]);
    let (free, staying) = candidates(&snapshot, &prices, Class::Graceful, &taken, situation::now());
    assert!(free.is_empty() && staying.is_empty());
}

/// DI-P1, DI-P2, DI-P3, DI-P4: what cannot be read counts as nothing by the time it comes here.
#[test]
fn a_pod_costs_one_more_or_less() {
    let cost = |facts: &str| {
        let snapshot = situation::parse(&format!("pod p {facts}"));
        snapshot.pods.values().next().expect("a pod").eviction_cost()
    };
    assert_eq!(cost(""), 1.0);
    assert!(cost("deletion-cost=100") > 1.0 && cost("deletion-cost=-100") < 1.0);
    assert!(cost("deletion-cost=101") > cost("deletion-cost=100"));
    assert!(cost("priority=100") > 1.0 && cost("priority=-100") < 1.0);
    assert_eq!(
        (cost("priority=2000000000"), cost("priority=-2000000000")),
        (10.0, -10.0)
    );
}

#[test]
fn every_rule_names_what_keeps_a_node() {
    let pass = super::pass_of(
        &crate::Settings::default(),
        "pool general
         node a pool=general nominated
         node b pool=general protected
         node c pool=general unjoined
         node d
         node e pool=other
         node f pool=general
         node g pool=general
         node h pool=general
         node i pool=general
         pod keep on=f daemon protected
         pod web on=g
         pod twice on=h
         pod short on=i keep=1m started=30
         pod longer on=i keep=2m started=30
         pdb one covers=twice allows=1
         pdb two covers=twice allows=1
         pdb web covers=web allows=0",
    );
    let shown = super::shown(&pass);
    expect_test::expect![[r#"
        a stays: pending pods are expected on the node until 2026-01-01T12:00:20Z
        b stays: annotation karpenter.sh/do-not-disrupt is set on the node
        c stays: its node has not joined the cluster
        d stays: label karpenter.sh/nodepool is missing
        e stays: NodePool other does not exist
        f stays: pod default/keep has annotation karpenter.sh/do-not-disrupt
        g stays: PodDisruptionBudget default/web allows no eviction of pod default/web now
        h stays: more than one PodDisruptionBudget covers pod default/twice, so that it cannot be evicted: default/one, default/two
        i stays: pod default/longer has annotation karpenter.sh/do-not-disrupt until 2026-01-01T12:01:30Z
    "#]]
    .assert_eq(&shown);
}
