//! What runs a controller: changes of the index become keys, keys become runs, failures become waits.
//!
//! ```text
//!   Index ── events ──► Router ── keys ──► Worker { Queue, running reconciles }
//! ```
//!
//! Deterministic on purpose: keys are worked on in the order in which they became ready, waits have no jitter, and
//! nothing runs in a task of its own, so that dropping a worker drops everything it had under way.

mod backoff;
mod queue;
mod router;
#[cfg(test)]
mod tests;
mod worker;

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use state::{Event, View};

pub use backoff::{Pace, after_conflicts};
pub use queue::Queue;
pub use router::Router;
pub use worker::Worker;

use crate::error::Classify;

/// What is to be done about a key after a run that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something changes.
    AwaitChange,
    /// Look again after this time, or when something changes.
    After(Duration),
}

/// A controller over keys.
#[async_trait]
pub trait Reconcile: Send + Sync + 'static {
    type Key: Ord + Clone + Debug + Send + Sync + 'static;
    type Error: Classify;

    /// As operators know it from logs and metrics.
    const NAME: &'static str;
    /// How many keys are worked on at once.
    const CONCURRENCY: usize;
    /// How long to wait after failures.
    const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(60));

    /// The keys that a change concerns.
    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(Self::Key));

    /// Brings one key forward. Safe to cancel and to repeat at any point.
    async fn reconcile(&self, key: &Self::Key) -> Result<Action, Self::Error>;
}
