//! The prices that are known now.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{facts, ports::SpotPrice};

/// Prices per hour, from the compiled-in table until AWS has been asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    on_demand: BTreeMap<String, f64>,
    /// By type, then zone. `None` until the first answer: then the on-demand price stands in for every zone.
    spot: Option<BTreeMap<String, BTreeMap<String, f64>>>,
    /// When the figures were last confirmed by AWS; absent while they are the compiled-in ones.
    pub on_demand_as_of: Option<Timestamp>,
    pub spot_as_of: Option<Timestamp>,
    version: u64,
}

impl Prices {
    pub fn compiled_in(region: &str) -> Self {
        Self {
            on_demand: facts::on_demand_prices(region),
            spot: None,
            on_demand_as_of: None,
            spot_as_of: None,
            version: 0,
        }
    }

    /// Changes whenever a price may have.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn on_demand(&self, instance_type: &str) -> Option<f64> {
        self.on_demand.get(instance_type).copied()
    }

    pub fn spot(&self, instance_type: &str, zone: &str) -> Option<f64> {
        match &self.spot {
            Some(spot) => spot.get(instance_type)?.get(zone).copied(),
            None => self.on_demand(instance_type),
        }
    }

    /// New figures over old ones; what they do not mention stays.
    pub fn update_on_demand(&mut self, prices: BTreeMap<String, f64>, now: Timestamp) {
        self.on_demand.extend(prices);
        self.on_demand_as_of = Some(now);
        self.version += 1;
    }

    pub fn update_spot(&mut self, prices: Vec<SpotPrice>, now: Timestamp) {
        let spot = self.spot.get_or_insert_default();
        for price in prices {
            spot.entry(price.instance_type)
                .or_default()
                .insert(price.zone, price.price);
        }
        self.spot_as_of = Some(now);
        self.version += 1;
    }
}
