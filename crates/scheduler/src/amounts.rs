//! Resources as short rows of machine integers.
//!
//! A round knows which resources anybody asks for, so an amount is a row with one number per such resource. Each resource
//! gets the coarsest unit in which all amounts of the round are whole, so that the numbers are exact. Where that would
//! not fit a machine integer, demands are rounded up and supplies down: a plan may then waste a trifle, never overbook.

use std::collections::BTreeSet;

use model::{Quantity, ResourceName, Resources};
use smallvec::SmallVec;

/// One number per resource that anybody asks for.
pub(crate) type Amounts = SmallVec<[i64; 6]>;

/// The resources that matter in a round, and their units.
#[derive(Debug)]
pub(crate) struct Dims {
    names: Vec<ResourceName>,
    units: Vec<i128>,
}

/// Sums of many amounts must not overflow.
const LARGEST: i128 = 1 << 56;

impl Dims {
    /// The resources of which any of the demands wants some; supplies only help to find exact units. Machines tell how
    /// much there can be at most: who asks for more gets nothing anyway, and must not coarsen the units of others.
    pub fn new<'r>(
        demands: impl Iterator<Item = &'r Resources> + Clone,
        supplies: impl Iterator<Item = &'r Resources> + Clone,
        machines: impl Iterator<Item = &'r Resources>,
    ) -> Self {
        let wanted: BTreeSet<&ResourceName> = demands
            .clone()
            .flat_map(Resources::iter)
            .filter(|(_, amount)| !amount.is_zero())
            .map(|(name, _)| name)
            .collect();
        let names: Vec<ResourceName> = wanted.into_iter().cloned().collect();
        let mut units = vec![0i128; names.len()];
        let mut largest = vec![0i128; names.len()];
        for resources in supplies.clone().chain(machines) {
            for (largest, name) in largest.iter_mut().zip(&names) {
                *largest = (*largest).max(resources.get(name.as_str()).nanos().saturating_abs());
            }
        }
        for resources in demands.chain(supplies) {
            for (index, name) in names.iter().enumerate() {
                let amount = resources.get(name.as_str()).nanos().saturating_abs();
                if amount <= largest[index] {
                    units[index] = gcd(units[index], amount);
                }
            }
        }
        for (unit, largest) in units.iter_mut().zip(largest) {
            *unit = (*unit).max(1).max(largest / LARGEST);
        }
        Self { names, units }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn names(&self) -> &[ResourceName] {
        &self.names
    }

    /// Rounded up where it is not whole.
    pub fn demand(&self, resources: &Resources) -> Amounts {
        let up = |nanos: i128, unit: i128| nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) > 0);
        self.each(resources, 2 * LARGEST, up)
    }

    /// Rounded down where it is not whole.
    pub fn supply(&self, resources: &Resources) -> Amounts {
        self.each(resources, LARGEST, i128::div_euclid)
    }

    /// What is clamped as a demand stays above what is clamped as a supply.
    fn each(&self, resources: &Resources, most: i128, convert: impl Fn(i128, i128) -> i128) -> Amounts {
        let pairs = self.names.iter().zip(&self.units);
        pairs
            .map(|(name, unit)| {
                let amount = convert(resources.get(name.as_str()).nanos(), *unit);
                i64::try_from(amount.clamp(-LARGEST, most)).unwrap_or(i64::MAX)
            })
            .collect()
    }

    /// The amount in the words of the cluster.
    pub fn quantity(&self, dim: usize, amount: i64) -> Quantity {
        Quantity::from_nanos(i128::from(amount) * self.units[dim])
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(crate) fn add(to: &mut Amounts, more: &[i64]) {
    for (sum, more) in to.iter_mut().zip(more) {
        *sum += more;
    }
}

pub(crate) fn fits(need: &[i64], free: &[i64]) -> bool {
    need.iter().zip(free).all(|(need, free)| need <= free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(text: &str) -> Resources {
        let entries = text.split_whitespace().map(|entry| entry.split_once('=').unwrap());
        entries
            .map(|(name, amount)| (name.into(), amount.parse().unwrap()))
            .collect()
    }

    #[test]
    fn units_are_as_coarse_as_exactness_allows() {
        let (pods, node) = (
            [resources("cpu=250m memory=512Mi"), resources("cpu=100m memory=0")],
            [resources("cpu=4 memory=16Gi gpu=1")],
        );
        let dims = Dims::new(pods.iter(), node.iter(), std::iter::empty());
        assert_eq!(
            dims.names().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["cpu", "memory"]
        );
        assert_eq!(dims.demand(&pods[0]).as_slice(), [5, 1]);
        assert_eq!(dims.supply(&node[0]).as_slice(), [80, 32]);
        assert_eq!(dims.quantity(0, 5), "250m".parse().unwrap());
    }

    #[test]
    fn what_no_integer_holds_is_rounded_to_the_safe_side() {
        let (pods, node) = ([resources("cpu=1n memory=7")], [resources("cpu=100G memory=1")]);
        let dims = Dims::new(pods.iter(), node.iter(), std::iter::empty());
        assert_eq!(dims.demand(&pods[0])[0], 1);
        assert!(dims.supply(&node[0])[0] > 0);
        assert!(fits(&dims.demand(&pods[0])[..1], &dims.supply(&node[0])[..1]));
    }

    #[test]
    fn who_asks_for_more_than_there_is_does_not_coarsen_the_units() {
        let (pods, node) = ([resources("cpu=1E"), resources("cpu=100m")], [resources("cpu=4")]);
        let dims = Dims::new(pods.iter(), node.iter(), std::iter::empty());
        assert_eq!((dims.demand(&pods[1])[0], dims.supply(&node[0])[0]), (1, 40));
        assert!(!fits(&dims.demand(&pods[0]), &dims.supply(&node[0])));
    }

    #[test]
    fn an_overdrawn_supply_stays_negative() {
        let pods = [resources("cpu=300m")];
        let dims = Dims::new(pods.iter(), std::iter::empty(), std::iter::once(&pods[0]));
        assert_eq!(dims.supply(&resources("cpu=-100m")).as_slice(), [-1]);
        assert_eq!(dims.demand(&resources("cpu=100m")).as_slice(), [1]);
    }
}
