//! What goes wrong between the controller and the rest of the world, by seed.
//!
//! ```text
//!  controller ──► Line (this module) ──► API server
//!      │            server_error, throttle, conflict, timeout, lost_answer, latency, watch_delay, watch_drop
//!      └──────► Bridge (cloud.rs) ──► simulated cloud, which has faults of its own
//!                   both pass the Gate (crash.rs), at which the controller can be made to die at any step
//! ```
//!
//! Each fault is a file: it says for one request whether it strikes. Faults strike only the controller; the rest of the
//! simulated cluster works on a line without faults, because its behaviour under faults is nobody's question.

pub mod cloud;
mod conflict;
pub mod crash;
mod latency;
pub mod line;
mod lost_answer;
mod server_error;
mod throttle;
mod timeout;
mod watch_delay;
mod watch_drop;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::dice::Dice;

/// How often requests of the controller go wrong, in percent, and how long they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiFaults {
    /// 500, without effect.
    pub server_error: u64,
    /// 500 when a node claim is to be created, without effect, as when an admission webhook for them is down.
    pub no_claims: u64,
    /// 429 with `Retry-After`, without effect.
    pub throttle: u64,
    /// 409 on updates and patches, without effect.
    pub conflict: u64,
    /// The request is never answered; it may or may not have had its effect.
    pub timeout: u64,
    /// The request had its effect, and the connection broke before the answer.
    pub lost_answer: u64,
    /// A watch ends, or is told that its version is too old.
    pub watch_drop: u64,
    /// Every request takes up to this long to arrive.
    pub latency: Duration,
    /// Every watch event takes up to this long to arrive.
    pub watch_delay: Duration,
}

impl ApiFaults {
    /// Some of everything.
    pub fn rough() -> Self {
        Self {
            server_error: 3,
            throttle: 2,
            conflict: 3,
            timeout: 1,
            lost_answer: 3,
            watch_drop: 3,
            latency: Duration::from_millis(200),
            watch_delay: Duration::from_secs(2),
            ..Self::default()
        }
    }
}

/// The faults of the moment. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Weather(Arc<Mutex<ApiFaults>>);

impl Weather {
    pub fn now(&self) -> ApiFaults {
        *self.0.lock()
    }

    pub fn set(&self, faults: ApiFaults) {
        *self.0.lock() = faults;
    }

    /// From here on everything works.
    pub fn calm(&self) {
        self.set(ApiFaults::default());
    }
}

/// One request, as faults see it.
pub struct Roll<'a> {
    pub method: &'a http::Method,
    pub path: &'a str,
    pub is_watch: bool,
    pub faults: ApiFaults,
    /// Dice of this request alone.
    pub dice: Dice,
}

impl Roll<'_> {
    pub fn is_write(&self) -> bool {
        self.method != http::Method::GET
    }
}
