//! Capacity reservations and placement groups.

use jiff::Timestamp;

use super::{Tags, filter::Filtered, market::Capacity};

#[derive(Clone, Debug)]
pub struct Reservation {
    pub id: String,
    pub arn: String,
    pub owner: String,
    pub instance_type: String,
    pub zone: String,
    pub zone_id: String,
    /// `open` or `targeted`.
    pub match_criteria: String,
    /// `default` or `capacity-block`.
    pub kind: String,
    pub interruptible: bool,
    pub total: u32,
    pub available: u32,
    pub started: Timestamp,
    pub ends: Option<Timestamp>,
    pub tags: Tags,
}

impl Reservation {
    pub fn state(&self, now: Timestamp) -> &'static str {
        match self.ends {
            Some(end) if end <= now => "expired",
            _ => "active",
        }
    }

    /// Whether requests for this capacity can be served from it: blocks and interruptible reservations have their own.
    pub fn serves(&self, capacity: Capacity) -> bool {
        match capacity {
            Capacity::OnDemand => self.kind == "default" && !self.interruptible,
            Capacity::CapacityBlock => self.kind == "capacity-block",
            Capacity::Interruptible => self.interruptible,
            Capacity::Spot => false,
        }
    }
}

/// A reservation as the filters of one moment see it.
#[derive(Debug)]
pub struct Standing<'a> {
    pub reservation: &'a Reservation,
    pub now: Timestamp,
}

impl Filtered for Standing<'_> {
    fn tags(&self) -> &Tags {
        &self.reservation.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let reservation = self.reservation;
        let value = match name {
            "state" => reservation.state(self.now).to_owned(),
            "owner-id" => reservation.owner.clone(),
            "instance-type" => reservation.instance_type.clone(),
            "instance-match-criteria" => reservation.match_criteria.clone(),
            "availability-zone" => reservation.zone.clone(),
            "availability-zone-id" => reservation.zone_id.clone(),
            "reservation-type" => reservation.kind.clone(),
            "tenancy" => "default".to_owned(),
            _ => return None,
        };
        Some(vec![value])
    }
}

#[derive(Clone, Debug)]
pub struct PlacementGroup {
    pub id: String,
    pub name: String,
    /// `cluster`, `partition` or `spread`.
    pub strategy: String,
    pub partitions: u32,
    /// `rack` or `host`, where the strategy is `spread`.
    pub spread_level: Option<String>,
    pub tags: Tags,
}

/// So many instances fit into a spread group in one zone.
pub const SPREAD_LIMIT: usize = 7;

impl Filtered for PlacementGroup {
    fn tags(&self) -> &Tags {
        &self.tags
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        let value = match name {
            "state" => "available".to_owned(),
            "strategy" => self.strategy.clone(),
            "group-name" => self.name.clone(),
            _ => return None,
        };
        Some(vec![value])
    }
}
