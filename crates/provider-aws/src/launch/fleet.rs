//! The request for one instance.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::aws;
use model::{CapacityType, InstanceType, Offering, Requirement, Requirements, vocabulary};

use super::{label, template::Plan};
use crate::{
    class_view::ZoneInfo,
    discovery::Addresses,
    ports::{Allocation, FleetGroup, FleetOverride, FleetRequest, Market, MarketType, Tags},
};

/// A launch whose types and templates are settled.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub capacity_type: CapacityType,
    pub requirements: &'a Requirements,
    pub types: &'a [InstanceType],
    pub templates: &'a [Plan],
    /// The subnet to use in each zone.
    pub subnets: &'a BTreeMap<String, String>,
    pub allocation: Allocation,
    pub context: Option<&'a str>,
    pub tags: &'a Tags,
    pub token: &'a str,
}

/// No template is left with anything to launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no offering has both a launch template and a subnet")]
pub struct NothingToOffer;

/// The requirements with the capacity type settled.
fn settled(requirements: &Requirements, capacity_type: CapacityType) -> Requirements {
    let mut settled = requirements.clone();
    settled.replace(Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]));
    settled
}

pub fn request(order: Order<'_>) -> Result<FleetRequest, NothingToOffer> {
    let requirements = settled(order.requirements, order.capacity_type);
    let group = |plan: &Plan| FleetGroup {
        template_name: plan.name.clone(),
        version: None,
        overrides: overrides(plan, &requirements, order),
    };
    let groups: Vec<FleetGroup> = order.templates.iter().map(group).collect();
    let groups: Vec<FleetGroup> = groups.into_iter().filter(|group| !group.overrides.is_empty()).collect();
    if groups.is_empty() {
        return Err(NothingToOffer);
    }
    Ok(FleetRequest {
        dry_run: false,
        context: order.context.map(str::to_owned),
        groups,
        market: market(order),
        client_token: Some(order.token.to_owned()),
        tags: order.tags.clone(),
        count: 1,
    })
}

fn overrides(plan: &Plan, requirements: &Requirements, order: Order<'_>) -> Vec<FleetOverride> {
    let mut seen = BTreeSet::new();
    let mut overrides = Vec::new();
    let own = order
        .types
        .iter()
        .filter(|shape| plan.types.iter().any(|name| *name == shape.name.as_str()));
    for shape in own {
        for offering in shape.offerings_within(requirements) {
            let is_own = plan.reservation.as_deref() == reservation_of(offering);
            let zone = offering.zone.as_str();
            let Some(subnet) = order.subnets.get(zone).filter(|_| is_own) else {
                continue;
            };
            if seen.insert((shape.name.clone(), zone.to_owned())) {
                overrides.push(FleetOverride {
                    instance_type: shape.name.to_string(),
                    subnet: subnet.clone(),
                    zone: Some(zone.to_owned()),
                    image_id: Some(plan.data.image_id.clone()),
                    priority: Some(offering.price),
                });
            }
        }
    }
    overrides
}

fn reservation_of(offering: &Offering) -> Option<&str> {
    label(offering, aws::CAPACITY_RESERVATION_ID)
}

fn market(order: Order<'_>) -> Market {
    let special = order.templates.iter().find_map(|plan| plan.data.market);
    match (order.capacity_type, special) {
        (CapacityType::Spot, _) => Market::Spot(order.allocation),
        (CapacityType::Reserved, Some(MarketType::CapacityBlock)) => Market::CapacityBlock,
        (CapacityType::Reserved, Some(MarketType::InterruptibleReservation)) => Market::InterruptibleReservation,
        _ => Market::OnDemand(order.allocation),
    }
}

/// The subnet for each zone, and how many addresses to take from it in advance: those of the smallest node that may come.
pub fn zonal_subnets(
    zones: &[ZoneInfo],
    addresses: &Addresses,
    types: &[InstanceType],
    capacity_type: CapacityType,
    requirements: &Requirements,
) -> (BTreeMap<String, String>, BTreeMap<String, i64>) {
    let requirements = settled(requirements, capacity_type);
    let smallest_in = |zone: &str| {
        let sold_here = |shape: &&InstanceType| {
            shape
                .offerings_within(&requirements)
                .any(|offering| offering.zone.as_str() == zone)
        };
        let pods = types
            .iter()
            .filter(sold_here)
            .map(|shape| shape.capacity.get("pods").value_ceil());
        pods.min()
    };
    let mut subnets = BTreeMap::new();
    let mut deductions = BTreeMap::new();
    for zone in zones {
        if let Some(subnet) = addresses.roomiest(&zone.subnets) {
            subnets.insert(zone.zone.clone(), subnet.clone());
            if let Some(pods) = smallest_in(&zone.zone) {
                deductions.insert(subnet.clone(), pods);
            }
        }
    }
    (subnets, deductions)
}

#[cfg(test)]
mod tests;
