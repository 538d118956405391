//! Which types a fleet is offered.
//!
//! A fleet takes what is cheapest, or what is least likely to be interrupted, out of what it is offered. So nothing may be
//! among it that the claim would not want at that price.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::aws;
use model::{CapacityType, InstanceType, LabelValue, Offering, Requirements, Resources, vocabulary};

use super::{cheapest, label};
use crate::instance_type::ACCELERATORS;

/// More make a request too long for EC2.
const MOST_TYPES: usize = 60;

/// Turns enclaves on; no instance type advertises it.
pub const NITRO_SANDBOX_REQUEST: &str = "eks.amazonaws.com/nitro-sandbox";

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    pub requirements: &'a Requirements,
    pub requests: &'a Resources,
    /// Whether the planned variety of types must be kept.
    pub strict_min_values: bool,
}

/// At which step nothing was left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NothingLeft {
    #[error("no instance type is compatible, large enough and available")]
    Unavailable,
    #[error("the 60 cheapest types have {found} values of {key}, and {needed} are asked for")]
    TooLittleVariety { key: String, needed: u32, found: u32 },
}

/// The types to offer, cheapest first, each with the offerings that count.
pub fn candidates(types: Vec<InstanceType>, demand: Demand<'_>) -> Result<Vec<InstanceType>, NothingLeft> {
    let mut types = fitting(types, demand);
    if admits_reserved(demand) {
        types = one_reservation_kind(types, demand);
        types = one_capacity_block(types, demand);
        types = roomiest_reservations(types, demand);
    }
    if !demand.requirements.has_min_values() {
        types = without_exotic(types);
        types = without_dear_spot(types, demand);
    }
    if types.is_empty() {
        return Err(NothingLeft::Unavailable);
    }
    types.sort_by(|a, b| {
        let price = |shape| cheapest(shape, demand.requirements).unwrap_or(f64::INFINITY);
        price(a).total_cmp(&price(b)).then_with(|| a.name.cmp(&b.name))
    });
    types.truncate(MOST_TYPES);
    if demand.strict_min_values {
        has_variety(&types, demand.requirements)?;
    }
    Ok(types)
}

fn admits_reserved(demand: Demand<'_>) -> bool {
    demand
        .requirements
        .get(vocabulary::CAPACITY_TYPE)
        .has(CapacityType::Reserved.as_str())
}

fn fitting(types: Vec<InstanceType>, demand: Demand<'_>) -> Vec<InstanceType> {
    let mut requests = demand.requests.clone();
    requests.remove(NITRO_SANDBOX_REQUEST);
    let fits = |shape: &InstanceType| {
        shape.requirements.overlaps(demand.requirements)
            && shape
                .offerings_within(demand.requirements)
                .any(|offering| requests.fits(&shape.allocatable_under(offering)))
    };
    types.into_iter().filter(fits).collect()
}

/// The kinds of reservation, in the order in which equal prices are decided.
const KINDS: [(&str, &str); 3] = [("default", "false"), ("capacity-block", "false"), ("default", "true")];

fn kind(offering: &Offering) -> (&str, &str) {
    (
        label(offering, aws::CAPACITY_RESERVATION_TYPE).unwrap_or("default"),
        label(offering, aws::CAPACITY_RESERVATION_INTERRUPTIBLE).unwrap_or("false"),
    )
}

fn is_reserved(offering: &Offering) -> bool {
    offering.capacity_type == CapacityType::Reserved
}

fn reserved<'a>(shape: &'a InstanceType, demand: Demand<'a>) -> impl Iterator<Item = &'a Offering> {
    shape
        .offerings_within(demand.requirements)
        .filter(|offering| is_reserved(offering))
}

/// One fleet buys one kind of reservation: the kind with the cheapest offering.
fn one_reservation_kind(mut types: Vec<InstanceType>, demand: Demand<'_>) -> Vec<InstanceType> {
    let price_of = |wanted: (&str, &str)| {
        let offerings = types.iter().flat_map(|shape| reserved(shape, demand));
        offerings
            .filter(|offering| kind(offering) == wanted)
            .map(|offering| offering.price)
            .reduce(f64::min)
    };
    let best = KINDS
        .into_iter()
        .filter_map(|wanted| Some((wanted, price_of(wanted)?)))
        .reduce(|best, next| if next.1 < best.1 { next } else { best });
    let Some((best, _)) = best else { return types };
    types.retain(|shape| reserved(shape, demand).any(|offering| kind(offering) == best));
    for shape in &mut types {
        shape
            .offerings
            .retain(|offering| !is_reserved(offering) || kind(offering) == best);
    }
    types
}

