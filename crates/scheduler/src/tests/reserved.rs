//! Reserved capacity: used while it lasts, promised no more often than it holds.

use model::CapacityType;

use super::{plan_of, planned, story::Story};
use crate::{MinValuesPolicy, Options, Plan, situation::RESERVATION};

/// The reservations that the launches of a plan may use.
fn held(plan: &Plan) -> Vec<String> {
    let ids = plan
        .launches
        .iter()
        .filter(|launch| launch.choice.capacity_type == CapacityType::Reserved);
    let ids = ids.flat_map(|launch| launch.requirements.get(RESERVATION).listed().into_iter().flatten());
    ids.map(ToString::to_string).collect()
}

fn unreserved(plan: &Plan) -> usize {
    plan.launches
        .iter()
        .filter(|launch| launch.choice.capacity_type != CapacityType::Reserved)
        .count()
}

/// SC15.20.1: nobody falls back while a reservation that would do is free, and none is promised twice.
#[test]
fn reservations_are_used_up_before_anything_else_is_bought() {
    let mut story = Story::new(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r-small/a/1
         type medium cpu=4 memory=8Gi price=0.2 reserve=r-medium/a/1
         type large cpu=8 memory=16Gi price=0.4
         pool general",
    );
    let mut plan = story.plan("pod web cpu=1800m port=80 count=3");
    let (mut reserved, mut bought) = (Vec::new(), 0);
    for _ in 0..4 {
        bought += unreserved(&plan);
        assert!(bought == 0 || reserved.len() == 2, "{reserved:?} and {plan}");
        story.carry_out(&plan);
        reserved.extend(story.use_up_reservations(&plan));
        plan = story.place(plan.refusals.keys().cloned().collect());
    }
    assert_eq!(bought, 1, "{reserved:?}");
}

/// SC15.20.2, SC15.20.3
#[test]
fn pools_share_a_reservation_of_one_name() {
    let situation = |left: &str, right: &str| {
        plan_of(&format!(
            "type small cpu=2 memory=4Gi price=0.1 reserve={left} only=left
             type small cpu=2 memory=4Gi price=0.1 reserve={right} only=right
             pool left
             pool right
             pod l cpu=2 select=pool:In:left
             pod r cpu=2 select=pool:In:right"
        ))
    };
    let shared = situation("r1/a/1", "r1/a/1");
    assert_eq!((held(&shared).len(), shared.refusals.len()), (1, 1), "{shared}");
    let own = situation("r1/a/1", "r2/a/1");
    assert_eq!(
        (held(&own), own.refusals.len()),
        (vec!["r2".to_owned(), "r1".to_owned()], 0),
        "{own}"
    );
}

/// SC15.20.4: places in all reservations are used, and no more.
#[test]
fn reservations_of_one_type_hold_what_they_hold() {
    let mut story = Story::new(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1 reserve=r2/a/2
         pool general",
    );
    let mut left = story.plan("pod web cpu=100m label:app=web apart=host:app=web count=4");
    let (mut reserved, mut bought) = (0, 0);
    for _ in 0..5 {
        let launched = left
            .launches
            .iter()
            .filter(|launch| launch.choice.capacity_type == CapacityType::Reserved);
        reserved += launched.count();
        bought += unreserved(&left);
        story.carry_out(&left);
        story.use_up_reservations(&left);
        left = story.place(left.refusals.keys().cloned().collect());
    }
    assert_eq!((reserved, bought), (3, 1));
}

/// SC15.20.5, SC15.20.6: waiting is better than a lighter pool or a lost preference.
#[test]
fn a_pod_waits_for_the_next_round_rather_than_take_what_is_second_best() {
    let mut story = Story::new(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1 only=heavy
         type small cpu=2 memory=4Gi price=0.1 reserve=r2/a/1 only=light
         pool heavy weight=100
         pool light",
    );
    let plan = story.provision("pod web cpu=2 count=2");
    assert_eq!((held(&plan), plan.refusals.len()), (vec!["r1".to_owned()], 1), "{plan}");
    story.use_up_reservations(&plan);
    let plan = story.place(plan.refusals.keys().cloned().collect());
    assert_eq!(
        (plan.launches[0].pool.as_str(), unreserved(&plan)),
        ("heavy", 1),
        "{plan}"
    );

    let mut story = Story::new(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1 only=liked
         type small cpu=2 memory=4Gi price=0.1 reserve=r2/a/1 only=other
         pool liked
         pool other weight=100",
    );
    let plan = story.provision("pod web cpu=2 count=2 prefer=1*pool:In:liked");
    assert_eq!((held(&plan), plan.refusals.len()), (vec!["r1".to_owned()], 1), "{plan}");
    story.use_up_reservations(&plan);
    let plan = story.place(plan.refusals.keys().cloned().collect());
    assert_eq!(
        (plan.launches[0].pool.as_str(), unreserved(&plan)),
        ("liked", 1),
        "{plan}"
    );
}

