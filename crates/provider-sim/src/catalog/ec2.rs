//! The embedded catalog: real EC2 shapes with their on-demand prices, spot prices synthetic.
//!
//! `data/README.md` tells where the figures come from.

use std::sync::Arc;

use model::{
    CapacityType, InstanceType, Offering, Quantity, Requirement, Requirements, ResourceName, Resources, Zone,
    vocabulary,
};

use super::derive;

const SHAPES: &str = include_str!("../../data/ec2-us-west-2.csv");
const ZONES: [&str; 4] = ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"];
/// Spot over on-demand. Not a market price, but the order of magnitude that makes spot the cheaper choice.
pub const SPOT_FACTOR: f64 = 0.7;

pub fn shapes() -> Vec<Arc<InstanceType>> {
    let linux = ["linux".to_owned()];
    let sold = offering_labels(ZONES);
    let rows = SHAPES.lines().skip(1).filter(|line| !line.is_empty());
    rows.map(|row| Arc::new(shape(row, &linux, &sold))).collect()
}

fn shape(row: &str, systems: &[String], sold: &[OfferingLabels]) -> InstanceType {
    let columns: Vec<&str> = row.split(',').collect();
    let [name, architecture, cpu, memory, pods, storage, price] = columns[..] else {
        unreachable!("every row of the embedded catalog has seven columns: {row}")
    };
    // EC2's word for it; Kubernetes has another.
    let architecture = if architecture == "x86_64" {
        "amd64"
    } else {
        architecture
    };
    let amount = |text: &str| -> Quantity { text.parse().expect("the embedded catalog holds quantities") };
    let capacity = Resources::new()
        .with(ResourceName::CPU, amount(cpu))
        .with(ResourceName::MEMORY, amount(memory))
        .with(ResourceName::PODS, amount(pods))
        .with(ResourceName::EPHEMERAL_STORAGE, amount(storage));
    let on_demand: f64 = price.parse().expect("the embedded catalog holds prices");
    let offerings = offerings(sold, on_demand);
    let requirements = derive::requirements(name, architecture, systems, &capacity, &offerings);
    InstanceType::new(name.into(), requirements, offerings, capacity, derive::overhead())
}

/// Zone, capacity type and the two as requirements: the same for every shape, so they are made once.
pub struct OfferingLabels {
    zone: Zone,
    capacity_type: CapacityType,
    requirements: Requirements,
}

/// Spot and on-demand in each zone.
pub fn offering_labels(zones: impl IntoIterator<Item = &'static str>) -> Vec<OfferingLabels> {
    let sold = |zone: &'static str| {
        [CapacityType::Spot, CapacityType::OnDemand].map(|capacity_type| OfferingLabels {
            zone: zone.into(),
            capacity_type,
            requirements: Requirements::from_iter([
                Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]),
                Requirement::one_of(vocabulary::ZONE, [zone]),
            ]),
        })
    };
    zones.into_iter().flat_map(sold).collect()
}

pub fn offerings(sold: &[OfferingLabels], on_demand: f64) -> Vec<Offering> {
    let offering = |labels: &OfferingLabels| Offering {
        capacity_type: labels.capacity_type,
        zone: labels.zone.clone(),
        price: match labels.capacity_type {
            CapacityType::Spot => on_demand * SPOT_FACTOR,
            CapacityType::OnDemand | CapacityType::Reserved => on_demand,
        },
        available: true,
        requirements: labels.requirements.clone(),
        reservation_capacity: None,
        capacity_override: None,
        overhead_override: None,
    };
    sold.iter().map(offering).collect()
}
