//! A machine while it is being filled, in thought.

use model::pod::HostPort;
use smallvec::SmallVec;

use super::items::{Item, Kind};
use crate::{
    amounts::Amounts,
    rules::ports_clash,
    states::State,
    topology::{Group, Rule},
};

/// A machine of one instance type with some pods on it.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    /// What it is filled as.
    pub row: usize,
    pub state: State,
    /// With what every node costs beside its price.
    pub price: f64,
    pub used: Amounts,
    /// What everything on it is worth together.
    pub value: f64,
    /// Items with the number of units taken, in the order of their numbers.
    pub taken: Tally<usize>,
    pub ports: Vec<HostPort>,
    /// How many pods the rules over hosts count here.
    counted: Tally<u32>,
}

/// How many there are of each number, in the order of the numbers: a large machine holds pods of a thousand workloads.
type Tally<C> = SmallVec<[(usize, C); 8]>;

fn place<C>(tally: &Tally<C>, number: usize) -> Result<usize, usize> {
    tally.binary_search_by_key(&number, |(known, _)| *known)
}

impl Filling {
    pub fn new(row: usize, state: State, price: f64, dims: usize) -> Self {
        Self {
            row,
            state,
            price,
            used: Amounts::from_elem(0, dims),
            value: 0.0,
            taken: SmallVec::new(),
            ports: Vec::new(),
            counted: SmallVec::new(),
        }
    }

    /// What a unit of worth costs here.
    pub fn ratio(&self) -> f64 {
        self.price / self.value
    }

    pub fn take(&mut self, number: usize, item: &Item, units: usize, value: f64) {
        let kind = &item.kind;
        for (used, amount) in self.used.iter_mut().zip(&kind.amounts) {
            *used += amount * i64::try_from(units).unwrap_or(i64::MAX);
        }
        self.value += value * units as f64;
        self.ports.extend(kind.ports.iter().cloned());
        for group in &kind.counts {
            let more = u32::try_from(units).unwrap_or(u32::MAX);
            match place(&self.counted, *group) {
                Ok(at) => self.counted[at].1 = self.counted[at].1.saturating_add(more),
                Err(at) => self.counted.insert(at, (*group, more)),
            }
        }
        match place(&self.taken, number) {
            Ok(at) => self.taken[at].1 += units,
            Err(at) => self.taken.insert(at, (number, units)),
        }
    }

    /// How many units fit beside what is used.
    pub fn copies(&self, amounts: &[i64], room: &[i64]) -> usize {
        copies(amounts, &self.used, room)
    }

    /// How many units the rules over hosts and the ports allow. Once it is none, it stays none.
    pub fn welcome(&self, groups: &[Group], kind: &Kind, most: usize) -> usize {
        let mut most = most;
        if !kind.ports.is_empty() {
            if ports_clash(&kind.ports, &self.ports) {
                return 0;
            }
            most = 1;
        }
        for (number, counts_self) in &kind.asks {
            let here = place(&self.counted, *number).map_or(0, |at| self.counted[at].1);
            let alone = kind.counts.contains(number);
            match groups[*number].identity.rule {
                Rule::Spread { max_skew, .. } => {
                    let room = max_skew.saturating_add(u32::from(!counts_self)).saturating_sub(here) as usize;
                    // Whoever is not counted does not fill the host up.
                    most = most.min(if *counts_self || alone {
                        room
                    } else {
                        room.min(1) * most
                    });
                }
                Rule::AntiAffinity => {
                    if here > 0 {
                        return 0;
                    }
                    if alone {
                        most = most.min(1);
                    }
                }
                Rule::Affinity => {}
            }
        }
        most
    }
}

/// How many units fit beside what is used.
pub(super) fn copies(amounts: &[i64], used: &[i64], room: &[i64]) -> usize {
    let three = || amounts.iter().zip(used).zip(room);
    // Most of those who are asked do not fit at all, and a comparison is cheaper than a division.
    if three().any(|((amount, used), room)| *amount > room - used) {
        return 0;
    }
    let mut most = usize::MAX;
    for ((amount, used), room) in three() {
        if *amount > 0 {
            most = most.min(usize::try_from((room - used) / amount).unwrap_or(0));
        }
    }
    most
}
