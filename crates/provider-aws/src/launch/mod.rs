//! From a launch request to a fleet request, and from a fleet's answer to an instance.
//!
//! Everything here is a function of values: which types remain ([`filter`]), what they are launched with ([`template`]),
//! what is asked of EC2 ([`fleet`]) and what its answer means ([`outcome`]).

pub mod custom;
pub mod filter;
pub mod fleet;
pub mod outcome;
pub mod template;

use model::{CapacityType, InstanceType, LabelValue, Offering, Requirements};

/// The capacity type to buy: reserved before spot before on demand, of those that the claim admits and that can be had.
pub fn capacity_type(requirements: &Requirements, types: &[InstanceType]) -> CapacityType {
    let can_be_had = |wanted: &CapacityType| {
        types
            .iter()
            .flat_map(|shape| shape.offerings_within(requirements))
            .any(|offering| offering.capacity_type == *wanted)
    };
    [CapacityType::Reserved, CapacityType::Spot]
        .into_iter()
        .find(can_be_had)
        .unwrap_or(CapacityType::OnDemand)
}

/// Shared hardware unless the claim insists on its own.
pub fn tenancy(requirements: &Requirements) -> &'static str {
    if requirements.get(api::labels::aws::INSTANCE_TENANCY).has("default") {
        "default"
    } else {
        "dedicated"
    }
}

/// The partition to launch into where the claim names some: the lowest in which anything can be had. Always one, so that
/// the template and the claim's label agree.
pub fn partition(requirements: &Requirements, types: &[InstanceType]) -> Option<u32> {
    let key = api::labels::aws::PLACEMENT_GROUP_PARTITION;
    requirements.requirement(key)?.values.listed()?;
    let offerings = types.iter().flat_map(|shape| shape.offerings_within(requirements));
    offerings
        .filter_map(|offering| label(offering, key)?.parse().ok())
        .min()
}

/// The one value that an offering has for a label.
pub(crate) fn label<'a>(offering: &'a Offering, key: &str) -> Option<&'a str> {
    offering.requirements.get(key).single().map(LabelValue::as_str)
}

/// The cheapest of a type's offerings that the claim admits; `None` when there is none.
fn cheapest(shape: &InstanceType, requirements: &Requirements) -> Option<f64> {
    shape
        .offerings_within(requirements)
        .map(|offering| offering.price)
        .reduce(f64::min)
}
