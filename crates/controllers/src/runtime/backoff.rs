//! How long to wait after a failure. Without jitter: one process does not crowd itself, and runs stay reproducible.

use std::{collections::BTreeMap, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub first: Duration,
    pub longest: Duration,
}

impl Pace {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The wait after so many failures in a row, the first of them being number zero.
    pub fn after(&self, failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(failures.min(20));
        self.first.saturating_mul(factor).min(self.longest)
    }
}

/// How long to wait after so many conflicts in a row. The first is met at once, because it only says that we were not up
/// to date. Later ones wait for the watch to catch up.
pub fn after_conflicts(count: u32) -> Duration {
    const PACE: Pace = Pace::new(Duration::from_millis(50), Duration::from_secs(5));
    count
        .checked_sub(2)
        .map_or(Duration::ZERO, |failures| PACE.after(failures))
}

/// Failures in a row, by key.
#[derive(Debug)]
pub struct Failures<K> {
    counts: BTreeMap<K, u32>,
}

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self {
            counts: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Failures<K> {
    /// Counts one more, and returns how many there were before.
    pub fn count(&mut self, key: &K) -> u32 {
        let count = self.counts.entry(key.clone()).or_default();
        let before = *count;
        *count = before.saturating_add(1);
        before
    }

    pub fn clear(&mut self, key: &K) {
        self.counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let pace = Pace::new(Duration::from_millis(100), Duration::from_secs(10));
        let waits: Vec<_> = [0, 1, 2, 6, 7, 500].map(|n| pace.after(n).as_millis()).into();
        assert_eq!(waits, [100, 200, 400, 6_400, 10_000, 10_000]);
    }
}
