//! Capacity and prices.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Order, anything, missing};
use crate::{
    fake::State,
    region::market::{Shortage, fact},
};

/// How many instances are left in the pools that fit the patterns, all together; no number: as many as anybody wants.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capacity {
    #[serde(default = "anything")]
    instance_type: String,
    #[serde(default = "anything")]
    zone: String,
    /// `on-demand`, `spot`, or a pattern.
    #[serde(default = "anything")]
    capacity_type: String,
    available: Option<u32>,
    #[serde(default = "insufficient")]
    code: String,
    message: Option<String>,
}

fn insufficient() -> String {
    "InsufficientInstanceCapacity".to_owned()
}

impl Order for Capacity {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let shortage = Shortage {
            instance_type: self.instance_type,
            zone: self.zone,
            capacity: self.capacity_type,
            left: 0,
            code: self.code,
            message: self.message,
        };
        state.region.market.limit(shortage, self.available);
        Ok(json!({}))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    instance_type: String,
    on_demand: Option<f64>,
    /// By zone.
    #[serde(default)]
    spot: BTreeMap<String, f64>,
}

impl Order for Prices {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        fact(&self.instance_type).ok_or_else(|| missing("instance type", &self.instance_type))?;
        let market = &mut state.region.market;
        if let Some(price) = self.on_demand {
            market.set_on_demand(&self.instance_type, price);
        }
        for (zone, price) in &self.spot {
            market.set_spot(&self.instance_type, zone, *price);
        }
        Ok(json!({}))
    }
}
