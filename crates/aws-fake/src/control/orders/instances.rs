//! What happens to instances, and what the queue tells.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Order, missing};
use crate::{
    fake::State,
    region::{Region, instances::ScheduledEvent, notices::Warning},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Spot,
    Reservation,
    Rebalance,
    ScheduledChange,
    /// The instance ends as if somebody had terminated it by hand.
    Terminate,
}

/// Warns an instance as AWS does, through the queue; interrupted ones end after two minutes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interruptions {
    kind: Kind,
    instance: String,
}

impl Order for Interruptions {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        let region = &mut state.region;
        if !region.instances.contains_key(&self.instance) {
            return Err(missing("instance", &self.instance));
        }
        let warning = match self.kind {
            Kind::Spot => Warning::SpotInterruption,
            Kind::Reservation => Warning::ReservationInterruption,
            Kind::Rebalance => Warning::Rebalance,
            Kind::ScheduledChange => Warning::ScheduledChange,
            Kind::Terminate => {
                let message = "Client.UserInitiatedShutdown: User initiated shutdown";
                region.terminate(&self.instance, "Client.UserInitiatedShutdown", message, now);
                region.advance(now);
                return Ok(json!({}));
            }
        };
        region.warn(&self.instance, warning, now);
        Ok(json!({}))
    }
}

/// Puts any text into the queue, or any object as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Messages {
    body: Value,
}

impl Order for Messages {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        let body = self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned);
        Ok(json!({"id": state.region.send(body, now)}))
    }
}

/// What DescribeInstanceStatus tells of an instance; what is not named becomes well again.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceStatus {
    instance: String,
    #[serde(default)]
    instance_impaired: bool,
    #[serde(default)]
    system_impaired: bool,
    /// Codes of scheduled events.
    #[serde(default)]
    events: Vec<String>,
    /// Since when, counted backwards.
    #[serde(default)]
    seconds_ago: i64,
}

impl Order for InstanceStatus {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        let since = now - SignedDuration::from_secs(self.seconds_ago);
        let events = self
            .events
            .into_iter()
            .map(|code| scheduled(&mut state.region, code, now))
            .collect();
        let found = state.region.instances.get_mut(&self.instance);
        let health = &mut found.ok_or_else(|| missing("instance", &self.instance))?.health;
        health.instance_impaired_since = self.instance_impaired.then_some(since);
        health.system_impaired_since = self.system_impaired.then_some(since);
        health.events = events;
        Ok(json!({}))
    }
}

fn scheduled(region: &mut Region, code: String, now: Timestamp) -> ScheduledEvent {
    ScheduledEvent {
        id: region.new_id("instance-event"),
        description: format!("The instance is scheduled for {code}"),
        not_before: now + SignedDuration::from_hours(24 * 7),
        code,
    }
}
