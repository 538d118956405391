//! Prices, and how much there is of each type in each zone.
//!
//! On-demand prices are those of the table. Spot prices are made up: a share of the on-demand price between 0.3 and 0.6
//! that is always the same for a type and a zone. Scripts replace both.

use std::{collections::BTreeMap, sync::Arc};

use super::ids::digest;
use crate::{
    facts::{self, InstanceType},
    glob,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capacity {
    OnDemand,
    Spot,
    /// A reservation that is targeted; what is left of it counts, not the market.
    CapacityBlock,
    Interruptible,
}

impl Capacity {
    /// EC2's word for the lifecycle of such an instance.
    pub fn lifecycle(self) -> &'static str {
        match self {
            Capacity::OnDemand => "on-demand",
            Capacity::Spot => "spot",
            Capacity::CapacityBlock => "capacity-block",
            Capacity::Interruptible => "interruptible-capacity-reservation",
        }
    }
}

/// Where instances come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool<'a> {
    pub instance_type: &'a str,
    pub zone: &'a str,
    pub capacity: Capacity,
}

/// A limit that a script has set: so many are left in all pools together that fit the patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub instance_type: String,
    pub zone: String,
    pub capacity: String,
    pub left: u32,
    /// The error code of a launch that finds nothing left.
    pub code: String,
    pub message: Option<String>,
}

impl Shortage {
    fn concerns(&self, pool: Pool<'_>) -> bool {
        glob::fits(&self.instance_type, pool.instance_type)
            && glob::fits(&self.zone, pool.zone)
            && glob::fits(&self.capacity, pool.capacity.lifecycle())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Market {
    on_demand: BTreeMap<String, f64>,
    /// By type and zone.
    spot: BTreeMap<(String, String), f64>,
    shortages: Vec<Shortage>,
}

impl Market {
    pub fn set_on_demand(&mut self, instance_type: &str, price: f64) {
        self.on_demand.insert(instance_type.to_owned(), price);
    }

    pub fn set_spot(&mut self, instance_type: &str, zone: &str, price: f64) {
        self.spot.insert((instance_type.to_owned(), zone.to_owned()), price);
    }

    pub fn on_demand_price(&self, fact: &InstanceType) -> f64 {
        self.on_demand.get(&fact.name).copied().unwrap_or(fact.on_demand_price)
    }

    pub fn spot_price(&self, fact: &InstanceType, zone: &str) -> f64 {
        let key = (fact.name.clone(), zone.to_owned());
        self.spot.get(&key).copied().unwrap_or_else(|| {
            let dice = digest(&format!("{}/{zone}", fact.name)) % 3000;
            let share = 0.3 + f64::from(u32::try_from(dice).unwrap_or(0)) / 10_000.0;
            // Four decimals, as spot prices have.
            (self.on_demand_price(fact) * share * 10_000.0).round() / 10_000.0
        })
    }

    pub fn price(&self, fact: &InstanceType, zone: &str, capacity: Capacity) -> f64 {
        match capacity {
            Capacity::Spot => self.spot_price(fact, zone),
            Capacity::OnDemand | Capacity::CapacityBlock | Capacity::Interruptible => self.on_demand_price(fact),
        }
    }

    /// A limit replaces the earlier ones of the same patterns; no number takes the limit away.
    pub fn limit(&mut self, shortage: Shortage, left: Option<u32>) {
        self.shortages.retain(|old| {
            (&old.instance_type, &old.zone, &old.capacity)
                != (&shortage.instance_type, &shortage.zone, &shortage.capacity)
        });
        if let Some(left) = left {
            self.shortages.push(Shortage { left, ..shortage });
        }
    }

    /// The tightest limit on a pool; of those alike the newest. `None`: as many as anybody wants.
    pub fn shortage(&self, pool: Pool<'_>) -> Option<&Shortage> {
        let concerned = self.shortages.iter().rev().filter(|shortage| shortage.concerns(pool));
        concerned.min_by_key(|shortage| shortage.left)
    }

    pub(super) fn take(&mut self, pool: Pool<'_>) {
        for shortage in self.shortages.iter_mut().filter(|shortage| shortage.concerns(pool)) {
            shortage.left = shortage.left.saturating_sub(1);
        }
    }

    pub(super) fn give_back(&mut self, pool: Pool<'_>) {
        for shortage in self.shortages.iter_mut().filter(|shortage| shortage.concerns(pool)) {
            // A pool without anything stays so: what runs there came before the script said that it is empty.
            if shortage.left > 0 {
                shortage.left += 1;
            }
        }
    }
}

pub fn fact(instance_type: &str) -> Option<&'static Arc<InstanceType>> {
    let types = facts::instance_types();
    let place = types.binary_search_by(|fact| fact.name.as_str().cmp(instance_type));
    place.ok().map(|place| &types[place])
}

/// Whether a type is sold in a zone.
pub fn is_sold(fact: &InstanceType, zone: &str) -> bool {
    zone.chars()
        .next_back()
        .is_some_and(|letter| fact.zones.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool<'a>(instance_type: &'a str, zone: &'a str) -> Pool<'a> {
        Pool {
            instance_type,
            zone,
            capacity: Capacity::Spot,
        }
    }

    fn limit(market: &mut Market, instance_type: &str, zone: &str, left: Option<u32>) {
        let shortage = Shortage {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            capacity: "*".to_owned(),
            left: 0,
            code: "InsufficientInstanceCapacity".to_owned(),
            message: None,
        };
        market.limit(shortage, left);
    }

    #[test]
    fn spot_is_cheaper_and_differs_by_zone() {
        let market = Market::default();
        for fact in facts::instance_types() {
            let share = market.spot_price(fact, "us-west-2a") / fact.on_demand_price;
            assert!((0.28..0.62).contains(&share), "{} {share}", fact.name);
        }
        let fact = fact("m5.large").expect("a type of the table");
        assert_ne!(
            market.spot_price(fact, "us-west-2a"),
            market.spot_price(fact, "us-west-2b")
        );
    }

    #[test]
    fn limits_are_shared_by_all_pools_that_fit() {
        let mut market = Market::default();
        assert_eq!(market.shortage(pool("m5.large", "us-west-2a")), None);
        limit(&mut market, "m5.*", "*", Some(2));
        market.take(pool("m5.large", "us-west-2a"));
        market.take(pool("m5.xlarge", "us-west-2b"));
        let left =
            |market: &Market, name: &str| market.shortage(pool(name, "us-west-2c")).map(|shortage| shortage.left);
        assert_eq!(left(&market, "m5.large"), Some(0));
        assert_eq!(left(&market, "c5.large"), None);
        limit(&mut market, "m5.*", "*", None);
        assert_eq!(left(&market, "m5.large"), None);
    }

    #[test]
    fn the_tightest_limit_counts() {
        let mut market = Market::default();
        limit(&mut market, "*", "us-west-2a", Some(5));
        limit(&mut market, "m5.large", "*", Some(1));
        let found = market
            .shortage(pool("m5.large", "us-west-2a"))
            .map(|shortage| shortage.left);
        assert_eq!(found, Some(1));
    }
}
