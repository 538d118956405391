//! The labels along which rules count, and the domains that there are.

use std::ops::Index;

use model::{LabelKey, LabelValue, vocabulary};
use rustc_hash::FxHashMap;

use crate::bits::Bits;

/// What a group counts along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    /// Every machine is a domain of its own.
    Host,
    /// The number of a label in [`Keys`].
    Key(usize),
}

/// A label along which some rule counts.
#[derive(Debug)]
pub(crate) struct Key {
    pub label: LabelKey,
    /// All domains, in alphabetical order.
    pub values: Vec<LabelValue>,
    numbers: FxHashMap<LabelValue, usize>,
    /// Domains that a pool can bring, by the pool's position.
    pub pools: Vec<Bits>,
}

impl Key {
    pub fn number(&self, value: &LabelValue) -> Option<usize> {
        self.numbers.get(value).copied()
    }
}

/// All labels along which some rule counts.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    /// `domains` gives the domains of a label: those that each pool can bring, and those that machines have.
    pub fn new(
        labels: impl IntoIterator<Item = LabelKey>,
        domains: impl Fn(&LabelKey) -> (Vec<Vec<LabelValue>>, Vec<LabelValue>),
    ) -> Self {
        let key = |label: LabelKey| {
            let (pools, machines) = domains(&label);
            let mut values: Vec<LabelValue> = pools.iter().flatten().cloned().chain(machines).collect();
            values.sort();
            values.dedup();
            let numbers: FxHashMap<LabelValue, usize> = values
                .iter()
                .enumerate()
                .map(|(number, value)| (value.clone(), number))
                .collect();
            let pools = pools
                .iter()
                .map(|pool| pool.iter().map(|value| numbers[value]).collect())
                .collect();
            Key {
                label,
                values,
                numbers,
                pools,
            }
        };
        Self(labels.into_iter().map(key).collect())
    }

    /// The axis of a topology key that some rule of the round names.
    pub fn axis(&self, topology_key: &str) -> Axis {
        let label = vocabulary::normalized_key(topology_key);
        if label == vocabulary::HOSTNAME {
            return Axis::Host;
        }
        let number = self.0.iter().position(|key| key.label == label);
        Axis::Key(number.expect("every topology key of the round was collected"))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Index<usize> for Keys {
    type Output = Key;

    fn index(&self, number: usize) -> &Key {
        &self.0[number]
    }
}