/// A fleet of capacity blocks takes a single type and a single block.
fn one_capacity_block(types: Vec<InstanceType>, demand: Demand<'_>) -> Vec<InstanceType> {
    let is_block = |offering: &&Offering| kind(offering) == KINDS[1];
    let blocks = types.iter().enumerate().flat_map(|(index, shape)| {
        reserved(shape, demand)
            .filter(is_block)
            .map(move |offering| (index, offering.clone()))
    });
    let best = blocks.reduce(|best, next| if next.1.price < best.1.price { next } else { best });
    let Some((index, block)) = best else { return types };
    let mut shape = types[index].clone();
    shape.offerings = vec![block];
    vec![shape]
}

/// Per zone the reservation with the most room: the others would only lengthen the request.
fn roomiest_reservations(types: Vec<InstanceType>, demand: Demand<'_>) -> Vec<InstanceType> {
    let trimmed = |shape: &InstanceType| {
        let mut best: BTreeMap<&str, &Offering> = BTreeMap::new();
        for offering in reserved(shape, demand) {
            let room = |offering: &Offering| offering.reservation_capacity.unwrap_or(0);
            let present = best.entry(offering.zone.as_str()).or_insert(offering);
            if room(offering) > room(present) {
                *present = offering;
            }
        }
        let offerings: Vec<Offering> = best.into_values().cloned().collect();
        (!offerings.is_empty()).then(|| {
            let mut shape = shape.clone();
            shape.offerings = offerings;
            shape
        })
    };
    let reserved: Vec<InstanceType> = types.iter().filter_map(trimmed).collect();
    if reserved.is_empty() { types } else { reserved }
}

/// Bare metal and accelerators are only for those who have no other choice.
fn without_exotic(types: Vec<InstanceType>) -> Vec<InstanceType> {
    let is_exotic = |shape: &InstanceType| {
        let size = shape.requirements.get(aws::INSTANCE_SIZE).single();
        size.is_some_and(|size| size.as_str().contains("metal"))
            || ACCELERATORS.iter().any(|name| !shape.capacity.get(name).is_zero())
    };
    let (exotic, plain): (Vec<_>, Vec<_>) = types.into_iter().partition(is_exotic);
    if plain.is_empty() { exotic } else { plain }
}

/// Spot capacity that costs more than the cheapest on-demand capacity is not worth its risk.
fn without_dear_spot(mut types: Vec<InstanceType>, demand: Demand<'_>) -> Vec<InstanceType> {
    let cheapest_of = |wanted: CapacityType| {
        let offerings = types
            .iter()
            .flat_map(|shape| shape.offerings_within(demand.requirements));
        offerings
            .filter(|offering| offering.capacity_type == wanted)
            .map(|offering| offering.price)
            .reduce(f64::min)
    };
    let (Some(on_demand), Some(_)) = (cheapest_of(CapacityType::OnDemand), cheapest_of(CapacityType::Spot)) else {
        return types;
    };
    for shape in &mut types {
        shape
            .offerings
            .retain(|offering| offering.capacity_type != CapacityType::Spot || offering.price <= on_demand);
    }
    types.retain(|shape| shape.offerings_within(demand.requirements).next().is_some());
    types
}

fn has_variety(types: &[InstanceType], requirements: &Requirements) -> Result<(), NothingLeft> {
    for requirement in requirements.iter() {
        let Some(needed) = requirement.min_values else { continue };
        let key = requirement.key.as_str();
        let values: BTreeSet<&LabelValue> = types
            .iter()
            .filter_map(|shape| shape.requirements.get(key).listed())
            .flatten()
            .filter(|value| requirement.has(value.as_str()))
            .collect();
        let found = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if found < needed {
            return Err(NothingLeft::TooLittleVariety {
                key: key.to_owned(),
                needed,
                found,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
