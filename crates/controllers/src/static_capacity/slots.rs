//! Room under a pool's limit on nodes, held while a claim is being created.

use std::{collections::BTreeMap, sync::Arc};

use model::PoolName;
use parking_lot::Mutex;

/// How many claims of each pool are on their way into the cluster.
#[derive(Debug, Default)]
pub struct Slots {
    reserved: Mutex<BTreeMap<PoolName, u64>>,
}

/// Room for one claim. It is given back when this is dropped, which has to be after the claim is in the index: counted
/// twice for a moment, a claim cannot break a limit.
#[derive(Debug)]
pub struct Slot {
    pool: PoolName,
    of: Arc<Slots>,
}

impl Slots {
    /// As many slots as are wanted and as the limit leaves. `taken` counts the claims that there are; it is asked while
    /// nobody else can reserve, so that two callers cannot both find the last room.
    pub fn reserve(
        self: &Arc<Self>,
        pool: &PoolName,
        limit: Option<u64>,
        wanted: u64,
        taken: impl FnOnce() -> u64,
    ) -> Vec<Slot> {
        let mut reserved = self.reserved.lock();
        let held = reserved.get(pool).copied().unwrap_or(0);
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(taken()).saturating_sub(held));
        let granted = wanted.min(room);
        if granted == 0 {
            return Vec::new();
        }
        reserved.insert(pool.clone(), held + granted);
        let slot = |_| Slot {
            pool: pool.clone(),
            of: self.clone(),
        };
        (0..granted).map(slot).collect()
    }

    fn release(&self, pool: &PoolName) {
        let mut reserved = self.reserved.lock();
        if let Some(held) = reserved.get_mut(pool) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                reserved.remove(pool);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.of.release(&self.pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: Option<u64>, taken: u64, reserved: u64, wanted: u64, granted: usize) {
        let slots = Arc::new(Slots::default());
        let held = slots.reserve(&"p".into(), None, reserved, || 0);
        let slots = slots.reserve(&"p".into(), limit, wanted, || taken);
        assert_eq!(slots.len(), granted, "{limit:?} {taken} {reserved} {wanted}");
        drop(held);
    }

    /// LC-S13.
    #[test]
    fn a_grant_is_what_is_wanted_and_what_is_left() {
        check(None, 100, 100, 7, 7);
        check(Some(10), 0, 0, 7, 7);
        check(Some(10), 5, 0, 7, 5);
        check(Some(10), 5, 3, 7, 2);
        check(Some(10), 10, 0, 7, 0);
        check(Some(10), 12, 3, 1, 0);
        check(Some(10), 0, 0, 0, 0);
    }

    /// LC-S14: more releases than reservations leave nothing below zero.
    #[test]
    fn what_is_given_back_can_be_had_again_and_never_more() {
        let slots = Arc::new(Slots::default());
        let pool = PoolName::from("p");
        let held = slots.reserve(&pool, Some(2), 2, || 0);
        assert_eq!(held.len(), 2);
        drop(held);
        slots.release(&pool);
        assert_eq!(slots.reserve(&pool, Some(2), 5, || 0).len(), 2);
        assert_eq!(
            slots.reserve(&"q".into(), Some(1), 5, || 0).len(),
            1,
            "pools do not share"
        );
    }

    /// LC-S13: concurrent; LC-S5: fifty at once never exceed the limit.
    #[test]
    fn the_last_room_is_given_once() {
        let slots = Arc::new(Slots::default());
        let made = std::sync::atomic::AtomicU64::new(0);
        let count = || made.load(std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    let granted = slots.reserve(&"p".into(), Some(20), 3, count);
                    for slot in granted {
                        made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        drop(slot);
                    }
                });
            }
        });
        assert_eq!(count(), 20);
    }
}
