//! What a cloud sells: shapes, and the offerings under which each shape can be had.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    dra::DynamicResources,
    ids::{InstanceTypeName, Zone},
    requirements::Requirements,
    resources::Resources,
    vocabulary,
};

/// How capacity is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    Reserved,
    Spot,
    OnDemand,
}

impl CapacityType {
    pub const ALL: [CapacityType; 3] = [CapacityType::Reserved, CapacityType::Spot, CapacityType::OnDemand];

    pub fn as_str(self) -> &'static str {
        match self {
            CapacityType::Reserved => "reserved",
            CapacityType::Spot => "spot",
            CapacityType::OnDemand => "on-demand",
        }
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a capacity type: use on-demand, spot or reserved")]
pub struct UnknownCapacityType(pub String);

impl FromStr for CapacityType {
    type Err = UnknownCapacityType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        CapacityType::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownCapacityType(text.to_owned()))
    }
}

/// What the machine keeps for itself, out of its capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    pub kube_reserved: Resources,
    pub system_reserved: Resources,
    pub eviction_threshold: Resources,
}

impl Overhead {
    pub fn total(&self) -> Resources {
        let mut total = self.kube_reserved.clone();
        total.add_assign(&self.system_reserved);
        total.add_assign(&self.eviction_threshold);
        total
    }
}

/// One way to buy a shape: a zone, a capacity type, a price.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    pub capacity_type: CapacityType,
    pub zone: Zone,
    /// US dollars per hour.
    pub price: f64,
    /// Whether the cloud would sell it now.
    pub available: bool,
    /// All labels of the offering, zone and capacity type among them.
    pub requirements: Requirements,
    /// How many instances a reservation still holds. Only for [`CapacityType::Reserved`].
    pub reservation_capacity: Option<u32>,
    /// Replaces the shape's capacity, key by key.
    pub capacity_override: Option<Resources>,
    /// Comes on top of the shape's overhead.
    pub overhead_override: Option<Overhead>,
}

/// What overlays have changed of a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlays {
    pub price: bool,
    pub capacity: bool,
}

impl Overlays {
    pub fn any(self) -> bool {
        self.price || self.capacity
    }
}

/// A shape that the cloud sells, whether or not it is to be had now.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceType {
    pub name: InstanceTypeName,
    /// Every label a node of this type has or may have.
    pub requirements: Requirements,
    pub offerings: Vec<Offering>,
    pub capacity: Resources,
    pub overhead: Overhead,
    /// Devices that pods can claim, where the type has any.
    pub dynamic_resources: Option<Arc<DynamicResources>>,
    /// Claims that list an overlaid shape say so.
    pub overlays: Overlays,
    /// What pods can use: computed once by [`InstanceType::new`].
    allocatable: Resources,
}

impl InstanceType {
    pub fn new(
        name: InstanceTypeName,
        requirements: Requirements,
        offerings: Vec<Offering>,
        capacity: Resources,
        overhead: Overhead,
    ) -> Self {
        let allocatable = allocatable(&capacity, &overhead.total());
        Self {
            name,
            requirements,
            offerings,
            capacity,
            overhead,
            dynamic_resources: None,
            overlays: Overlays::default(),
            allocatable,
        }
    }

    /// The same shape with these devices.
    #[must_use]
    pub fn with_dynamic_resources(mut self, devices: Option<Arc<DynamicResources>>) -> Self {
        self.dynamic_resources = devices;
        self
    }

    /// The same shape with other prices or another capacity.
    #[must_use]
    pub fn overlaid(&self, offerings: Vec<Offering>, capacity: Resources, overlays: Overlays) -> Self {
        let allocatable = allocatable(&capacity, &self.overhead.total());
        Self {
            offerings,
            capacity,
            overlays,
            allocatable,
            ..self.clone()
        }
    }

    /// What pods can use of this shape, before any offering's override.
    pub fn allocatable(&self) -> &Resources {
        &self.allocatable
    }

    /// What pods can use under one offering.
    pub fn allocatable_under(&self, offering: &Offering) -> Resources {
        if offering.capacity_override.is_none() && offering.overhead_override.is_none() {
            return self.allocatable.clone();
        }
        let mut capacity = self.capacity.clone();
        for (name, amount) in offering.capacity_override.iter().flat_map(Resources::iter) {
            capacity.set(name.clone(), amount);
        }
        let mut overhead = self.overhead.total();
        if let Some(changed) = &offering.overhead_override {
            overhead.add_assign(&changed.total());
        }
        allocatable(&capacity, &overhead)
    }

    /// Offerings that can be bought now.
    pub fn available(&self) -> impl Iterator<Item = &Offering> {
        self.offerings.iter().filter(|offering| offering.available)
    }

    /// Offerings that can be bought now and that the requirements admit.
    pub fn offerings_within<'a>(&'a self, requirements: &'a Requirements) -> impl Iterator<Item = &'a Offering> {
        self.available().filter(|offering| offering.admitted_by(requirements))
    }
}

impl Offering {
    /// Whether zone, capacity type and the offering's other labels are among what the requirements admit.
    pub fn admitted_by(&self, requirements: &Requirements) -> bool {
        requirements.get(vocabulary::ZONE).has(self.zone.as_str())
            && requirements
                .get(vocabulary::CAPACITY_TYPE)
                .has(self.capacity_type.as_str())
            && requirements.intersects(&self.requirements).is_ok()
    }
}

/// Capacity less overhead, never below zero; huge pages come out of memory.
fn allocatable(capacity: &Resources, overhead: &Resources) -> Resources {
    let mut left = Resources::default();
    for (name, amount) in capacity.iter() {
        left.set(
            name.clone(),
            amount
                .saturating_sub(overhead.get(name.as_str()))
                .max(crate::Quantity::ZERO),
        );
    }
    let huge = capacity
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("hugepages-"));
    let huge = huge.fold(crate::Quantity::ZERO, |sum, (_, amount)| sum.saturating_add(amount));
    if !huge.is_zero() {
        let memory = left.get("memory").saturating_sub(huge).max(crate::Quantity::ZERO);
        left.set("memory".into(), memory);
    }
    left
}
