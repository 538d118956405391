//! What waits to be packed, sorted so that a machine passes over whatever it has no room or no use for.
//!
//! Thousands of different pods come in a few sizes, and in a few flavours: what they demand of the machine and which
//! rules over hosts look at them. Where a size does not fit, none of its items does. Where a flavour is not welcome, no
//! size of it is, and since machines only get fuller and narrower while they are filled, it never will be.

use rustc_hash::FxHashMap;

use super::items::{Item, Kind};
use crate::amounts::Amounts;

/// Items that are placed beside others, by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelves {
    /// The dearest first.
    pub all: Vec<Shelf>,
    pub flavours: usize,
}

/// Items of one size.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub amounts: Amounts,
    /// With their flavours; those that have cost the most for their size come first.
    pub items: Vec<(usize, usize)>,
    /// The least amounts of this shelf and all that follow: who has no room for these need not look further.
    pub least: Amounts,
}

impl Shelves {
    pub fn new(items: &[Item]) -> Self {
        let mut shelves = Self::default();
        let mut sizes: FxHashMap<&Amounts, usize> = FxHashMap::default();
        let mut flavours: FxHashMap<_, usize> = FxHashMap::default();
        // Bundles begin machines and never join one.
        for (number, item) in items.iter().enumerate().filter(|(_, item)| item.kind.bundle.is_none()) {
            let Kind {
                amounts,
                demand,
                ports,
                asks,
                counts,
                ..
            } = &item.kind;
            let next = flavours.len();
            let flavour = *flavours.entry((demand, ports, asks, counts)).or_insert(next);
            let shelf = *sizes.entry(amounts).or_insert_with(|| {
                shelves.all.push(Shelf {
                    amounts: amounts.clone(),
                    items: Vec::new(),
                    least: amounts.clone(),
                });
                shelves.all.len() - 1
            });
            shelves.all[shelf].items.push((number, flavour));
        }
        shelves.flavours = flavours.len();
        shelves
    }

    /// Puts what is worth most first.
    pub fn sort(&mut self, values: &[f64]) {
        for shelf in &mut self.all {
            shelf
                .items
                .sort_by(|(a, _), (b, _)| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
        }
        let first = |shelf: &Shelf| shelf.items[0].0;
        self.all.sort_by(|a, b| {
            values[first(b)]
                .total_cmp(&values[first(a)])
                .then(first(a).cmp(&first(b)))
        });
        let mut least: Option<Amounts> = None;
        for shelf in self.all.iter_mut().rev() {
            let mut amounts = shelf.amounts.clone();
            for (amount, other) in amounts.iter_mut().zip(least.iter().flatten()) {
                *amount = (*amount).min(*other);
            }
            shelf.least = amounts.clone();
            least = Some(amounts);
        }
    }

    /// Clears away what has been packed.
    pub fn tidy(&mut self, waiting: &[usize]) {
        for shelf in &mut self.all {
            shelf.items.retain(|(item, _)| waiting[*item] > 0);
        }
        self.all.retain(|shelf| !shelf.items.is_empty());
    }
}
