//! Reserved capacity: how many instances each reservation still holds, and which planned machine has taken one.
//!
//! A launch that may use several reservations takes a place in all of them, because any of them may be the one that is
//! used. So no reservation is ever promised to more machines than it holds.

use std::{collections::BTreeSet, sync::Arc};

use model::{CapacityType, InstanceType, LabelValue, Offering, Vocabulary};
use rustc_hash::FxHashMap;

/// The reservations that offerings have named so far.
#[derive(Clone, Debug)]
pub(crate) struct Reservations<'a> {
    vocabulary: &'a Vocabulary,
    left: FxHashMap<LabelValue, u32>,
}

/// The reservations in which a launch has a place.
pub(crate) type Held = BTreeSet<LabelValue>;

impl<'a> Reservations<'a> {
    /// Where several offerings share a reservation, the smallest number counts, whoever can use them.
    pub fn new(vocabulary: &'a Vocabulary, kinds: &[&Arc<InstanceType>]) -> Self {
        let mut reservations = Self {
            vocabulary,
            left: FxHashMap::default(),
        };
        for offering in kinds.iter().flat_map(|kind| &kind.offerings) {
            if let Some(id) = reservations.id_of(offering) {
                let capacity = offering.reservation_capacity.unwrap_or(0);
                let left = reservations.left.entry(id).or_insert(capacity);
                *left = (*left).min(capacity);
            }
        }
        reservations
    }

    /// Which reservation an offering draws on.
    pub fn id_of(&self, offering: &Offering) -> Option<LabelValue> {
        if offering.capacity_type != CapacityType::Reserved {
            return None;
        }
        let key = self.vocabulary.reservation_id.as_ref()?;
        offering.requirements.get(key.as_str()).single().cloned()
    }

    pub fn has_place(&self, id: &LabelValue, held: &Held) -> bool {
        held.contains(id) || self.left.get(id).is_some_and(|left| *left > 0)
    }

    /// Gives up what is held and not wanted any more, and takes what is wanted and not held yet.
    pub fn exchange(&mut self, held: &mut Held, wanted: Held) {
        for id in held.difference(&wanted) {
            *self.left.entry(id.clone()).or_default() += 1;
        }
        for id in wanted.difference(held) {
            let left = self.left.entry(id.clone()).or_default();
            debug_assert!(*left > 0, "reservation {id} has no place left");
            *left = left.saturating_sub(1);
        }
        *held = wanted;
    }
}
