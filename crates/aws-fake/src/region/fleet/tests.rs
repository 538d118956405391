//! What fleets launch, as tables: a strategy and a market, and what comes of them.

use expect_test::{Expect, expect};

use super::*;
use crate::region::{Plan, market::Shortage, reserved::Reservation, templates::ReservationChoice};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn region() -> Region {
    let mut region = Region::new(Plan::new("us-west-2", "demo"), NOW);
    for (name, price) in [("m5.large", 3.0), ("c5.large", 2.0), ("r5.large", 1.0)] {
        region.market.set_on_demand(name, price);
        region.market.set_spot(name, "us-west-2a", price / 10.0);
        region.market.set_spot(name, "us-west-2b", price / 5.0);
    }
    region
}

fn image(region: &Region) -> String {
    let name = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";
    region.images.parameters[name].clone()
}

fn template(region: &mut Region, data: TemplateData) -> TemplateRef {
    let data = TemplateData {
        image: Some(image(region)),
        ..data
    };
    let name = "karpenter.k8s.aws/1";
    region
        .create_template(name, data, Tags::new(), NOW)
        .expect("a template");
    TemplateRef::Name(name.to_owned())
}

/// `m5.large/a` for each override, in this order, with their places as priorities.
fn overrides(region: &Region, words: &str) -> Vec<Override> {
    let over = |(place, word): (usize, &str)| {
        let (name, zone) = word.split_once('/').expect("type/zone");
        let subnet = region.network.subnets.iter().find(|subnet| subnet.zone.ends_with(zone));
        Override {
            instance_type: Some(name.to_owned()),
            subnet: subnet.map(|subnet| subnet.id.clone()),
            priority: Some(place.to_string()),
            ..Override::default()
        }
    };
    words.split_whitespace().enumerate().map(over).collect()
}

fn limit(region: &mut Region, pool: &str, left: u32) {
    let (name, zone) = pool.split_once('/').expect("type/zone");
    let shortage = Shortage {
        instance_type: name.to_owned(),
        zone: format!("us-west-2{zone}"),
        capacity: "*".to_owned(),
        left: 0,
        code: "InsufficientInstanceCapacity".to_owned(),
        message: None,
    };
    region.market.limit(shortage, Some(left));
}

fn shown(region: &Region, answer: &FleetAnswer) -> String {
    let zone = |choice: &Choice| region.zone_of(&choice.over).replace("us-west-2", "");
    let name = |choice: &Choice| choice.over.instance_type.clone().unwrap_or_default();
    let launched = answer.instances.iter().map(|group| {
        format!(
            "{} x {}/{}\n",
            group.ids.len(),
            name(&group.choice),
            zone(&group.choice)
        )
    });
    let errors = answer.errors.iter().map(|error| {
        format!(
            "{} {}/{}\n",
            error.refusal.code,
            name(&error.choice),
            zone(&error.choice)
        )
    });
    launched.chain(errors).collect()
}

fn target(capacity: Capacity, count: u32, strategy: Strategy) -> Target {
    Target {
        capacity,
        count,
        strategy,
    }
}

#[track_caller]
fn check(region: &mut Region, target: Target, words: &str, expected: &Expect) {
    let template = template(region, TemplateData::default());
    let answer = create(region, template, target, words);
    expected.assert_eq(&shown(region, &answer));
}

fn create(region: &mut Region, template: TemplateRef, target: Target, words: &str) -> FleetAnswer {
    let request = FleetRequest {
        groups: vec![FleetGroup {
            template,
            overrides: overrides(region, words),
        }],
        targets: vec![target],
        instance_tags: Tags::new(),
        client_token: None,
    };
    region.create_fleet(&request, NOW).expect("an answer")
}

