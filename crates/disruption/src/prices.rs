//! What machines cost: those that run, and those that would be launched.

use std::cmp::Ordering;

use model::{
    CapacityType, InstanceType, InstanceTypeName, Offering, PoolName, Requirements, Snapshot, StateNode, vocabulary,
};
use rustc_hash::FxHashMap;
use scheduler::Launch;

/// The catalogs of a snapshot, looked up by name.
#[derive(Debug)]
pub struct Prices<'a> {
    kinds: FxHashMap<(&'a str, &'a str), &'a InstanceType>,
}

/// What a launch may cost at most, and how it would be paid for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worst {
    pub capacity_type: CapacityType,
    pub price: f64,
}

impl<'a> Prices<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut kinds = FxHashMap::default();
        for (pool, catalog) in &snapshot.catalogs {
            for kind in catalog.iter() {
                kinds
                    .entry((pool.as_str(), kind.name.as_str()))
                    .or_insert(kind.as_ref());
            }
        }
        Self { kinds }
    }

    pub fn kind(&self, pool: &PoolName, name: &InstanceTypeName) -> Option<&'a InstanceType> {
        self.kinds.get(&(pool.as_str(), name.as_str())).copied()
    }

    /// The shapes that a launch lists.
    pub(crate) fn kinds(&self, launch: &Launch) -> impl Iterator<Item = &'a InstanceType> {
        let names = launch.instance_types.iter();
        names.filter_map(|name| self.kind(&launch.pool, name))
    }

    /// The shape of a machine, where the pool's catalog knows it.
    pub fn kind_of(&self, machine: &StateNode) -> Option<&'a InstanceType> {
        self.kind(&machine.pool()?, &machine.instance_type()?)
    }

    /// What a machine costs per hour, whether or not the offering can still be had.
    pub fn of(&self, machine: &StateNode) -> Option<f64> {
        let (zone, capacity_type) = (machine.zone()?, machine.capacity_type()?);
        let mut offerings = self.kind_of(machine)?.offerings.iter();
        let offering = offerings.find(|o| o.zone == zone && o.capacity_type == capacity_type)?;
        (!offering.price.is_nan()).then_some(offering.price)
    }
}

/// The most that a launch of this shape can cost: the cloud takes the first kind of capacity that there is, and any
/// zone. Nothing when it is not on sale.
pub(crate) fn worst(kind: &InstanceType, requirements: &Requirements) -> Option<Worst> {
    let mut worst: Option<Worst> = None;
    for offering in kind.offerings_within(requirements) {
        let (capacity_type, price) = (offering.capacity_type, offering.price);
        let dearer = worst.is_none_or(|known| match capacity_type.cmp(&known.capacity_type) {
            Ordering::Less => true,
            Ordering::Equal => price > known.price,
            Ordering::Greater => false,
        });
        if dearer {
            worst = Some(Worst { capacity_type, price });
        }
    }
    worst
}

/// The cheapest way to buy a shape now. Among equal prices the order of capacity types and zones decides.
pub(crate) fn cheapest<'k>(kind: &'k InstanceType, requirements: &Requirements) -> Option<&'k Offering> {
    let sold = kind.available().filter(|offering| offering.admitted_by(requirements));
    sold.min_by(|a, b| {
        let order = (a.capacity_type, &a.zone).cmp(&(b.capacity_type, &b.zone));
        a.price.total_cmp(&b.price).then(order)
    })
}

/// Whether a shape can be had for less than this at all, in whatever zone. Asked first, because it is a cheap question.
pub(crate) fn may_cost_less(kind: &InstanceType, than: f64) -> bool {
    kind.available().any(|offering| offering.price < than)
}

/// The requirements with one kind of capacity only.
pub(crate) fn paid_as(requirements: &Requirements, capacity_type: CapacityType) -> Requirements {
    let mut narrowed = requirements.clone();
    let least = narrowed
        .requirement(vocabulary::CAPACITY_TYPE)
        .and_then(|requirement| requirement.min_values);
    let only = model::Requirement::one_of(vocabulary::CAPACITY_TYPE, [capacity_type.as_str()]);
    narrowed.replace(only.with_min_values(least));
    narrowed
}

#[cfg(test)]
mod tests {
    use model::{Overhead, Requirement, Resources, samples};

    use super::*;

    fn kind(offerings: &[(CapacityType, &str, f64)]) -> InstanceType {
        let offerings = offerings
            .iter()
            .map(|(kind, zone, price)| samples::offering(*kind, zone, *price));
        InstanceType::new(
            "t".into(),
            Requirements::default(),
            offerings.collect(),
            Resources::default(),
            Overhead::default(),
        )
    }

    #[test]
    fn the_worst_price_is_the_dearest_zone_of_the_first_kind_of_capacity() {
        use CapacityType::{OnDemand, Reserved, Spot};
        let all = kind(&[(OnDemand, "a", 9.0), (Spot, "a", 1.0), (Spot, "b", 3.0)]);
        let anywhere = Requirements::default();
        assert_eq!(
            worst(&all, &anywhere).map(|w| (w.capacity_type, w.price)),
            Some((Spot, 3.0))
        );
        let reserved = kind(&[(Spot, "a", 1.0), (Reserved, "a", 0.0)]);
        assert_eq!(worst(&reserved, &anywhere).map(|w| w.price), Some(0.0));
        let in_a: Requirements = std::iter::once(Requirement::one_of(vocabulary::ZONE, ["a"])).collect();
        assert_eq!(worst(&all, &in_a).map(|w| w.price), Some(1.0));
        assert_eq!(worst(&all, &paid_as(&anywhere, OnDemand)).map(|w| w.price), Some(9.0));
        assert_eq!(worst(&all, &paid_as(&anywhere, Reserved)), None);
    }
}
