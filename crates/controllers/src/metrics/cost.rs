//! What the machines of each pool cost.
//!
//! Derived from the snapshot whenever somebody asks: a total that is kept beside the machines can disagree with them.

use std::collections::BTreeMap;

use model::{CapacityType, InstanceTypeName, PoolName, Snapshot, Zone};

/// One way in which machines were bought.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bought {
    pub instance_type: InstanceTypeName,
    pub zone: Zone,
    pub capacity_type: CapacityType,
}

/// The machines of one pool, by how they were bought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// How many, and what one costs per hour; nothing where the catalog does not know the offering.
    pub machines: BTreeMap<Bought, (u32, Option<f64>)>,
}

impl Cost {
    /// US dollars per hour. An unknown price counts as nothing.
    pub fn total(&self) -> f64 {
        let prices = self
            .machines
            .values()
            .map(|(count, price)| f64::from(*count) * price.unwrap_or(0.0));
        prices.fold(0.0, |sum, price| sum + price)
    }

    /// How many machines have a price that nobody knows.
    pub fn unpriced(&self) -> u32 {
        let unknown = self.machines.values().filter(|(_, price)| price.is_none());
        unknown.map(|(count, _)| count).sum()
    }
}

/// Machines count from the moment their claim says how they were bought, and until the claim is gone. A pool without
/// such machines has no entry.
pub fn by_pool(snapshot: &Snapshot) -> BTreeMap<PoolName, Cost> {
    let mut costs: BTreeMap<PoolName, Cost> = BTreeMap::new();
    for machine in snapshot.nodes.values().filter(|machine| machine.is_managed()) {
        let bought = || {
            Some(Bought {
                instance_type: machine.instance_type()?,
                zone: machine.zone()?,
                capacity_type: machine.capacity_type()?,
            })
        };
        let (Some(pool), Some(bought)) = (machine.pool(), bought()) else {
            continue;
        };
        let cost = costs.entry(pool).or_default();
        // Machines that were bought alike are priced once: the catalog is searched for it.
        let (count, _) = cost
            .machines
            .entry(bought)
            .or_insert_with(|| (0, snapshot.price_of(machine)));
        *count += 1;
    }
    costs
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{
        Claim, InstanceType, Labels, NodeKey, Requirements, Resources, StateNode, samples,
        vocabulary::{CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE},
    };

    use super::*;

    fn snapshot(prices: &[(&str, f64)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let catalog = prices.iter().map(|(name, price)| {
            let offerings = vec![samples::offering(CapacityType::Spot, "a", *price)];
            let (requirements, capacity) = (Requirements::default(), Resources::default());
            Arc::new(InstanceType::new(
                (*name).into(),
                requirements,
                offerings,
                capacity,
                Default::default(),
            ))
        });
        let catalog: model::snapshot::Catalog = catalog.collect();
        for pool in ["p", "q"] {
            snapshot.pools.insert(pool.into(), Arc::new(samples::pool(pool)));
            snapshot.catalogs.insert(pool.into(), catalog.clone());
        }
        snapshot
    }

    fn put(snapshot: &mut Snapshot, name: &str, pool: &str, instance_type: &str) {
        let labels: Labels = [
            (NODEPOOL, pool),
            (INSTANCE_TYPE, instance_type),
            (ZONE, "a"),
            (CAPACITY_TYPE, "spot"),
        ]
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
        snapshot.put_node(Arc::new(StateNode {
            key: NodeKey::Claim(name.into()),
            claim: Some(Claim {
                labels,
                ..samples::claim(name)
            }),
            node: None,
            nominated_until: None,
            marked_for_deletion: false,
        }));
    }

    fn totals(snapshot: &Snapshot) -> Vec<(String, f64)> {
        let costs = by_pool(snapshot).into_iter();
        costs.map(|(pool, cost)| (pool.to_string(), cost.total())).collect()
    }

    /// LC-M1, LC-M3.
    #[test]
    fn a_pool_costs_what_its_machines_cost() {
        let mut snapshot = snapshot(&[("m", 1.5), ("n", 0.25)]);
        assert!(totals(&snapshot).is_empty());
        put(&mut snapshot, "a", "p", "m");
        put(&mut snapshot, "b", "p", "m");
        put(&mut snapshot, "c", "p", "n");
        put(&mut snapshot, "d", "q", "n");
        assert_eq!(totals(&snapshot), [("p".to_owned(), 3.25), ("q".to_owned(), 0.25)]);
        snapshot.remove_node(&NodeKey::Claim("d".into()));
        snapshot.remove_node(&NodeKey::Claim("a".into()));
        assert_eq!(
            totals(&snapshot),
            [("p".to_owned(), 1.75)],
            "the pool goes with its last machine"
        );
        put(&mut snapshot, "a", "p", "m");
        assert_eq!(totals(&snapshot), [("p".to_owned(), 3.25)]);
    }

    /// LC-M2.
    #[test]
    fn a_new_price_counts_at_once_and_an_unknown_one_as_nothing() {
        let mut before = snapshot(&[("m", 1.0)]);
        put(&mut before, "a", "p", "m");
        put(&mut before, "b", "p", "other");
        assert_eq!(totals(&before), [("p".to_owned(), 1.0)]);
        assert_eq!(by_pool(&before)[&PoolName::from("p")].unpriced(), 1);
        before.catalogs = snapshot(&[("m", 2.0)]).catalogs;
        assert_eq!(totals(&before), [("p".to_owned(), 2.0)]);
    }

    #[test]
    fn a_claim_counts_once_it_says_how_it_was_bought() {
        let mut snapshot = snapshot(&[("m", 1.0)]);
        put(&mut snapshot, "a", "p", "");
        let unlaunched = StateNode {
            key: NodeKey::Claim("b".into()),
            claim: Some(samples::claim("b")),
            node: None,
            nominated_until: None,
            marked_for_deletion: false,
        };
        snapshot.put_node(Arc::new(unlaunched));
        assert_eq!(
            by_pool(&snapshot)
                .values()
                .map(|cost| cost.machines.len())
                .sum::<usize>(),
            1
        );
    }
}
