//! What could not be had lately.
//!
//! A launch that found an offering short says so here, and plans keep away from it for a while. The first time that is three
//! minutes, as with upstream. An offering that is short again soon after it was tried again rests twice as long, up to a
//! bound; one that has been quiet for long starts over.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use model::CapacityType;

const FIRST_REST: SignedDuration = SignedDuration::from_mins(3);
const LONGEST_REST: SignedDuration = SignedDuration::from_mins(24);
/// A shortage that long after the end of the last one is a new one.
const QUIET: SignedDuration = SignedDuration::from_mins(30);

/// A type in a zone, bought in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot<'a> {
    pub capacity_type: CapacityType,
    pub instance_type: &'a str,
    pub zone: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Offering {
        instance_type: String,
        zone: String,
        capacity_type: CapacityType,
        /// The placement group in which the offering is short; everywhere when absent.
        group: Option<String>,
        /// The partition of the group in which the offering is short; in all of them when absent.
        partition: Option<u32>,
    },
    CapacityType(CapacityType),
    Subnet(String),
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Timestamp,
    length: SignedDuration,
}

/// What is short at one moment. [`Shortages::advance`] moves the moment.
#[derive(Clone, Debug, Default)]
pub struct Shortages {
    now: Timestamp,
    resting: BTreeMap<Key, Rest>,
    /// What has rested and may be tried again, with how long it rested last.
    tried_again: BTreeMap<Key, Rest>,
    /// Grows with every change, so that what was computed from an older state can be told.
    by_type: BTreeMap<String, u64>,
    overall: u64,
}

impl Shortages {
    /// Ends what is over.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        let over: Vec<Key> = self
            .resting
            .iter()
            .filter(|(_, rest)| rest.until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            self.bump(&key);
            if let Some(rest) = self.resting.remove(&key) {
                self.tried_again.insert(key, rest);
            }
        }
        self.tried_again
            .retain(|_, rest| now.duration_since(rest.until) < QUIET);
    }

    /// Changes whenever the answers for this type may.
    pub fn sequence(&self, instance_type: &str) -> u64 {
        self.overall + self.by_type.get(instance_type).copied().unwrap_or(0)
    }

    /// Changes whenever any answer may.
    pub fn version(&self) -> u64 {
        self.overall + self.by_type.values().sum::<u64>()
    }

    pub fn mark(&mut self, spot: Spot<'_>, group: Option<&str>) {
        self.rest(offering(spot, group, None));
    }

    /// One partition of a group has no room; others may.
    pub fn mark_partition(&mut self, spot: Spot<'_>, group: &str, partition: u32) {
        self.rest(offering(spot, Some(group), Some(partition)));
    }

    pub fn mark_capacity_type(&mut self, capacity_type: CapacityType) {
        self.rest(Key::CapacityType(capacity_type));
    }

    pub fn mark_subnet(&mut self, subnet: &str) {
        self.rest(Key::Subnet(subnet.to_owned()));
    }

    /// Whether the offering is short for a buyer with these subnets in the zone, inside this placement group.
    pub fn is_short(&self, spot: Spot<'_>, subnets: &[String], group: Option<&str>) -> bool {
        if self.resting.is_empty() {
            return false;
        }
        let is_resting = |key: &Key| self.resting.contains_key(key);
        let subnets_full =
            || !subnets.is_empty() && subnets.iter().all(|subnet| is_resting(&Key::Subnet(subnet.clone())));
        is_resting(&offering(spot, None, None))
            || group.is_some() && is_resting(&offering(spot, group, None))
            || is_resting(&Key::CapacityType(spot.capacity_type))
            || subnets_full()
    }

    /// Whether the offering is short in this partition of the group, beyond what is short in all of them.
    pub fn is_partition_short(&self, spot: Spot<'_>, group: &str, partition: u32) -> bool {
        !self.resting.is_empty() && self.resting.contains_key(&offering(spot, Some(group), Some(partition)))
    }

    fn rest(&mut self, key: Key) {
        let length = match (self.resting.get(&key), self.tried_again.get(&key)) {
            (Some(rest), _) => rest.length,
            (None, Some(rest)) => (rest.length * 2).min(LONGEST_REST),
            (None, None) => FIRST_REST,
        };
        self.tried_again.remove(&key);
        self.bump(&key);
        // The clock of a machine does not reach the end of representable time.
        let until = self.now.checked_add(length).unwrap_or(Timestamp::MAX);
        self.resting.insert(key, Rest { until, length });
    }

    fn bump(&mut self, key: &Key) {
        match key {
            Key::Offering { instance_type, .. } => *self.by_type.entry(instance_type.clone()).or_default() += 1,
            Key::CapacityType(_) | Key::Subnet(_) => self.overall += 1,
        }
    }
}

