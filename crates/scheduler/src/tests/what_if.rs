//! What if machines were gone: the answers hold up on a fork, and asking changes nothing.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use model::{NodeKey, PodKey, Snapshot};
use proptest::prelude::*;

use super::{expect_clean, properties};
use crate::{Answer, Moves, Options, Placement, Search, Stage, WhatIf, situation};

fn stage(snapshot: &Snapshot, options: Options) -> Stage<'_> {
    let settled: BTreeSet<_> = snapshot
        .pods
        .values()
        .filter(|pod| pod.is_reschedulable())
        .filter(|pod| {
            let home = pod.node.as_ref().and_then(|node| snapshot.node_named(node));
            home.is_some_and(|home| !home.is_leaving())
        })
        .map(|pod| pod.key.clone())
        .collect();
    let mut round = crate::Round::new(settled.iter().cloned().collect(), situation::now());
    round.options = options;
    let moves = Moves {
        round,
        settled,
        order: Vec::new(),
    };
    Stage::new(snapshot, moves)
}

fn keys(snapshot: &Snapshot, names: &str) -> Vec<NodeKey> {
    let named = |name: &str| snapshot.node_named(&name.into()).expect("a node").key.clone();
    names.split(' ').map(named).collect()
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Plan(plan) if plan.placements.is_empty() && plan.launches.is_empty() => "nothing moves\n".to_owned(),
        Answer::Plan(plan) => plan.to_string(),
        Answer::Stranded { pod, .. } => format!("{} is stranded\n", pod.name),
        Answer::TooDear { price } => format!("too dear at {price:.2}\n"),
    }
}

