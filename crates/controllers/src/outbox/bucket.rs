//! A token bucket on whatever clock it is shown.

use jiff::{SignedDuration, Timestamp};

/// So many per second on average, so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    /// When the bucket would have been empty, had it been filled at the rate since: a later moment means fewer tokens.
    drained: Timestamp,
}

impl Bucket {
    pub fn full(rate: Rate, now: Timestamp) -> Self {
        Self {
            rate,
            drained: now - rate.cost(rate.burst),
        }
    }

    pub fn take(&mut self, now: Timestamp) -> bool {
        let since_full = now - self.rate.cost(self.rate.burst);
        let drained = self.drained.max(since_full) + self.rate.cost(1);
        let had_one = drained <= now;
        if had_one {
            self.drained = drained;
        }
        had_one
    }
}

impl Rate {
    fn cost(self, tokens: u32) -> SignedDuration {
        SignedDuration::from_nanos(1_000_000_000 / i64::from(self.per_second.max(1)))
            * i32::try_from(tokens).unwrap_or(i32::MAX)
    }
}
