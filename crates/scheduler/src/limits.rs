//! What a pool may still launch.
//!
//! A launch that may become any of several instance types counts as the worst of them, so that no choice of the cloud
//! exceeds a limit. When later pods narrow the launch, what it no longer can become is given back.

use std::cmp::Reverse;

use model::{Quantity, ResourceName, Resources};

use crate::{bits::Bits, market::Row};

/// The limits of one pool and what is left of them.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    names: Vec<ResourceName>,
    /// Nanounits, since capacities are nobody's demands and have no common unit.
    left: Vec<i128>,
    /// What each row has of the limited resources.
    rows: Vec<Vec<i128>>,
    /// For each limited resource the rows from the largest to the smallest.
    order: Vec<Vec<usize>>,
    nodes: Option<Nodes>,
}

#[derive(Clone, Copy, Debug)]
struct Nodes {
    limit: Quantity,
    left: i128,
}

/// What is left of a pool's limits at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    left: Vec<i128>,
    nodes: Option<Nodes>,
}

/// What a launch counts against the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge(Vec<i128>);

impl Limits {
    /// Nothing for a pool without limits.
    pub fn new(limits: &Resources, used: &Resources, rows: &[Row<'_>]) -> Option<Self> {
        if limits.is_empty() {
            return None;
        }
        let rest = |name: &ResourceName, most: Quantity| most.saturating_sub(used.get(name.as_str())).nanos();
        let nodes = limits.lists(ResourceName::NODES.as_str()).then(|| {
            let limit = limits.get(ResourceName::NODES.as_str());
            Nodes {
                limit,
                left: rest(&ResourceName::NODES, limit),
            }
        });
        let others = limits.iter().filter(|(name, _)| **name != ResourceName::NODES);
        let (names, left): (Vec<_>, Vec<_>) = others.map(|(name, most)| (name.clone(), rest(name, most))).unzip();
        let amounts = |row: &Row<'_>| -> Vec<i128> {
            names
                .iter()
                .map(|name| row.kind.capacity.get(name.as_str()).nanos())
                .collect()
        };
        let rows: Vec<Vec<i128>> = rows.iter().map(amounts).collect();
        let sorted = |dim: usize| {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by_key(|row| Reverse(rows[*row][dim]));
            order
        };
        let order = (0..names.len()).map(sorted).collect();
        Some(Self {
            names,
            left,
            rows,
            order,
            nodes,
        })
    }

    /// The limit on nodes, when there is no node left under it.
    pub fn nodes_exhausted(&self) -> Option<Quantity> {
        let one = Quantity::from_int(1).nanos();
        self.nodes.filter(|nodes| nodes.left < one).map(|nodes| nodes.limit)
    }

    /// Removes the rows that exceed what is left.
    pub fn keep_within(&self, rows: &mut Bits) {
        for (dim, left) in self.left.iter().enumerate() {
            let too_large = self.order[dim].iter().take_while(|row| self.rows[**row][dim] > *left);
            for row in too_large {
                rows.remove(*row);
            }
        }
    }

    /// Removes the rows that have more of any limited resource than this one.
    pub fn keep_no_larger(&self, than: usize, rows: &mut Bits) {
        for (dim, order) in self.order.iter().enumerate() {
            let most = self.rows[than][dim];
            for row in order.iter().take_while(|row| self.rows[**row][dim] > most) {
                rows.remove(*row);
            }
        }
    }

    /// The worst of the rows.
    pub fn charge(&self, rows: &Bits) -> Charge {
        let worst = |dim: usize| {
            let largest = self.order[dim].iter().find(|row| rows.contains(**row));
            largest.map_or(0, |row| self.rows[*row][dim])
        };
        Charge((0..self.names.len()).map(worst).collect())
    }

    /// Counts a new launch.
    pub fn open(&mut self, charge: &Charge) {
        if let Some(nodes) = &mut self.nodes {
            nodes.left -= Quantity::from_int(1).nanos();
        }
        self.exchange(&Charge(vec![0; self.names.len()]), charge);
    }

    /// Takes a launch back.
    pub fn close(&mut self, charge: &Charge) {
        if let Some(nodes) = &mut self.nodes {
            nodes.left += Quantity::from_int(1).nanos();
        }
        self.exchange(charge, &Charge(vec![0; self.names.len()]));
    }

    /// Counts a launch that has become narrower.
    pub fn exchange(&mut self, old: &Charge, new: &Charge) {
        for (left, (old, new)) in self.left.iter_mut().zip(old.0.iter().zip(&new.0)) {
            *left += old - new;
        }
    }

    /// What is left now, to return to later.
    pub fn balance(&self) -> Balance {
        Balance {
            left: self.left.clone(),
            nodes: self.nodes,
        }
    }

    /// Returns to an earlier balance.
    pub fn settle(&mut self, balance: Balance) {
        self.left = balance.left;
        self.nodes = balance.nodes;
    }

    /// A machine that is gone has given back what it had.
    pub fn release(&mut self, capacity: &Resources) {
        for (name, left) in self.names.iter().zip(&mut self.left) {
            *left += capacity.get(name.as_str()).nanos();
        }
        if let Some(nodes) = &mut self.nodes {
            nodes.left += Quantity::from_int(1).nanos();
        }
    }

    /// Whether nothing is overdrawn.
    pub fn hold(&self) -> bool {
        self.left.iter().all(|left| *left >= 0) && self.nodes.is_none_or(|nodes| nodes.left >= 0)
    }

    pub fn left(&self) -> Resources {
        let left = self.names.iter().zip(&self.left);
        left.map(|(name, left)| (name.clone(), Quantity::from_nanos(*left)))
            .collect()
    }
}
