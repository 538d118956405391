//! Input that makes no sense leads to a refusal or is left aside, never to a panic and never to a hang.

use std::{fmt::Write, sync::Arc};

use model::{InstanceType, Overhead, PodKey, Quantity, Resources};

use super::{plan_of, story::Story};
use crate::{Round, audit, situation, solve};

#[test]
fn types_without_capacity_hold_nobody() {
    let plan = plan_of(
        "type nothing cpu=0 memory=0 pods=0
         type no-pods cpu=8 memory=8Gi pods=0
         pool general
         pod web cpu=1
         pod free cpu=0",
    );
    assert_eq!((plan.launches.len(), plan.refusals.len()), (0, 2), "{plan}");
}

#[test]
fn an_empty_catalogue_refuses_everybody() {
    let mut story = Story::new("catalog standard\npool general");
    story.snapshot.catalogs.insert("general".into(), Arc::new([]));
    assert_eq!(
        story
            .plan("pod web cpu=1 spread=zone near=host apart=zone")
            .refusals
            .len(),
        1
    );
    story.snapshot.catalogs.clear();
    assert_eq!(story.plan("pod more cpu=1").refusals.len(), 1);
}

#[test]
fn quantities_beyond_reason_are_refused() {
    for amount in ["9e30", "1e40", "9223372036854775807", "1E", "1n"] {
        let plan = plan_of(&format!(
            "type small cpu=2 memory=4Gi
             pool general
             node n1 cpu=4 memory=4Gi
             pod web cpu={amount} count=3
             pod fine cpu=100m"
        ));
        assert!(plan.placed().any(|pod| &*pod.name == "fine"), "{amount}: {plan}");
    }
}

/// Negative amounts reach nobody through the API server; should one come all the same, nothing is overbooked by it.
#[test]
fn negative_quantities_make_no_room() {
    let (mut snapshot, round) = situation::parse(
        "type small cpu=2 memory=4Gi
         pool general
         node n1 cpu=2 memory=4Gi
         pod negative cpu=1
         pod web cpu=2 count=2",
    );
    let key = PodKey::new("default", "negative");
    let mut pod = (*snapshot.pods[&key]).clone();
    Arc::make_mut(&mut pod.shape)
        .requests
        .set("cpu".into(), Quantity::from_int(-8));
    snapshot.put_pod(Arc::new(pod));
    let plan = solve(&snapshot, &round);
    let mut named: Vec<_> = plan.placed().chain(plan.refusals.keys()).cloned().collect();
    named.sort();
    named.dedup();
    assert_eq!(named.len(), 3, "{plan}");
}

#[test]
fn negative_capacity_holds_nobody() {
    let mut story = Story::new("catalog standard\npool general");
    let kinds = story.snapshot.catalogs["general"].iter().map(|kind| {
        let capacity: Resources = kind
            .capacity
            .iter()
            .map(|(name, _)| (name.clone(), Quantity::from_int(-4)))
            .collect();
        let (requirements, offerings) = (kind.requirements.clone(), kind.offerings.clone());
        Arc::new(InstanceType::new(
            kind.name.clone(),
            requirements,
            offerings,
            capacity,
            Overhead::default(),
        ))
    });
    let kinds = kinds.collect();
    story.snapshot.catalogs.insert("general".into(), kinds);
    let plan = story.plan("pod web cpu=1\npod free cpu=0");
    assert_eq!(plan.launches.len(), 0, "{plan}");
}

#[test]
fn prices_that_are_no_prices_do_not_decide_everything() {
    let mut story = Story::new("catalog standard\npool general");
    let kinds = story.snapshot.catalogs["general"]
        .iter()
        .enumerate()
        .map(|(index, kind)| {
            let mut kind = (**kind).clone();
            let price = [f64::NAN, f64::INFINITY, -1.0, 0.0][index % 4];
            kind.offerings.iter_mut().for_each(|offering| offering.price = price);
            Arc::new(kind)
        });
    let kinds = kinds.collect();
    story.snapshot.catalogs.insert("general".into(), kinds);
    let plan = story.plan("pod web cpu=1 count=9");
    assert!(plan.refusals.is_empty(), "{plan}");
}

