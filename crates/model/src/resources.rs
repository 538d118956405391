//! Amounts of several resources: what a pod asks for, what a machine has, what a pool may use.

mod name;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

pub use name::ResourceName;

/// Amounts by resource. A resource that is not listed counts as zero.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<ResourceName, Quantity>);

/// One resource of which there is not enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub resource: ResourceName,
    pub needed: Quantity,
    pub available: Quantity,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} needed, {} available",
            self.resource, self.needed, self.available
        )
    }
}

impl Resources {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn get(&self, resource: &str) -> Quantity {
        self.0.get(resource).copied().unwrap_or(Quantity::ZERO)
    }

    /// Whether the resource is listed, be it with zero.
    pub fn lists(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    pub fn set(&mut self, resource: ResourceName, amount: Quantity) {
        self.0.insert(resource, amount);
    }

    pub fn remove(&mut self, resource: &str) -> Option<Quantity> {
        self.0.remove(resource)
    }

    #[must_use]
    pub fn with(mut self, resource: ResourceName, amount: Quantity) -> Self {
        self.set(resource, amount);
        self
    }

    pub fn add_assign(&mut self, other: &Resources) {
        for (resource, amount) in &other.0 {
            match self.0.get_mut(resource) {
                Some(sum) => *sum = sum.saturating_add(*amount),
                None => self.set(resource.clone(), *amount),
            }
        }
    }

    /// May leave negative amounts: a machine can be overcommitted, a pool over its limit.
    pub fn sub_assign(&mut self, other: &Resources) {
        for (resource, amount) in &other.0 {
            match self.0.get_mut(resource) {
                Some(rest) => *rest = rest.saturating_sub(*amount),
                None => self.set(resource.clone(), amount.saturating_neg()),
            }
        }
    }

    #[must_use]
    pub fn plus(mut self, other: &Resources) -> Self {
        self.add_assign(other);
        self
    }

    #[must_use]
    pub fn minus(mut self, other: &Resources) -> Self {
        self.sub_assign(other);
        self
    }

    #[must_use]
    pub fn times(mut self, factor: i64) -> Self {
        for amount in self.0.values_mut() {
            *amount = amount.saturating_mul(factor);
        }
        self
    }

    /// Raises every amount to the other's where that is larger.
    pub fn max_with(&mut self, other: &Resources) {
        for (resource, amount) in &other.0 {
            match self.0.get_mut(resource) {
                Some(most) => *most = (*most).max(*amount),
                None => self.set(resource.clone(), *amount),
            }
        }
    }

    /// Lowers every amount to the other's where that is smaller; what the other does not list is zero there.
    pub fn min_with(&mut self, other: &Resources) {
        for (resource, amount) in &mut self.0 {
            *amount = (*amount).min(other.get(resource.as_str()));
        }
    }

    /// The same amounts with none below zero.
    #[must_use]
    pub fn floored(mut self) -> Self {
        for amount in self.0.values_mut() {
            *amount = (*amount).max(Quantity::ZERO);
        }
        self
    }

    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        self.0.retain(|_, amount| !amount.is_zero());
        self
    }

    /// Whether this demand can be met.
    ///
    /// A supply that is negative anywhere meets no demand at all, even for other resources: the machine is already
    /// overcommitted. Asking for none of an unknown resource is fine.
    pub fn fits(&self, available: &Resources) -> bool {
        !available.is_overdrawn()
            && self
                .0
                .iter()
                .all(|(resource, needed)| *needed <= available.get(resource.as_str()))
    }

    /// The resources that keep this demand from fitting; empty exactly when it [fits](Resources::fits).
    pub fn shortfall(&self, available: &Resources) -> Vec<Shortfall> {
        let overdrawn = available
            .0
            .iter()
            .filter(|(_, amount)| amount.is_negative())
            .map(|(resource, _)| resource);
        let wanting = self
            .0
            .iter()
            .filter(|(name, needed)| **needed > available.get(name.as_str()))
            .map(|(name, _)| name);
        let mut short: Vec<&ResourceName> = overdrawn.chain(wanting).collect();
        short.sort();
        short.dedup();
        let detail = |resource: &ResourceName| Shortfall {
            resource: resource.clone(),
            needed: self.get(resource.as_str()),
            available: available.get(resource.as_str()),
        };
        short.into_iter().map(detail).collect()
    }