fn offering(spot: Spot<'_>, group: Option<&str>, partition: Option<u32>) -> Key {
    Key::Offering {
        instance_type: spot.instance_type.to_owned(),
        zone: spot.zone.to_owned(),
        capacity_type: spot.capacity_type,
        group: group.map(str::to_owned),
        partition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M5: Spot<'static> = Spot {
        capacity_type: CapacityType::Spot,
        instance_type: "m5.large",
        zone: "a",
    };

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    /// AW24.10.4
    #[test]
    fn exactly_what_was_marked_is_short() {
        let mut shortages = Shortages::default();
        shortages.mark(M5, None);
        let short = |shortages: &Shortages, spot, subnets: &[&str]| {
            let subnets: Vec<String> = subnets.iter().map(|id| (*id).to_owned()).collect();
            shortages.is_short(spot, &subnets, None)
        };
        assert!(short(&shortages, M5, &[]));
        assert!(!short(&shortages, Spot { zone: "b", ..M5 }, &[]));
        let on_demand = Spot {
            capacity_type: CapacityType::OnDemand,
            ..M5
        };
        assert!(!short(&shortages, on_demand, &[]));
        shortages.mark_subnet("s1");
        assert!(!short(&shortages, on_demand, &["s1", "s2"]), "one subnet is left");
        assert!(short(&shortages, on_demand, &["s1"]));
        shortages.mark_capacity_type(CapacityType::OnDemand);
        assert!(short(&shortages, on_demand, &["s1", "s2"]));
    }

    #[test]
    fn a_shortage_inside_a_placement_group_stays_inside() {
        let mut shortages = Shortages::default();
        shortages.mark(M5, Some("pg-1"));
        assert!(shortages.is_short(M5, &[], Some("pg-1")));
        assert!(!shortages.is_short(M5, &[], Some("pg-2")));
        assert!(!shortages.is_short(M5, &[], None));
        shortages.mark_partition(M5, "pg-2", 1);
        assert!(!shortages.is_short(M5, &[], Some("pg-2")), "other partitions have room");
        assert!(shortages.is_partition_short(M5, "pg-2", 1));
        assert!(!shortages.is_partition_short(M5, "pg-2", 2));
        assert!(!shortages.is_partition_short(M5, "pg-1", 1));
        shortages.mark(M5, None);
        assert!(
            shortages.is_short(M5, &[], Some("pg-2")),
            "short everywhere is short in every group"
        );
    }

    /// AW24.10.3, AW24.10.5
    #[test]
    fn rests_end_and_grow_when_the_next_try_fails_too() {
        let mut shortages = Shortages::default();
        shortages.mark(M5, None);
        let first = shortages.sequence("m5.large");
        shortages.advance(at(2));
        shortages.mark(M5, None);
        shortages.advance(at(4));
        assert!(shortages.is_short(M5, &[], None), "marking again extends the rest");
        shortages.advance(at(5));
        assert!(!shortages.is_short(M5, &[], None));
        assert!(shortages.sequence("m5.large") > first + 1, "marks and ends count");
        assert_eq!(shortages.sequence("c5.large"), 0, "other types are not concerned");

        shortages.mark(M5, None);
        shortages.advance(at(10));
        assert!(shortages.is_short(M5, &[], None), "twice as long the second time");
        shortages.advance(at(11));
        assert!(!shortages.is_short(M5, &[], None));
        shortages.advance(at(50));
        shortages.mark(M5, None);
        shortages.advance(at(53));
        assert!(!shortages.is_short(M5, &[], None), "after a quiet time it starts over");
        let before = shortages.sequence("c5.large");
        shortages.mark_subnet("s1");
        assert!(shortages.sequence("c5.large") > before, "subnets concern every type");
    }
}
