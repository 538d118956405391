//! What a shape can be bought as, where, and for how much.

mod overlay;
mod prices;
mod refresh;
mod shortage;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    aws::{CapacityReservation, EC2NodeClass, ReservationState},
    labels::{self, aws},
};
use model::{CapacityType, InstanceType, Offering, Requirement, Requirements};

pub use overlay::overlay_prices;
pub use prices::Prices;
pub use refresh::{RefreshError, on_demand_queries, refresh_on_demand, refresh_spot};
pub use shortage::{Shortages, Spot};

use crate::{
    class_view::{self, ZoneInfo},
    instance_type::Shape,
    machine::RESERVATION_LABELS,
    ports::PlacementGroupInfo,
};

/// Reserved capacity is paid for already; a price this small puts it first and keeps dearer types dearer.
const RESERVED_DIVISOR: f64 = 10_000_000.0;

/// The state of the region that offerings depend on, at one moment.
pub struct Region<'a> {
    /// Every zone that sells anything.
    pub zones: &'a BTreeSet<String>,
    pub prices: &'a Prices,
    /// For types that AWS names no price for, by type.
    pub own_prices: &'a BTreeMap<String, f64>,
    pub shortages: &'a Shortages,
    /// Ids of the zones that the cluster is shifted out of.
    pub shifted_zones: &'a BTreeSet<String>,
    /// How many instances a reservation still takes.
    pub reservation_capacity: &'a dyn Fn(&str) -> u32,
    pub reserved_capacity: bool,
    pub sources: &'a [Arc<dyn OfferingSource>],
}

/// Whoever else sells: for programs built on this crate that know of capacity that EC2's lists do not tell.
pub trait OfferingSource: Send + Sync + 'static {
    /// Adds to what the type can be bought as, or takes from it, after everything that is known here has been said.
    fn amend(&self, shape: &Shape, buyer: Buyer<'_>, offerings: &mut Vec<Offering>);

    /// Changes whenever an answer may; until then, answers are remembered.
    fn version(&self) -> u64;
}

/// The class's side.
#[derive(Clone, Copy)]
pub struct Buyer<'a> {
    pub class: &'a EC2NodeClass,
    pub zones: &'a [ZoneInfo],
    pub placement_group: Option<&'a PlacementGroupInfo>,
}

/// The shape with all its offerings, available or not.
pub fn with_offerings(shape: &Shape, buyer: Buyer<'_>, region: &Region<'_>) -> InstanceType {
    let mut offerings = base(shape, buyer, region);
    if region.reserved_capacity {
        let own = class_view::reservations(buyer.class)
            .iter()
            .filter(|reservation| reservation.instance_type == shape.name);
        offerings.extend(own.map(|reservation| reserved(shape, reservation, buyer, region)));
    }
    if let Some(group) = buyer.placement_group.filter(|group| group.strategy == "partition") {
        offerings = offerings
            .iter()
            .flat_map(|offering| (1..=group.partitions).map(move |partition| (offering, partition)))
            .map(|(offering, partition)| {
                let spot = Spot {
                    capacity_type: offering.capacity_type,
                    instance_type: &shape.name,
                    zone: offering.zone.as_str(),
                };
                let has_room = !region.shortages.is_partition_short(spot, &group.id, partition);
                in_partition(offering, partition, has_room)
            })
            .collect();
    }
    for source in region.sources {
        source.amend(shape, buyer, &mut offerings);
    }
    InstanceType::new(
        shape.name.as_str().into(),
        shape.requirements.clone(),
        offerings,
        shape.capacity.clone(),
        shape.overhead.clone(),
    )
}

fn base(shape: &Shape, buyer: Buyer<'_>, region: &Region<'_>) -> Vec<Offering> {
    let mut offerings = Vec::new();
    let group = buyer.placement_group.map(|group| group.id.as_str());
    for zone in region.zones {
        let known = buyer.zones.iter().find(|known| known.zone == *zone);
        for usage in &shape.usage_classes {
            let capacity_type = if usage == "spot" {
                CapacityType::Spot
            } else {
                CapacityType::OnDemand
            };
            let price = match capacity_type {
                CapacityType::Spot => region.prices.spot(&shape.name, zone),
                _ => region.prices.on_demand(&shape.name),
            };
            let price = price.or_else(|| region.own_prices.get(&shape.name).copied());
            let subnets = known.map_or(&[][..], |known| known.subnets.as_slice());
            let spot = Spot {
                capacity_type,
                instance_type: &shape.name,
                zone,
            };
            let available = shape.incompatible.is_none()
                && price.is_some()
                && shape.zones.contains(zone)
                && !is_shifted(known, region)
                && !region.shortages.is_short(spot, subnets, group);
            let mut requirements = place(capacity_type, zone, known);
            for key in RESERVATION_LABELS {
                requirements.add(Requirement::absent(key));
            }
            offerings.push(Offering {
                capacity_type,
                zone: zone.as_str().into(),
                price: price.unwrap_or(0.0),
                available,
                requirements,
                reservation_capacity: None,
                capacity_override: None,
                overhead_override: None,
            });
        }
    }
    offerings
}

fn reserved(shape: &Shape, reservation: &CapacityReservation, buyer: Buyer<'_>, region: &Region<'_>) -> Offering {
    let zone = &reservation.availability_zone;
    let known = buyer.zones.iter().find(|known| known.zone == *zone);
    let left = (region.reservation_capacity)(&reservation.id);
    let kind = reservation
        .reservation_type
        .as_ref()
        .map_or("default", |kind| kind.as_str());
    let interruptible = reservation.interruptible.unwrap_or(false).to_string();
    let mut requirements = place(CapacityType::Reserved, zone, known);
    requirements.extend([
        Requirement::one_of(aws::CAPACITY_RESERVATION_ID, [reservation.id.as_str()]),
        Requirement::one_of(aws::CAPACITY_RESERVATION_TYPE, [kind]),
        Requirement::one_of(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, [interruptible]),
    ]);
    Offering {
        capacity_type: CapacityType::Reserved,
        zone: zone.as_str().into(),
        price: region.prices.on_demand(&shape.name).unwrap_or(0.0) / RESERVED_DIVISOR,
        available: shape.incompatible.is_none()
            && left > 0
            && shape.zones.contains(zone)
            && reservation.state != Some(ReservationState::Expiring)
            && !is_shifted(known, region),
        requirements,
        reservation_capacity: Some(left),
        capacity_override: None,
        overhead_override: None,
    }
}

fn place(capacity_type: CapacityType, zone: &str, known: Option<&ZoneInfo>) -> Requirements {
    let mut requirements: Requirements = [
        Requirement::one_of(labels::CAPACITY_TYPE, [capacity_type.as_str()]),
        Requirement::one_of(labels::ZONE, [zone]),
    ]
    .into_iter()
    .collect();
    if let Some(id) = known.and_then(|zone| zone.zone_id.as_deref()) {
        requirements.add(Requirement::one_of(aws::ZONE_ID, [id]));
    }
    requirements
}

fn is_shifted(zone: Option<&ZoneInfo>, region: &Region<'_>) -> bool {
    zone.and_then(|zone| zone.zone_id.as_ref())
        .is_some_and(|id| region.shifted_zones.contains(id))
}

fn in_partition(offering: &Offering, partition: u32, has_room: bool) -> Offering {
    let mut offering = offering.clone();
    offering.available &= has_room;
    let partition = Requirement::one_of(aws::PLACEMENT_GROUP_PARTITION, [partition.to_string()]);
    offering.requirements.add(partition);
    offering
}
