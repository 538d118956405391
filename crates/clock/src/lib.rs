//! Time as an argument.
//!
//! Whatever needs the present moment holds an `Arc<dyn Clock>`. Production holds [`SystemClock`]; simulations hold
//! [`VirtualClock`], which follows tokio's timer, so that paused time moves both the timers and the timestamps.
//! This crate does not sleep: waiting is `tokio::time`'s job.
//!
//! ```
//! use clock::{Clock, SystemClock};
//! let clock = SystemClock;
//! assert!(clock.now() <= clock.now());
//! ```

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the present moment.
pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a chosen moment and follows tokio's timer.
///
/// Must be created inside a tokio runtime whose time is the time to follow.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    origin: Timestamp,
    started: Instant,
}

impl VirtualClock {
    /// Where simulations begin unless they say otherwise: a fixed moment, so that timelines are reproducible.
    pub const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0); // 2026-01-01T00:00:00Z

    pub fn starting_at(origin: Timestamp) -> Self {
        Self {
            origin,
            started: Instant::now(),
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed();
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_with_the_timer_and_only_with_it() {
        let clock = VirtualClock::starting_at(VirtualClock::EPOCH);
        assert_eq!(clock.now(), VirtualClock::EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    }
}
