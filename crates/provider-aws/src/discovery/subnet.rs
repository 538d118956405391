//! How many addresses the subnets have left, launches under way included.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::ports::SubnetInfo;

/// Free addresses by subnet.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// As EC2 told, and until when that is to be believed.
    counted: BTreeMap<String, Count>,
    /// What is left when launches since then are taken into account.
    in_flight: BTreeMap<String, i64>,
    ttl: SignedDuration,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    addresses: i64,
    at: Timestamp,
    until: Timestamp,
}

/// What a launch has taken in advance, to be given back for the subnets that it did not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deduction {
    taken: BTreeMap<String, (i64, Option<Timestamp>)>,
}

impl Addresses {
    /// `refresh` is how often counts are renewed; they are believed a little longer than that.
    pub fn new(refresh: SignedDuration) -> Self {
        let slack = SignedDuration::from_mins(4);
        let ttl = refresh.saturating_add(slack).max(SignedDuration::from_mins(5));
        Self {
            counted: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            ttl,
        }
    }

    /// Forgets counts that are too old.
    pub fn advance(&mut self, now: Timestamp) {
        self.counted.retain(|_, count| now < count.until);
    }

    /// EC2 has counted.
    pub fn refreshed(&mut self, subnets: &[SubnetInfo], now: Timestamp) {
        let until = now.checked_add(self.ttl).unwrap_or(Timestamp::MAX);
        for subnet in subnets {
            let count = Count {
                addresses: subnet.available_addresses,
                at: now,
                until,
            };
            self.counted.insert(subnet.id.clone(), count);
            self.in_flight.remove(&subnet.id);
        }
    }

    fn left(&self, subnet: &str) -> i64 {
        let counted = || self.counted.get(subnet).map_or(0, |count| count.addresses);
        self.in_flight.get(subnet).copied().unwrap_or_else(counted)
    }

    /// The subnet with the most addresses, the first among equals.
    pub fn roomiest<'a>(&self, subnets: &'a [String]) -> Option<&'a String> {
        let best = subnets.iter().map(|subnet| (subnet, self.left(subnet)));
        best.reduce(|best, next| if next.1 > best.1 { next } else { best })
            .map(|(subnet, _)| subnet)
    }

    /// Takes as many addresses as the smallest node that may come needs.
    pub fn deduct(&mut self, chosen: &BTreeMap<String, i64>) -> Deduction {
        let mut deduction = Deduction::default();
        for (subnet, amount) in chosen {
            let left = self.left(subnet) - amount;
            self.in_flight.insert(subnet.clone(), left);
            let counted_at = self.counted.get(subnet).map(|count| count.at);
            deduction.taken.insert(subnet.clone(), (*amount, counted_at));
        }
        deduction
    }

    /// Gives back what the launch did not use. A count that was renewed meanwhile knows better.
    pub fn give_back(&mut self, deduction: &Deduction, used: Option<&str>) {
        for (subnet, (amount, counted_at)) in &deduction.taken {
            let is_current = self.counted.get(subnet).map(|count| count.at) == *counted_at;
            if let Some(left) = self
                .in_flight
                .get_mut(subnet)
                .filter(|_| is_current && used != Some(subnet))
            {
                *left += amount;
            }
        }
    }

    /// EC2 said that the subnet is full.
    pub fn exhausted(&mut self, subnet: &str) {
        self.in_flight.remove(subnet);
        if let Some(count) = self.counted.get_mut(subnet) {
            count.addresses = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn counted(pairs: &[(&str, i64)]) -> Vec<SubnetInfo> {
        let subnet = |(id, addresses): &(&str, i64)| SubnetInfo {
            id: (*id).to_owned(),
            available_addresses: *addresses,
            ..SubnetInfo::default()
        };
        pairs.iter().map(subnet).collect()
    }

    /// AW24.11.7, AW24.11.22
    #[test]
    fn launches_between_counts_move_to_the_other_subnet() {
        let both = ["s1".to_owned(), "s2".to_owned()];
        let mut addresses = Addresses::new(SignedDuration::from_mins(1));
        addresses.refreshed(&counted(&[("s1", 50), ("s2", 40)]), at(0));
        assert_eq!(addresses.roomiest(&both).unwrap(), "s1");
        let one = addresses.deduct(&[("s1".to_owned(), 11)].into());
        assert_eq!(addresses.roomiest(&both).unwrap(), "s2");
        addresses.give_back(&one, None);
        assert_eq!(addresses.roomiest(&both).unwrap(), "s1", "a failed launch gives back");
        let two = addresses.deduct(&[("s1".to_owned(), 11)].into());
        addresses.give_back(&two, Some("s1"));
        assert_eq!(addresses.roomiest(&both).unwrap(), "s2", "what was used stays taken");
        addresses.refreshed(&counted(&[("s1", 45), ("s2", 40)]), at(60));
        addresses.give_back(&two, None);
        assert_eq!(addresses.left("s1"), 45, "a new count knows better");
        addresses.exhausted("s1");
        assert_eq!(addresses.roomiest(&both).unwrap(), "s2");
        addresses.advance(at(60 + 301));
        assert_eq!(addresses.left("s2"), 0, "old counts are not believed");
    }
}