/// SC15.20.7
#[test]
fn a_group_shares_a_node_of_a_reservation() {
    let plan = plan_of(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1
         pool general
         pod web cpu=100m label:app=web near=zone:app=web term=capacity:In:reserved&zone:In:a count=2",
    );
    assert_eq!((plan.launches.len(), held(&plan)), (1, vec!["r1".to_owned()]), "{plan}");
}

/// A simulation does not wait: what finds no place in a reservation is bought, at the price of what is bought.
#[test]
fn a_simulation_falls_back_and_pays_for_it() {
    let mut story = Story::new("type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1\npool general");
    story.options = Options {
        reserved_fallback: true,
        ..Options::default()
    };
    let plan = story.plan("pod web cpu=2 count=2");
    assert_eq!(
        (held(&plan).len(), unreserved(&plan), plan.refusals.len()),
        (1, 1, 0),
        "{plan}"
    );
    assert!(plan.launch_price() > 0.03, "{plan}");
}

/// SC15.20.8: the gate, the smallest figure of several, and what one that holds nothing is worth.
#[test]
fn a_reservation_is_worth_what_its_smallest_offering_says() {
    let without = Options {
        reserved_capacity: false,
        ..Options::default()
    };
    let mut story = Story::new("type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/5\npool general");
    story.options = without;
    let plan = story.plan("pod web cpu=2 count=2");
    assert_eq!((held(&plan).len(), unreserved(&plan)), (0, 2), "{plan}");

    let plan = plan_of(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/5 only=left
         type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1 only=right
         pool left
         pool right
         pod web cpu=2 select=pool:In:left count=2",
    );
    assert_eq!((held(&plan).len(), plan.refusals.len()), (1, 1), "{plan}");
    let empty = plan_of(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/0
         pool general
         pod web cpu=2",
    );
    assert_eq!(held(&empty).len(), 0, "{empty}");
}

/// A place in a reservation leaves the cloud no choice but what is reserved. A pool that insists on a choice does without.
#[test]
fn a_reservation_without_the_variety_that_the_pool_demands_is_left_alone() {
    let situation = "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/2
         type medium cpu=4 memory=8Gi price=0.2
         pool general where=type:Exists::2
         pod web cpu=1 label:app=web spread=zone:1:app=web count=4";
    let strict = plan_of(situation);
    assert_eq!((held(&strict).len(), strict.refusals.len()), (0, 0), "{strict}");
    let lenient = planned(
        situation,
        Options {
            min_values_policy: MinValuesPolicy::BestEffort,
            ..Options::default()
        },
    );
    assert!(!held(&lenient).is_empty(), "{lenient}");
    let reserved = lenient
        .launches
        .iter()
        .filter(|launch| launch.choice.capacity_type == CapacityType::Reserved);
    for launch in reserved {
        let kinds = launch.requirements.requirement(model::vocabulary::INSTANCE_TYPE);
        let least = kinds.and_then(|kinds| kinds.min_values);
        assert_eq!((launch.min_values_relaxed, least), (true, Some(1)), "{lenient}");
    }
}

/// A machine in a reservation that would have to leave it for want of variety takes no further pod.
#[test]
fn a_place_in_a_reservation_is_kept_with_the_variety_that_it_has() {
    let plan = plan_of(
        "type small cpu=2 memory=4Gi price=0.1 reserve=r1/a/1
         type medium cpu=4 memory=8Gi price=0.2 reserve=r1/a/1
         pool general where=type:Exists::2
         pod web cpu=1500m count=2",
    );
    assert_eq!(held(&plan), ["r1"], "{plan}");
    let reserved = plan
        .launches
        .iter()
        .find(|launch| launch.choice.capacity_type == CapacityType::Reserved);
    assert_eq!(reserved.map(|launch| launch.instance_types.len()), Some(2), "{plan}");
}
