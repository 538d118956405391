//! What there is in the region, and how long things take there.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommandError, Order, missing};
use crate::{
    fake::State,
    region::{
        Tags, ZonalShift, ids,
        images::{Image, Release},
        market::fact,
        network::zone_id,
        reserved::{PlacementGroup, Reservation},
    },
};

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reservations {
    id: Option<String>,
    instance_type: String,
    zone: String,
    count: u32,
    #[serde(default = "open")]
    match_criteria: String,
    /// `default` or `capacity-block`.
    #[serde(default = "plain")]
    kind: String,
    #[serde(default)]
    interruptible: bool,
    ends: Option<Timestamp>,
    owner: Option<String>,
    #[serde(default)]
    tags: Tags,
}

fn open() -> String {
    "open".to_owned()
}

fn plain() -> String {
    "default".to_owned()
}

impl Order for Reservations {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        fact(&self.instance_type).ok_or_else(|| missing("instance type", &self.instance_type))?;
        let region = &mut state.region;
        let id = self.id.unwrap_or_else(|| region.new_id("cr"));
        let plan = &region.plan;
        let letter = self.zone.chars().next_back();
        let reservation = Reservation {
            id: id.clone(),
            arn: format!("arn:aws:ec2:{}:{}:capacity-reservation/{id}", plan.region, plan.account),
            owner: self.owner.unwrap_or_else(|| plan.account.clone()),
            zone_id: letter.map(|letter| zone_id(&plan.region, letter)).unwrap_or_default(),
            instance_type: self.instance_type,
            zone: self.zone,
            match_criteria: self.match_criteria,
            kind: self.kind,
            interruptible: self.interruptible,
            total: self.count,
            available: self.count,
            started: now,
            ends: self.ends,
            tags: self.tags,
        };
        region.reservations.insert(id.clone(), reservation);
        Ok(json!({"id": id}))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlacementGroups {
    id: Option<String>,
    name: String,
    strategy: String,
    #[serde(default)]
    partitions: u32,
    spread_level: Option<String>,
    #[serde(default)]
    tags: Tags,
}

impl Order for PlacementGroups {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let id = self.id.unwrap_or_else(|| state.region.new_id("pg"));
        let group = PlacementGroup {
            id: id.clone(),
            name: self.name,
            strategy: self.strategy,
            partitions: self.partitions,
            spread_level: self.spread_level,
            tags: self.tags,
        };
        state.region.placement_groups.insert(id.clone(), group);
        Ok(json!({"id": id}))
    }
}

/// Changes how many addresses a subnet has left, or its tags; removes it where asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subnets {
    /// An id or a zone.
    subnet: String,
    available: Option<u32>,
    #[serde(default)]
    tags: Tags,
    #[serde(default)]
    remove: bool,
}

impl Order for Subnets {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let subnets = &mut state.region.network.subnets;
        let place = subnets
            .iter()
            .position(|known| known.id == self.subnet || known.zone == self.subnet);
        let place = place.ok_or_else(|| missing("subnet", &self.subnet))?;
        if self.remove {
            subnets.remove(place);
        } else {
            let known = &mut subnets[place];
            known.available = self.available.unwrap_or(known.available);
            known.tags.extend(self.tags);
        }
        Ok(json!({}))
    }
}

/// Publishes a newer image of every family.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Releases {
    /// `20260401`.
    date: String,
    /// `1.60.0`.
    bottlerocket: String,
}

impl Order for Releases {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        state.region.images.publish(&Release {
            date: self.date,
            bottlerocket: self.bottlerocket,
        });
        Ok(json!({}))
    }
}

/// An image of the account's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    name: String,
    #[serde(default = "x86")]
    architecture: String,
    #[serde(default)]
    tags: Tags,
    deprecated: Option<Timestamp>,
}

fn x86() -> String {
    "x86_64".to_owned()
}

impl Order for Images {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        let id = ids::named("ami", &self.name);
        let image = Image {
            id: id.clone(),
            owner: state.region.plan.account.clone(),
            owner_alias: None,
            windows: false,
            created: now,
            name: self.name,
            architecture: self.architecture,
            deprecated: self.deprecated,
            tags: self.tags,
        };
        state.region.images.by_id.insert(id.clone(), image);
        Ok(json!({"id": id}))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    name: String,
    value: String,
}

impl Order for Parameters {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        state.region.images.parameters.insert(self.name, self.value);
        Ok(json!({}))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    name: String,
}

impl Order for Roles {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        state.region.add_role(&self.name, now);
        Ok(json!({}))
    }
}

/// Seconds; what is not named stays.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    boot: Option<f64>,
    join: Option<f64>,
    shutdown: Option<f64>,
    propagation: Option<f64>,
    reclaim: Option<f64>,
}

impl Order for Timing {
    fn carry_out(self, state: &mut State, _: Timestamp) -> Result<Value, CommandError> {
        let timing = &mut state.region.timing;
        for (slot, seconds) in [
            (&mut timing.boot, self.boot),
            (&mut timing.join, self.join),
            (&mut timing.shutdown, self.shutdown),
            (&mut timing.propagation, self.propagation),
            (&mut timing.reclaim, self.reclaim),
        ] {
            if let Some(seconds) = seconds {
                let bad = |_| CommandError::Unreadable(format!("{seconds} are no seconds"));
                *slot = SignedDuration::try_from_secs_f64(seconds).map_err(bad)?;
            }
        }
        Ok(json!({}))
    }
}

/// Moves the cluster away from a zone for so many seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonalShifts {
    /// `usw2-az1`.
    zone: String,
    seconds: i64,
}

impl Order for ZonalShifts {
    fn carry_out(self, state: &mut State, now: Timestamp) -> Result<Value, CommandError> {
        let region = &mut state.region;
        let shift = ZonalShift {
            id: region.new_id("shift"),
            zone_id: self.zone,
            started: now,
            expires: now + SignedDuration::from_secs(self.seconds),
        };
        region.shifts.retain(|old| old.zone_id != shift.zone_id);
        region.shifts.push(shift);
        Ok(json!({}))
    }
}