    /// Whether any amount is below zero.
    pub fn is_overdrawn(&self) -> bool {
        self.0.values().any(|amount| amount.is_negative())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, Quantity)> {
        self.0.iter().map(|(resource, amount)| (resource, *amount))
    }
}

impl FromIterator<(ResourceName, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

impl IntoIterator for Resources {
    type Item = (ResourceName, Quantity);
    type IntoIter = std::collections::btree_map::IntoIter<ResourceName, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> Extend<&'a Resources> for Resources {
    fn extend<I: IntoIterator<Item = &'a Resources>>(&mut self, others: I) {
        for other in others {
            self.add_assign(other);
        }
    }
}

impl<'a> std::iter::Sum<&'a Resources> for Resources {
    fn sum<I: Iterator<Item = &'a Resources>>(amounts: I) -> Self {
        let mut sum = Self::default();
        sum.extend(amounts);
        sum
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (index, (resource, amount)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{resource}={amount}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(text: &str) -> Resources {
        text.split_whitespace()
            .map(|entry| {
                let (resource, amount) = entry.split_once('=').unwrap();
                (ResourceName::from(resource), amount.parse().unwrap())
            })
            .collect()
    }

    #[track_caller]
    fn check_fit(demand: &str, supply: &str, short: &str) {
        let (demand, supply) = (amounts(demand), amounts(supply));
        let shortfall: Vec<String> = demand
            .shortfall(&supply)
            .iter()
            .map(|short| short.resource.to_string())
            .collect();
        assert_eq!(shortfall.join(" "), short);
        assert_eq!(demand.fits(&supply), short.is_empty());
    }

    #[test]
    fn a_demand_fits_when_every_resource_does() {
        check_fit("cpu=1 memory=1Gi", "cpu=1 memory=1Gi", "");
        check_fit("cpu=1 memory=1Gi", "cpu=999m memory=1Gi", "cpu");
        check_fit("cpu=1 nvidia.com/gpu=1", "cpu=500m", "cpu nvidia.com/gpu");
        check_fit("", "", "");
    }

    /// SC15.6.5
    #[test]
    fn none_of_an_unknown_resource_fits() {
        check_fit("cpu=1 example.com/unheard=0", "cpu=1", "");
    }

    #[test]
    fn an_overcommitted_machine_takes_nothing_more() {
        check_fit("cpu=1", "cpu=2 memory=-1", "memory");
        check_fit("", "memory=-1", "memory");
    }

    /// SC15.7.9
    #[test]
    fn the_larger_of_two_keeps_all_names_and_the_smaller_those_of_both() {
        let (a, b) = (amounts("cpu=1 memory=2Gi"), amounts("cpu=2 pods=3"));
        let mut most = a.clone();
        most.max_with(&b);
        assert_eq!(most.to_string(), "cpu=2 memory=2Gi pods=3");
        let mut least = a;
        least.min_with(&b);
        assert_eq!(least.without_zeros().to_string(), "cpu=1");
    }

    #[test]
    fn differences_may_be_negative_until_they_are_floored() {
        let rest = amounts("cpu=1").minus(&amounts("cpu=1500m pods=1"));
        assert_eq!(rest.to_string(), "cpu=-500m pods=-1");
        assert!(rest.is_overdrawn());
        assert_eq!(rest.floored().to_string(), "cpu=0 pods=0");
    }

    #[test]
    fn sums_are_written_like_their_parts() {
        let pods = [amounts("cpu=100m memory=64Mi"), amounts("cpu=900m memory=960Mi")];
        assert_eq!(pods.iter().sum::<Resources>().to_string(), "cpu=1 memory=1Gi");
        assert_eq!(amounts("cpu=250m").times(4).to_string(), "cpu=1");
        assert_eq!(Resources::default().to_string(), "nothing");
    }

    #[test]
    fn json_is_a_map_of_quantities() {
        let read: Resources = serde_json::from_str(r#"{"cpu": 2, "memory": "1024Mi"}"#).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"cpu":"2","memory":"1Gi"}"#);
    }
}
