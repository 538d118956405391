//! What the controller asked for, in order: evidence for the checkers.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use model::{ClaimName, ProviderId};
use parking_lot::Mutex;

/// One thing that the controller did to the outside.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: Timestamp,
    /// The cluster's version right after it.
    pub version: u64,
    pub deed: Deed,
}

#[derive(Clone, Debug)]
pub enum Deed {
    /// A request that was to change something and reached the API server.
    Request {
        method: Method,
        path: String,
        query: String,
        body: Bytes,
        code: u16,
    },
    /// The cloud is asked for an instance; recorded before it is.
    Launch { claim: ClaimName, token: String },
    /// The cloud is asked to end an instance; recorded before it is.
    Terminate { id: ProviderId },
}

/// Calls that nobody has looked at yet. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    pub fn record(&self, call: Call) {
        self.0.lock().push(call);
    }

    /// The calls before this moment.
    pub fn take_before(&self, moment: Timestamp) -> Vec<Call> {
        let mut calls = self.0.lock();
        let later = calls.iter().position(|call| call.at >= moment).unwrap_or(calls.len());
        calls.drain(..later).collect()
    }
}
