//! What scripts can order: one variant per path of the control page.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::orders::{
    Order,
    calls::{ClearFaults, Faults, Policies, Throttling},
    instances::{InstanceStatus, Interruptions, Messages},
    market::{Capacity, Prices},
    region::{Images, Parameters, PlacementGroups, Releases, Reservations, Roles, Subnets, Timing, ZonalShifts},
};
use crate::fake::State;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("there is no order {0}")]
    Unknown(String),
    #[error("the order cannot be read: {0}")]
    Unreadable(String),
    #[error("there is no {kind} {name}")]
    Missing { kind: &'static str, name: String },
}

/// One order, named as its path is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Capacity(Capacity),
    Prices(Prices),
    Interruptions(Interruptions),
    Messages(Messages),
    InstanceStatus(InstanceStatus),
    Throttling(Throttling),
    Faults(Faults),
    ClearFaults(ClearFaults),
    Policy(Policies),
    Reservations(Reservations),
    PlacementGroups(PlacementGroups),
    Subnets(Subnets),
    Releases(Releases),
    Images(Images),
    Parameters(Parameters),
    Roles(Roles),
    Timing(Timing),
    ZonalShifts(ZonalShifts),
}

impl Command {
    /// The order of a path and its body.
    pub fn parse(path: &str, body: &[u8]) -> Result<Self, CommandError> {
        let unreadable = |error: serde_json::Error| CommandError::Unreadable(error.to_string());
        let body: Value = if body.is_empty() {
            json!({})
        } else {
            serde_json::from_slice(body).map_err(unreadable)?
        };
        serde_json::from_value(json!({path: body})).map_err(|error| {
            if error.to_string().starts_with("unknown variant") {
                CommandError::Unknown(path.to_owned())
            } else {
                unreadable(error)
            }
        })
    }

    /// Carries the order out and tells what it made.
    pub fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        match self {
            Command::Capacity(order) => order.carry_out(state, now),
            Command::Prices(order) => order.carry_out(state, now),
            Command::Interruptions(order) => order.carry_out(state, now),
            Command::Messages(order) => order.carry_out(state, now),
            Command::InstanceStatus(order) => order.carry_out(state, now),
            Command::Throttling(order) => order.carry_out(state, now),
            Command::Faults(order) => order.carry_out(state, now),
            Command::ClearFaults(order) => order.carry_out(state, now),
            Command::Policy(order) => order.carry_out(state, now),
            Command::Reservations(order) => order.carry_out(state, now),
            Command::PlacementGroups(order) => order.carry_out(state, now),
            Command::Subnets(order) => order.carry_out(state, now),
            Command::Releases(order) => order.carry_out(state, now),
            Command::Images(order) => order.carry_out(state, now),
            Command::Parameters(order) => order.carry_out(state, now),
            Command::Roles(order) => order.carry_out(state, now),
            Command::Timing(order) => order.carry_out(state, now),
            Command::ZonalShifts(order) => order.carry_out(state, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Plan;

    fn order(state: &mut State, path: &str, body: &Value) -> Result<Value, String> {
        let command = Command::parse(path, body.to_string().as_bytes());
        let outcome = command.and_then(|command| command.carry_out(state, Timestamp::UNIX_EPOCH));
        outcome.map_err(|error| error.to_string())
    }

    #[test]
    fn orders_that_cannot_be_followed_say_why() {
        let mut state = State::new(Plan::new("us-west-2", "demo"), Timestamp::UNIX_EPOCH);
        let table = [
            ("weather", json!({}), "there is no order weather"),
            (
                "interruptions",
                json!({"kind": "spot", "instance": "i-1"}),
                "there is no instance i-1",
            ),
            (
                "instance-status",
                json!({"instance": "i-1"}),
                "there is no instance i-1",
            ),
            (
                "prices",
                json!({"instanceType": "m99.large"}),
                "there is no instance type m99.large",
            ),
            (
                "subnets",
                json!({"subnet": "us-west-2d"}),
                "there is no subnet us-west-2d",
            ),
            (
                "policy",
                json!({"document": {}}),
                "the order cannot be read: the policy has no statements",
            ),
        ];
        for (path, body, expected) in table {
            assert_eq!(order(&mut state, path, &body), Err(expected.to_owned()), "{path}");
        }
        let misspelt = order(&mut state, "capacity", &json!({"availible": 1})).expect_err("no such field");
        assert!(misspelt.contains("unknown field `availible`"), "{misspelt}");
    }

    #[test]
    fn a_script_is_a_list_of_orders() {
        let script = "
            - capacity: {instanceType: m5.large, available: 0}
            - timing: {boot: 0.5}
            - reservations: {instanceType: m5.large, zone: us-west-2a, count: 2}
            - clear-faults: {}";
        let commands: Vec<Command> = serde_saphyr::from_str(script).expect("a script");
        let mut state = State::new(Plan::new("us-west-2", "demo"), Timestamp::UNIX_EPOCH);
        for command in commands {
            command.carry_out(&mut state, Timestamp::UNIX_EPOCH).expect("an order");
        }
        assert_eq!(state.region.timing.boot.as_millis(), 500);
        assert_eq!(state.region.reservations.len(), 1);
    }
}
