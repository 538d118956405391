//! What calls meet before they reach the region: throttling, ordered faults, the caller's policy.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Order};
use crate::{
    fake::{Fault, State},
    iam::Policy,
    refusal::Refusal,
    throttle::Rate,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttling {
    enabled: Option<bool>,
    /// By action.
    #[serde(default)]
    rates: BTreeMap<String, Bucket>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Bucket {
    per_second: f64,
    burst: f64,
}

impl Order for Throttling {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        state.throttle.enabled = self.enabled.unwrap_or(state.throttle.enabled);
        let rates = self.rates.into_iter();
        let rates = rates.map(|(action, Bucket { per_second, burst })| (action, Rate { per_second, burst }));
        state.throttle.scripted.extend(rates);
        Ok(json!({}))
    }
}

/// Refuses the calls whose action fits the pattern, so many times or until the faults are cleared.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Faults {
    action: String,
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default = "bad_request")]
    status: u16,
    times: Option<u32>,
}

fn bad_request() -> u16 {
    400
}

impl Order for Faults {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let status = StatusCode::from_u16(self.status);
        let status = status.map_err(|_| CommandError::Unreadable(format!("{} is no status", self.status)))?;
        state.faults.push(Fault {
            action: self.action,
            refusal: Refusal::new(self.code, self.message).with_status(status),
            times: self.times,
        });
        Ok(json!({}))
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearFaults {}

impl Order for ClearFaults {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        state.faults.clear();
        Ok(json!({}))
    }
}

/// The policy of whoever calls; without a document everything is allowed again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policies {
    document: Option<Value>,
}

impl Order for Policies {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let parsed = self.document.map(|document| Policy::parse(&document)).transpose();
        state.policy = parsed.map_err(|error| CommandError::Unreadable(error.to_string()))?;
        Ok(json!({}))
    }
}
