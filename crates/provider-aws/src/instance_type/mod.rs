//! Instance types as a node class sees them: labels, capacity, overhead, and whether the class can use them at all.
//!
//! A [`Shape`] is everything about a type but its offerings, which change by the minute; [`crate::offering`] adds them.

mod capacity;
mod compatibility;
mod formula;
mod kubelet;
mod overhead;
mod pods;
mod requirements;
#[cfg(test)]
mod tests;

use api::aws::EC2NodeClass;
use model::{Overhead, Quantity, Requirements, Resources};

use crate::{
    class_view::{self, ZoneInfo},
    options::Options,
    ports::{InstanceTypeInfo, PlacementGroupInfo},
};

pub use capacity::{ACCELERATORS, EFA};
pub use compatibility::Incompatible;
pub use formula::{Formulas, NoDefaultCard};
pub use kubelet::{Reserved, expressions};
pub use pods::interface_pods;
pub(crate) use requirements::kubernetes_architecture;

/// What the shape of a type depends on beside the type.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub region: &'a str,
    pub options: &'a Options,
    pub formulas: &'a Formulas,
    pub class: &'a EC2NodeClass,
    /// The zones of the class, as [`class_view::zones`] has them.
    pub zones: &'a [ZoneInfo],
    pub placement_group: Option<&'a PlacementGroupInfo>,
}

/// A type for one class, without its offerings.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub name: String,
    pub requirements: Requirements,
    pub capacity: Resources,
    pub overhead: Overhead,
    pub reserved: Reserved,
    /// Why the class cannot use the type, if so. Such a type is listed and never available.
    pub incompatible: Option<Incompatible>,
    /// The zones that sell the type and that the class has subnets in.
    pub zones: Vec<String>,
    /// The usage classes that can be bought: `on-demand`, `spot`.
    pub usage_classes: Vec<String>,
}

/// A setting of the class that cannot be read, or has no value for some type. The schema admits a few of those.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.{field}: {text:?} {problem}")]
pub struct Unreadable {
    pub field: String,
    pub text: String,
    pub problem: String,
}

impl Shape {
    /// `sold_in` are the zones that sell the type.
    pub fn of(info: &InstanceTypeInfo, sold_in: &[String], setting: &Setting<'_>) -> Result<Self, Unreadable> {
        let in_class = |zone: &&String| setting.zones.iter().any(|known| known.zone == **zone);
        let zones: Vec<String> = sold_in.iter().filter(in_class).cloned().collect();
        let usage_classes: Vec<String> = info
            .usage_classes
            .iter()
            .filter(|class| matches!(class.as_str(), "on-demand" | "spot"))
            .cloned()
            .collect();
        let requirements = requirements::requirements(info, &zones, &usage_classes, setting);
        let kubelet = kubelet::resolved(info, setting)?;
        let capacity = capacity::capacity(info, kubelet.pods, setting)?;
        let overhead = overhead::overhead(info, &capacity, &kubelet.reserved, setting)?;
        Ok(Self {
            name: info.name.clone(),
            incompatible: compatibility::incompatible(info, &requirements, setting),
            requirements,
            capacity: capacity.without_zeros(),
            overhead,
            reserved: kubelet.reserved,
            zones,
            usage_classes,
        })
    }
}

fn quantity(field: &str, text: &str) -> Result<Quantity, Unreadable> {
    Quantity::parse(text).map_err(|_| unreadable(field, text))
}

fn unreadable(field: &str, text: &str) -> Unreadable {
    Unreadable {
        field: field.to_owned(),
        text: text.to_owned(),
        problem: "cannot be read".to_owned(),
    }
}

/// Whether every expression of the class has a value for the type.
pub fn check_expressions(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Result<(), Unreadable> {
    kubelet::checked(info, setting)
}

/// Whether a reservation of the class is for this type.
fn has_reservation(class: &EC2NodeClass, instance_type: &str) -> bool {
    class_view::reservations(class)
        .iter()
        .any(|reservation| reservation.instance_type == instance_type)
}
