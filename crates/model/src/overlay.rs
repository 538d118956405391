//! Corrections of what the provider says about its instance types: other prices, more resources.
//!
//! Overlays are applied to the provider's catalogs before anybody decides on them. The heaviest comes first and the
//! others fill what it has left; two of the same weight that want to change the same thing contradict each other, and
//! the second of them is not applied at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
    sync::Arc,
};

use imbl::OrdMap;

use crate::{
    InstanceType, Offering, Pool, PoolName, Requirement, Requirements, ResourceName, Resources,
    instance_type::Overlays,
    requirements::AllowUndefined,
    snapshot::Catalog,
    vocabulary::{self, Vocabulary},
};

/// One correction.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    pub name: Arc<str>,
    /// Zero when the overlay does not say.
    pub weight: i32,
    /// The instance types and offerings that are meant.
    pub requirements: Requirements,
    pub price: Option<PriceChange>,
    /// Replaces the capacity, key by key. One offering that is meant is enough to change the whole instance type.
    pub capacity: Resources,
}

/// How a price is changed. No price falls below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PriceChange {
    /// US dollars per hour, in the place of the provider's.
    Absolute(f64),
    /// US dollars per hour on top.
    Difference(f64),
    /// Of the provider's price, on top.
    Percent(f64),
}

impl PriceChange {
    pub fn applied_to(self, price: f64) -> f64 {
        let changed = match self {
            PriceChange::Absolute(price) => price,
            PriceChange::Difference(more) => price + more,
            // In this order, ten per cent of ten dollars is one dollar to the last bit.
            PriceChange::Percent(more) => price * (100.0 + more) / 100.0,
        };
        changed.max(0.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a price: use a number such as 0.25, a difference such as -0.05, or a share such as +10%")]
pub struct InvalidPriceChange(pub String);

impl FromStr for PriceChange {
    type Err = InvalidPriceChange;

    /// A sign makes it a difference, a sign and `%` a share.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let signed = text.starts_with(['+', '-']);
        let (digits, share) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        let plain = digits
            .trim_start_matches(['+', '-'])
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        match digits.parse::<f64>() {
            Ok(number) if plain && number.is_finite() => match (signed, share) {
                (true, true) => Ok(PriceChange::Percent(number)),
                (true, false) => Ok(PriceChange::Difference(number)),
                (false, false) => Ok(PriceChange::Absolute(number)),
                (false, true) => Err(InvalidPriceChange(text.to_owned())),
            },
            _ => Err(InvalidPriceChange(text.to_owned())),
        }
    }
}

/// Catalogs with the overlays in force, and the names of those that contradict another.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlaid {
    pub catalogs: OrdMap<PoolName, Catalog>,
    pub conflicts: BTreeSet<Arc<str>>,
}

/// Applies the overlays to the catalogs of these pools. Instance types that nobody touches are shared with the
/// provider's catalogs.
pub fn apply(
    catalogs: &OrdMap<PoolName, Catalog>,
    pools: &OrdMap<PoolName, Arc<Pool>>,
    overlays: &[Overlay],
    vocabulary: &Vocabulary,
) -> Overlaid {
    let mut order: Vec<&Overlay> = overlays.iter().collect();
    order.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| b.name.cmp(&a.name)));
    let mut shelves: Vec<Shelf<'_>> = catalogs
        .iter()
        .filter_map(|(name, catalog)| Some(Shelf::new(name, pools.get(name)?, catalog)))
        .collect();
    let mut conflicts = BTreeSet::new();
    for overlay in order {
        let meant: Vec<_> = shelves.iter().map(|shelf| shelf.meant(overlay, vocabulary)).collect();
        let mut pairs = shelves.iter().zip(&meant);
        if pairs.any(|(shelf, meant)| shelf.contradicts(overlay, meant)) {
            conflicts.insert(overlay.name.clone());
            continue;
        }
        for (shelf, meant) in shelves.iter_mut().zip(meant) {
            shelf.take(overlay, meant);
        }
    }
    let mut changed = catalogs.clone();
    for shelf in shelves.into_iter().filter(|shelf| !shelf.changes.is_empty()) {
        changed.insert(shelf.pool.clone(), shelf.catalog());
    }
    Overlaid {
        catalogs: changed,
        conflicts,
    }
}

/// What overlays change of one instance type.
#[derive(Default)]
struct Changes {
    /// By the position of the offering.
    prices: BTreeMap<usize, Set<PriceChange>>,
    capacity: BTreeMap<ResourceName, Set<crate::Quantity>>,
}