#[test]
fn the_lowest_price_wins() {
    let on_demand = target(Capacity::OnDemand, 1, Strategy::LowestPrice);
    check(
        &mut region(),
        on_demand,
        "m5.large/a r5.large/a c5.large/b",
        &expect![[r#"
        1 x r5.large/a
    "#]],
    );
    let spot = target(Capacity::Spot, 1, Strategy::LowestPrice);
    check(
        &mut region(),
        spot,
        "r5.large/b r5.large/a c5.large/a",
        &expect![[r#"
        1 x r5.large/a
    "#]],
    );
}

#[test]
fn the_lowest_priority_wins_whatever_it_costs() {
    let on_demand = target(Capacity::OnDemand, 1, Strategy::Prioritized);
    check(
        &mut region(),
        on_demand,
        "m5.large/a r5.large/a",
        &expect![[r#"
        1 x m5.large/a
    "#]],
    );
}

#[test]
fn pools_that_are_too_shallow_come_last() {
    let mut tight = region();
    limit(&mut tight, "r5.large/a", 1);
    let two = target(Capacity::Spot, 2, Strategy::PriceCapacityOptimized);
    check(
        &mut tight,
        two,
        "m5.large/a r5.large/a c5.large/a",
        &expect![[r#"
        2 x c5.large/a
    "#]],
    );
    let mut tight = region();
    limit(&mut tight, "m5.large/a", 1);
    let two = target(Capacity::Spot, 2, Strategy::CapacityOptimizedPrioritized);
    check(
        &mut tight,
        two,
        "m5.large/a c5.large/a r5.large/a",
        &expect![[r#"
        2 x c5.large/a
    "#]],
    );
}

#[test]
fn a_short_pool_gives_what_it_has_and_the_next_the_rest() {
    let mut tight = region();
    limit(&mut tight, "r5.large/a", 2);
    limit(&mut tight, "c5.large/a", 0);
    let five = target(Capacity::OnDemand, 5, Strategy::LowestPrice);
    check(
        &mut tight,
        five,
        "m5.large/a r5.large/a c5.large/a",
        &expect![[r#"
        2 x r5.large/a
        3 x m5.large/a
        InsufficientInstanceCapacity r5.large/a
        InsufficientInstanceCapacity c5.large/a
    "#]],
    );
}

#[test]
fn what_cannot_be_had_at_all_is_told_for_every_override() {
    let mut tight = region();
    limit(&mut tight, "*/?", 0);
    let one = target(Capacity::Spot, 1, Strategy::PriceCapacityOptimized);
    check(
        &mut tight,
        one,
        "m5.large/a c5.large/b m99.large/a",
        &expect![[r#"
        InsufficientInstanceCapacity m5.large/a
        InsufficientInstanceCapacity c5.large/b
        InvalidParameterValue m99.large/a
    "#]],
    );
}

fn reservation(kind: &str, interruptible: bool) -> Reservation {
    Reservation {
        id: "cr-1".to_owned(),
        arn: String::new(),
        owner: String::new(),
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
        zone_id: "usw2-az1".to_owned(),
        match_criteria: "targeted".to_owned(),
        kind: kind.to_owned(),
        interruptible,
        total: 1,
        available: 1,
        started: NOW,
        ends: None,
        tags: Tags::new(),
    }
}

fn targeted() -> TemplateData {
    TemplateData {
        reservation: ReservationChoice {
            preference: Some("capacity-reservations-only".to_owned()),
            target: Some("cr-1".to_owned()),
        },
        ..TemplateData::default()
    }
}

#[test]
fn a_reservation_serves_its_own_kind_of_request_only() {
    let kinds = [("default", false), ("capacity-block", false), ("default", true)];
    let requests = [Capacity::OnDemand, Capacity::CapacityBlock, Capacity::Interruptible];
    for (place, capacity) in requests.into_iter().enumerate() {
        for (other, (kind, interruptible)) in kinds.into_iter().enumerate() {
            let mut region = region();
            region
                .reservations
                .insert("cr-1".to_owned(), reservation(kind, interruptible));
            let template = template(&mut region, targeted());
            let one = target(capacity, 1, Strategy::LowestPrice);
            let answer = create(&mut region, template, one, "m5.large/a");
            assert_eq!(
                !answer.instances.is_empty(),
                place == other,
                "{capacity:?} {kind} {interruptible}"
            );
        }
    }
    let block = target(Capacity::CapacityBlock, 1, Strategy::LowestPrice);
    check(
        &mut region(),
        block,
        "m5.large/a",
        &expect![[r#"
        InvalidFleetConfig m5.large/a
    "#]],
    );
}

#[test]
fn a_targeted_reservation_is_all_there_is() {
    let mut region = region();
    region
        .reservations
        .insert("cr-1".to_owned(), reservation("default", false));
    let template = template(&mut region, targeted());
    let two = target(Capacity::OnDemand, 2, Strategy::LowestPrice);
    let answer = create(&mut region, template.clone(), two, "m5.large/a m5.large/b");
    let expected = expect![[r#"
        1 x m5.large/a
        ReservationCapacityExceeded m5.large/a
        ReservationCapacityExceeded m5.large/b
    "#]];
    expected.assert_eq(&shown(&region, &answer));
    // It comes back when the instance is gone, and not before.
    let id = answer.instances[0].ids[0].clone();
    region.terminate(&id, "Client.UserInitiatedShutdown", "", NOW);
    region.advance(NOW);
    assert_eq!(region.reservations["cr-1"].available, 0);
    region.advance(NOW + region.timing.shutdown);
    assert_eq!(region.reservations["cr-1"].available, 1);
}

#[test]
fn every_change_of_state_is_told_once_and_in_order() {
    let mut region = region();
    let template = template(&mut region, TemplateData::default());
    let one = target(Capacity::Spot, 1, Strategy::LowestPrice);
    let id = create(&mut region, template, one, "m5.large/a").instances[0].ids[0].clone();
    region.warn(&id, crate::region::notices::Warning::SpotInterruption, NOW);
    // Long after everything has happened.
    region.advance(NOW + region.timing.reclaim);
    let end = NOW + region.timing.reclaim + region.timing.shutdown;
    region.advance(end);
    region.advance(end);
    let messages = region.queue.receive(10, region.timing.boot, end);
    let told = messages.iter().map(|message| {
        let event: serde_json::Value = serde_json::from_str(&message.body).expect("an event");
        let detail = event["detail"]["state"].as_str().unwrap_or("warning");
        format!("{}: {detail}\n", event["detail-type"].as_str().expect("a kind"))
    });
    expect![[r#"
        EC2 Spot Instance Interruption Warning: warning
        EC2 Instance State-change Notification: pending
        EC2 Instance State-change Notification: running
        EC2 Instance State-change Notification: shutting-down
        EC2 Instance State-change Notification: terminated
    "#]]
    .assert_eq(&told.collect::<String>());
}