#[track_caller]
fn check(situation: &str, questions: &[(&str, Search<'_>)], expected: &Expect) {
    let (snapshot, _) = situation::parse(situation);
    let stage = stage(&snapshot, Options::default());
    let mut cluster = WhatIf::new(&stage);
    let mut text = String::new();
    for (names, search) in questions {
        let answer = cluster.ask(&keys(&snapshot, names), *search);
        text += &format!("without {names}:\n{}", shown(&answer));
    }
    expected.assert_eq(&text);
}

const CLUSTER: &str = "
    type small cpu=2 memory=8Gi zones=a,b sell=on-demand price=0.2
    type large cpu=8 memory=32Gi zones=a,b sell=on-demand price=0.8
    pool general
    node n1 cpu=8 memory=32Gi pool=general type=large zone=a
    node n2 cpu=8 memory=32Gi pool=general type=large zone=b
    node n3 cpu=8 memory=32Gi pool=general type=large zone=b
    pod one cpu=1 on=n1
    pod big cpu=7 on=n2
    pod two cpu=1 on=n3";

#[test]
fn pods_go_where_there_is_room_and_the_rest_is_launched() {
    check(
        CLUSTER,
        &[
            ("n1", Search::Packed),
            ("n2", Search::Packed),
            ("n1 n3", Search::Packed),
            ("n1 n2 n3", Search::Packed),
            ("n1", Search::Packed),
        ],
        &expect![[r#"
            without n1:
            place n2  <- one
            without n2:
            place n1  <- big
            without n1 n3:
            launch general#1  small/a/on-demand  <- two
            place n2  <- one
            without n1 n2 n3:
            launch general#1  large/a/on-demand  <- big one
            launch general#2  small/a/on-demand  <- two
            without n1:
            place n2  <- one
        "#]],
    );
}

#[test]
fn a_search_ends_where_launches_cost_too_much() {
    check(
        CLUSTER,
        &[("n1 n3", Search::Below(0.1)), ("n1 n3", Search::Below(0.3))],
        &expect![[r#"
            without n1 n3:
            too dear at 0.20
            without n1 n3:
            launch general#1  small/a/on-demand  <- two
            place n2  <- one
        "#]],
    );
}

#[test]
fn rules_between_pods_count_without_those_that_leave() {
    check(
        "type large cpu=8 memory=32Gi zones=a,b sell=on-demand price=0.8
         pool general zones=a,b
         node n1 cpu=8 memory=32Gi pool=general type=large zone=a
         node n2 cpu=8 memory=32Gi pool=general type=large zone=b
         node n3 cpu=8 memory=32Gi pool=general type=large zone=b
         pod lone cpu=1 on=n1 apart=host label:app=lone
         pod other cpu=1 on=n2 apart=host label:app=lone
         pod web-1 cpu=1 on=n2 spread=zone:1:app=web label:app=web
         pod web-2 cpu=1 on=n1 spread=zone:1:app=web label:app=web",
        &[("n1", Search::Packed), ("n2", Search::Packed), ("n3", Search::Packed)],
        &expect![[r#"
            without n1:
            launch general#1  large/a/on-demand  <- web-2
            place n3  <- lone
            without n2:
            launch general#1  large/b/on-demand  <- web-1
            place n3  <- other
            without n3:
            nothing moves
        "#]],
    );
}

/// What the operator wants spread stays spread when machines go, as in a round of the solver.
#[test]
fn default_spreads_count_for_pods_that_move() {
    let (snapshot, _) = situation::parse(
        "type large cpu=8 memory=32Gi zones=a,b sell=on-demand price=0.8
         pool general zones=a,b
         owner ReplicaSet/web label:app=web
         node n1 cpu=8 memory=32Gi pool=general type=large zone=a
         node n2 cpu=8 memory=32Gi pool=general type=large zone=b
         pod web-1 cpu=1 on=n1 label:app=web owner=ReplicaSet/web
         pod web-2 cpu=1 on=n2 label:app=web owner=ReplicaSet/web",
    );
    let answered = |options| {
        let stage = stage(&snapshot, options);
        shown(&WhatIf::new(&stage).ask(&keys(&snapshot, "n1"), Search::Packed))
    };
    assert_eq!(answered(Options::default()), "place n2  <- web-1\n");
    let spread = Options {
        default_spreads: [super::default_spreads::spread(model::vocabulary::ZONE)].into(),
        ..Options::default()
    };
    assert_eq!(answered(spread), "launch general#1  large/a/on-demand  <- web-1\n");
}

#[test]
fn machines_are_filled_evenly_where_first_fit_would_run_out_of_one_resource() {
    let cluster = "
        type large cpu=8 memory=32Gi zones=a sell=on-demand price=0.8
        pool general
        node n1 cpu=4 memory=16Gi pool=general type=large zone=a
        node n2 cpu=4 memory=16Gi pool=general type=large zone=a
        node n3 cpu=8 memory=32Gi pool=general type=large zone=a
        pod busy-1 cpu=3 memory=2Gi on=n3
        pod busy-2 cpu=3 memory=2Gi on=n3
        pod roomy-1 cpu=1 memory=14Gi on=n3
        pod roomy-2 cpu=1 memory=14Gi on=n3";
    check(
        cluster,
        &[("n3", Search::Filled)],
        &expect![[r#"
            without n3:
            place n1  <- roomy-1 busy-1
            place n2  <- roomy-2 busy-2
        "#]],
    );
}

#[test]
fn an_earlier_answer_is_repeated_as_far_as_it_holds() {
    let (snapshot, _) = situation::parse(CLUSTER);
    let stage = stage(&snapshot, Options::default());
    let mut cluster = WhatIf::new(&stage);
    let at = |node: &str, pod: &str| Placement {
        node: keys(&snapshot, node).remove(0),
        pods: vec![PodKey::new("default", pod)],
    };
    // First fit would take the first node.
    let placements = [at("n3", "one"), at("n3", "big")];
    let answer = cluster.ask(&keys(&snapshot, "n1"), Search::Again(&placements));
    assert_eq!(shown(&answer), "place n3  <- one\n");
    // Beside the large pod there is no room for the other one.
    let answer = cluster.ask(&keys(&snapshot, "n1 n2"), Search::Again(&placements));
    assert_eq!(
        shown(&answer),
        "launch general#1  small/a/on-demand  <- one\nplace n3  <- big\n"
    );
}

#[test]
fn closed_machines_take_nothing_until_they_are_opened_again() {
    let (snapshot, _) = situation::parse(CLUSTER);
    let stage = stage(&snapshot, Options::default());
    let mut cluster = WhatIf::new(&stage);
    cluster.close(&keys(&snapshot, "n2"));
    let without = keys(&snapshot, "n1");
    assert_eq!(shown(&cluster.ask(&without, Search::Packed)), "place n3  <- one\n");
    cluster.reopen(&keys(&snapshot, "n2"));
    assert_eq!(shown(&cluster.ask(&without, Search::Packed)), "place n2  <- one\n");
}

#[test]
fn what_is_kept_is_where_later_questions_start() {
    let (snapshot, _) = situation::parse(CLUSTER);
    let stage = stage(&snapshot, Options::default());
    let mut cluster = WhatIf::new(&stage);
    let (answer, filled) = cluster.keep(&keys(&snapshot, "n1"), Search::Packed);
    assert_eq!(
        (shown(&answer).as_str(), filled),
        ("place n2  <- one\n", keys(&snapshot, "n2"))
    );
    let next = cluster.ask(&keys(&snapshot, "n3"), Search::Packed);
    assert_eq!(shown(&next), "launch general#1  small/a/on-demand  <- two\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever is asked in between, the answer to a question is the same, and its plan breaks no rule of the cluster
    /// without those machines.
    #[test]
    fn answers_hold_on_a_fork_and_asking_changes_nothing(text in properties::situations()) {
        let (snapshot, _) = situation::parse(&text);
        let stage = stage(&snapshot, Options { reserved_fallback: true, ..Options::default() });
        let mut cluster = WhatIf::new(&stage);
        let live: Vec<NodeKey> = snapshot
            .nodes
            .values()
            .filter(|node| !node.is_leaving())
            .map(|node| node.key.clone())
            .collect();
        let mut sets: Vec<Vec<NodeKey>> = live.iter().map(|key| vec![key.clone()]).collect();
        sets.push(live.iter().take(2).cloned().collect());
        for search in [Search::Packed, Search::Filled] {
            let first: Vec<Answer> = sets.iter().map(|set| cluster.ask(set, search)).collect();
            let again: Vec<Answer> = sets.iter().map(|set| cluster.ask(set, search)).collect();
            prop_assert_eq!(&first, &again);
            for (set, answer) in sets.iter().zip(&first) {
                if let Answer::Plan(plan) = answer {
                    expect_clean(&snapshot.without(set), plan);
                    if let Answer::Plan(repeated) = cluster.ask(set, Search::Again(&plan.placements)) {
                        expect_clean(&snapshot.without(set), &repeated);
                    }
                }
            }
        }
    }
}
