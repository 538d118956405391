//! Types and pools of a situation.

use jiff::SignedDuration;
use model::{
    CapacityType, InstanceType, Offering, Overhead, Pool, Quantity, Requirement, Requirements, Resources,
    budget::{Budget, DisruptionReason},
    pool::{ConsolidationPolicy, Disruption},
    samples, vocabulary,
};

use super::Line;

/// Spot costs this much of the on-demand price.
const SPOT: f64 = 0.4;

/// Tells reservations apart.
pub(super) const RESERVATION: &str = "example.com/reservation";

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

pub(super) fn duration(text: &str) -> SignedDuration {
    let (digits, unit) = text.split_at(text.len() - 1);
    let count: i64 = digits.parse().expect("a number");
    match unit {
        "s" => SignedDuration::from_secs(count),
        "m" => SignedDuration::from_mins(count),
        "h" => SignedDuration::from_hours(count),
        other => panic!("{other} is not a unit of time"),
    }
}

pub(super) fn instance_type(line: &Line<'_>) -> InstanceType {
    let price = line.get("price").map_or(1.0, number);
    let zones = if line.says("zones") {
        line.list("zones")
    } else {
        vec!["a"]
    };
    let sold = if line.says("sell") {
        line.list("sell")
    } else {
        vec!["on-demand"]
    };
    let sold_out = line.list("soldout");
    let mut offerings: Vec<Offering> = Vec::new();
    for zone in &zones {
        for kind in &sold {
            let kind: CapacityType = kind.parse().expect("a capacity type");
            let share = if kind == CapacityType::Spot { SPOT } else { 1.0 };
            offerings.push(Offering {
                available: !sold_out.contains(&kind.as_str()) && !sold_out.contains(zone),
                ..samples::offering(kind, zone, price * share)
            });
        }
    }
    for (word, price) in line.map("offer") {
        let (kind, zone) = word.split_once('/').expect("a kind and a zone");
        offerings.push(samples::offering(
            kind.parse().expect("a capacity type"),
            zone,
            number(price),
        ));
    }
    for (word, count) in line.map("reserve") {
        let (id, zone) = word.split_once('/').expect("a reservation and a zone");
        // What is paid for anyhow costs next to nothing.
        let mut offering = samples::offering(CapacityType::Reserved, zone, price / 1e7);
        offering.requirements.add(Requirement::one_of(RESERVATION, [id]));
        offering.reservation_capacity = Some(count.parse().expect("a number"));
        offerings.push(offering);
    }
    let mut requirements: Requirements =
        std::iter::once(Requirement::one_of(vocabulary::INSTANCE_TYPE, [line.name])).collect();
    requirements.extend(
        line.labels()
            .into_iter()
            .map(|(key, value)| Requirement::one_of(key.as_str(), [value])),
    );
    let mut capacity = line.resources();
    capacity.set("pods".into(), Quantity::from_int(110));
    InstanceType::new(line.name.into(), requirements, offerings, capacity, Overhead::default())
        .with_dynamic_resources(super::devices::of_type(line))
}

/// A type that nothing but its node has, with its price and no room for anything.
pub(super) fn own_type(line: &Line<'_>) -> InstanceType {
    let price = line.get("price").map_or(1.0, number);
    let offering = samples::offering(CapacityType::OnDemand, "a", price);
    let name = Requirement::one_of(vocabulary::INSTANCE_TYPE, [line.name]);
    InstanceType::new(
        line.name.into(),
        std::iter::once(name).collect(),
        vec![offering],
        Resources::default(),
        Overhead::default(),
    )
}

fn budget(text: &str) -> Budget {
    match text.split_once(':') {
        None => Budget::always(text.parse().expect("a share")),
        Some((reason, nodes)) => {
            let reason: DisruptionReason = reason.parse().expect("a reason");
            Budget {
                reasons: Some([reason].into()),
                ..Budget::always(nodes.parse().expect("a share"))
            }
        }
    }
}

pub(super) fn pool(line: &Line<'_>) -> Pool {
    let mut pool = samples::pool(line.name);
    pool.disruption = Disruption {
        policy: match line.get("policy") {
            Some("WhenEmpty") => ConsolidationPolicy::WhenEmpty,
            Some("Balanced") => ConsolidationPolicy::Balanced,
            _ => ConsolidationPolicy::WhenEmptyOrUnderutilized,
        },
        consolidate_after: match line.get("after") {
            Some("never") => None,
            after => Some(after.map_or(SignedDuration::ZERO, duration)),
        },
        budgets: if line.says("broken-budget") {
            Err("no such day".to_owned())
        } else {
            Ok(line.list("budgets").into_iter().map(budget).collect())
        },
    };
    pool.replicas = line.get("replicas").map(|count| count.parse().expect("a number"));
    pool.ready = !line.says("notready");
    pool.deleting = line.says("deleting").then(super::now);
    pool.weight = line.get("weight").map_or(0, |weight| weight.parse().expect("a weight"));
    pool.limits = line
        .map("limit")
        .map(|(name, amount)| (name.into(), amount.parse().expect("a quantity")))
        .collect();
    for (word, key) in [
        ("zones", vocabulary::ZONE),
        ("sell", vocabulary::CAPACITY_TYPE),
        ("types", vocabulary::INSTANCE_TYPE),
    ] {
        if line.says(word) {
            pool.template
                .requirements
                .add(Requirement::one_of(key, line.list(word)));
        }
    }
    for (key, value) in line.map("require") {
        pool.template.requirements.add(Requirement::one_of(key, [value]));
    }
    for (key, least) in line.map("min") {
        let key = if key == "type" { vocabulary::INSTANCE_TYPE } else { key };
        let least = least.parse().expect("a number");
        let varied = Requirement::new(key, model::Operator::Exists, []).expect("a requirement");
        pool.template.requirements.add(varied.with_min_values(Some(least)));
    }
    pool
}