/// The heaviest overlay's value, and the weight of the lightest that wanted to set it.
struct Set<T> {
    value: T,
    lightest: i32,
}

fn set<K: Ord, T>(changes: &mut BTreeMap<K, Set<T>>, key: K, value: T, weight: i32) {
    let lightest = |set: &mut Set<T>| set.lightest = weight;
    changes.entry(key).and_modify(lightest).or_insert(Set {
        value,
        lightest: weight,
    });
}

/// The instance types of one pool.
struct Shelf<'a> {
    pool: &'a PoolName,
    catalog: &'a Catalog,
    /// Every label of the nodes that the pool would launch, per instance type.
    labels: Vec<Requirements>,
    /// By the position of the instance type.
    changes: BTreeMap<usize, Changes>,
}

/// The positions of offerings that an overlay means, by the position of their instance type.
type Meant = BTreeMap<usize, Vec<usize>>;

impl<'a> Shelf<'a> {
    fn new(name: &'a PoolName, pool: &Pool, catalog: &'a Catalog) -> Self {
        let mut common = Requirements::from_labels(&pool.template.labels);
        common.add(Requirement::one_of(vocabulary::NODEPOOL, [name.as_str()]));
        let labels = |kind: &Arc<InstanceType>| {
            let mut labels = common.clone();
            labels.merge(&kind.requirements);
            labels
        };
        Self {
            pool: name,
            catalog,
            labels: catalog.iter().map(labels).collect(),
            changes: BTreeMap::new(),
        }
    }

    fn meant(&self, overlay: &Overlay, vocabulary: &Vocabulary) -> Meant {
        let allow = AllowUndefined::WellKnown(vocabulary);
        let demand = &overlay.requirements;
        let offered = |offering: &Offering| demand.is_compatible(&offering.requirements, allow);
        let kinds = self.catalog.iter().zip(&self.labels).enumerate();
        kinds
            .filter(|(_, (_, labels))| labels.is_compatible(demand, AllowUndefined::Nothing))
            .map(|(index, (kind, _))| {
                let offerings = kind.offerings.iter().enumerate();
                let meant = offerings.filter(|(_, offering)| offered(offering));
                (index, meant.map(|(place, _)| place).collect::<Vec<_>>())
            })
            .filter(|(_, offerings)| !offerings.is_empty())
            .collect()
    }

    fn contradicts(&self, overlay: &Overlay, meant: &Meant) -> bool {
        meant.iter().any(|(index, offerings)| {
            let Some(changes) = self.changes.get(index) else {
                return false;
            };
            let price = |place: &usize| {
                let before = changes.prices.get(place);
                overlay.price.is_some() && before.is_some_and(|before| before.lightest == overlay.weight)
            };
            let capacity = |resource: &ResourceName| {
                let before = changes.capacity.get(resource);
                before.is_some_and(|before| before.lightest == overlay.weight)
            };
            offerings.iter().any(price) || overlay.capacity.iter().any(|(resource, _)| capacity(resource))
        })
    }

    fn take(&mut self, overlay: &Overlay, meant: Meant) {
        if overlay.price.is_none() && overlay.capacity.is_empty() {
            return;
        }
        for (index, offerings) in meant {
            let changes = self.changes.entry(index).or_default();
            if let Some(price) = overlay.price {
                for place in offerings {
                    set(&mut changes.prices, place, price, overlay.weight);
                }
            }
            for (resource, amount) in overlay.capacity.iter() {
                set(&mut changes.capacity, resource.clone(), amount, overlay.weight);
            }
        }
    }

    fn catalog(&self) -> Catalog {
        let kinds = self.catalog.iter().enumerate();
        kinds
            .map(|(index, kind)| match self.changes.get(&index) {
                Some(changes) => Arc::new(changes.applied_to(kind)),
                None => kind.clone(),
            })
            .collect()
    }
}

impl Changes {
    fn applied_to(&self, kind: &InstanceType) -> InstanceType {
        let mut offerings = kind.offerings.clone();
        for (place, price) in &self.prices {
            offerings[*place].price = price.value.applied_to(offerings[*place].price);
        }
        let mut capacity = kind.capacity.clone();
        for (resource, amount) in &self.capacity {
            capacity.set(resource.clone(), amount.value);
        }
        let overlays = Overlays {
            price: !self.prices.is_empty(),
            capacity: !self.capacity.is_empty(),
        };
        kind.overlaid(offerings, capacity, overlays)
    }
}

#[cfg(test)]
mod tests;