#[test]
fn contradictory_selectors_are_refused() {
    let plan = plan_of(
        "catalog standard
         pool default
         node plain cpu=8 memory=8Gi
         pod selector cpu=1 select=zone:In:test-zone-1 select=zone:In:test-zone-2
         pod term cpu=1 select=zone:In:test-zone-1 term=zone:In:test-zone-2
         pod never cpu=1 term=team:Exists&team:DoesNotExist
         pod range cpu=1 term=rank:Gt:5&rank:Lt:3
         pod one-of cpu=1 select=zone:In:test-zone-1 term=zone:In:test-zone-2 term=zone:In:test-zone-1
         pod wish cpu=1 select=zone:In:test-zone-1 prefer=1*zone:In:test-zone-2 term=zone:Exists",
    );
    let placed: Vec<&str> = plan.placed().map(|pod| &*pod.name).collect();
    assert_eq!(placed.len(), 2, "{plan}");
    assert!(placed.contains(&"one-of") && placed.contains(&"wish"), "{plan}");
    assert!(plan.placements.is_empty(), "{plan}");
}

/// Everybody follows somebody, around and around.
#[test]
fn circles_of_affinity_come_to_an_end() {
    let mut pods = String::new();
    for number in 0..60 {
        let next = (number + 1) % 60;
        writeln!(
            pods,
            "pod p{number} cpu=10m label:app=a{number} near=zone:app=a{next} near=host:app=a{next}"
        )
        .unwrap();
    }
    let plan = plan_of(&format!("catalog fake-5\npool default\n{pods}"));
    assert_eq!(plan.refusals.len(), 60, "{plan}");
}

#[test]
fn affinity_and_anti_affinity_to_the_same_pods_are_refused() {
    let plan = plan_of(
        "catalog fake-5
         pool default
         pod torn cpu=10m label:app=x near=host:app=x apart=host:app=x count=2
         pod db cpu=100m label:app=db
         pod both cpu=10m near=zone:app=db apart=zone:app=db",
    );
    assert_eq!(plan.refusals.len(), 2, "{plan}");
}

/// Thousands of different labels, one for each pod, with a rule for each.
#[test]
fn thousands_of_different_labels_are_told_apart() {
    let mut pods = String::new();
    for number in 0..2000 {
        writeln!(
            pods,
            "pod p{number} cpu=10m label:app=a{number} label:team{number}=x spread=zone:app=a{number} apart=host:app=a{number}"
        )
        .unwrap();
    }
    let (snapshot, round) = situation::parse(&format!("catalog fake-40\npool default\n{pods}"));
    let plan = solve(&snapshot, &round);
    assert_eq!((audit(&snapshot, &plan), plan.refusals.len()), (Ok(()), 0));
}

#[test]
fn a_round_may_name_pods_twice_or_pods_that_are_gone() {
    let (snapshot, round) = situation::parse("catalog standard\npool default\npod web cpu=1");
    let mut pods = round.pods.clone();
    pods.extend(round.pods.clone());
    pods.push(PodKey::new("default", "ghost"));
    let plan = solve(&snapshot, &Round { pods, ..round });
    assert_eq!((plan.placed().count(), plan.refusals.len()), (1, 1), "{plan}");
}

#[test]
fn a_skew_of_zero_and_other_nonsense_refuses_and_goes_on() {
    let plan = plan_of(
        "catalog fake-5
         pool default
         pod zero cpu=10m label:app=x spread=zone:0:app=x
         pod many cpu=10m label:app=y spread=zone:app=y:min4000000000 count=4
         pod huge cpu=10m label:app=z spread=zone:4000000000:app=z count=4",
    );
    assert_eq!(plan.refusals.len(), 2, "{plan}");
}
