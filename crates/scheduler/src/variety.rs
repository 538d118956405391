//! `minValues`: a launch has to leave the cloud a choice.

use std::collections::BTreeSet;

use model::{LabelKey, LabelValue, Requirements};
use rustc_hash::FxHashMap;

use crate::{bits::Bits, market::Row};

/// How many different values of which labels have to be on offer.
#[derive(Clone, Debug)]
pub(crate) struct Variety {
    demands: Vec<Demanded>,
}

#[derive(Clone, Debug)]
struct Demanded {
    key: LabelKey,
    least: u32,
    /// For each row the numbers of the values that its type lists.
    values: Vec<Vec<usize>>,
}

impl Variety {
    pub fn none() -> Self {
        Self { demands: Vec::new() }
    }

    pub fn new(requirements: &Requirements, rows: &[Row<'_>]) -> Self {
        let demanded = |requirement: &model::Requirement| {
            let least = requirement.min_values?;
            let mut numbers: FxHashMap<&LabelValue, usize> = FxHashMap::default();
            let values = rows.iter().map(|row| {
                let listed = row.kind.requirements.get(requirement.key.as_str()).listed();
                let numbered = listed.into_iter().flatten().map(|value| {
                    let next = numbers.len();
                    *numbers.entry(value).or_insert(next)
                });
                numbered.collect()
            });
            Some(Demanded {
                key: requirement.key.clone(),
                least,
                values: values.collect(),
            })
        };
        Self {
            demands: requirements.iter().filter_map(demanded).collect(),
        }
    }

    pub fn is_demanded(&self) -> bool {
        !self.demands.is_empty()
    }

    /// Labels of which these rows offer too few values: key, wanted, available.
    pub fn lacking(&self, rows: &Bits) -> Vec<(LabelKey, u32, u32)> {
        let short = self.demands.iter().filter_map(|demanded| {
            let available = demanded.available(rows.iter());
            (available < demanded.least).then(|| (demanded.key.clone(), demanded.least, available))
        });
        short.collect()
    }

    /// Whether these rows offer enough.
    pub fn suffices(&self, rows: &Bits) -> bool {
        self.demands
            .iter()
            .all(|demanded| demanded.available(rows.iter()) >= demanded.least)
    }

    /// The same demands, lowered to what there is.
    #[must_use]
    pub fn lowered(&self, rows: &Bits) -> Self {
        let mut lowered = self.clone();
        for demanded in &mut lowered.demands {
            demanded.least = demanded.least.min(demanded.available(rows.iter()));
        }
        lowered
    }

    /// Each label with the number of values that have to be on offer.
    pub fn demands(&self) -> impl Iterator<Item = (&LabelKey, u32)> {
        self.demands.iter().map(|demanded| (&demanded.key, demanded.least))
    }
}

impl Demanded {
    fn available(&self, rows: impl Iterator<Item = usize>) -> u32 {
        let values: BTreeSet<usize> = rows.flat_map(|row| self.values[row].iter().copied()).collect();
        u32::try_from(values.len()).unwrap_or(u32::MAX)
    }
}
