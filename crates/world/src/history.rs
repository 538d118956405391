//! Everything that happened, in the order in which it happened.
//!
//! Watches of different kinds deliver their events independently, so the order in which they arrive is not the order in
//! which the server made the changes. Entries are therefore put in order by the server's version, and only once the
//! clock has moved on: time stands still until every event of a moment has been delivered, so by then all are here.

use std::sync::Arc;

use bytes::Bytes;
use clock::Clock;
use http::Method;
use jiff::Timestamp;
use kube_mem::ApiServer;
use model::{ClaimName, ProviderId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::mirror::{Tap, Told};

pub struct Entry {
    pub at: Timestamp,
    /// The cluster's version right after it.
    pub version: u64,
    pub item: Item,
}

pub enum Item {
    /// The server told of a change.
    Told(Told),
    /// The controller did something.
    Deed(Deed),
    /// The world has something to say for the timeline.
    Note { subject: String, what: String },
}

/// One thing that the controller did to the outside.
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

impl Deed {
    /// A request that the server has carried out: its method, its path and its body.
    pub fn granted(&self) -> Option<(&Method, &str, &Bytes)> {
        match self {
            Deed::Request {
                method,
                path,
                body,
                code: 200..300,
                ..
            } => Some((method, path, body)),
            _ => None,
        }
    }
}

/// Clones are handles to the same history.
#[derive(Clone)]
pub struct History(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    server: ApiServer,
    entries: Mutex<Vec<Entry>>,
    news: Notify,
}

impl History {
    pub fn new(clock: Arc<dyn Clock>, server: ApiServer) -> Self {
        Self(Arc::new(Shared {
            clock,
            server,
            entries: Mutex::default(),
            news: Notify::new(),
        }))
    }

    pub fn deed(&self, deed: Deed) {
        self.push(self.0.server.resource_version(), Item::Deed(deed));
    }

    pub fn note(&self, subject: impl Into<String>, what: impl Into<String>) {
        let (subject, what) = (subject.into(), what.into());
        self.push(self.0.server.resource_version(), Item::Note { subject, what });
    }

    /// Writes down what informers are told.
    pub fn tap(&self) -> Tap {
        let history = self.clone();
        Box::new(move |told| history.push(told.version, Item::Told(told)))
    }

    fn push(&self, version: u64, item: Item) {
        let at = self.0.clock.now();
        self.0.entries.lock().push(Entry { at, version, item });
        self.0.news.notify_one();
    }

    /// The entries before this moment, in their true order. They are handed out once.
    pub fn take_before(&self, moment: Timestamp) -> Vec<Entry> {
        let mut entries = self.0.entries.lock();
        let later = entries
            .iter()
            .position(|entry| entry.at >= moment)
            .unwrap_or(entries.len());
        let mut taken: Vec<Entry> = entries.drain(..later).collect();
        // A change comes before the deed that caused it: what the controller did is judged with its effect in place.
        taken.sort_by_key(|entry| (entry.version, !matches!(entry.item, Item::Told(_))));
        taken
    }

    pub async fn news(&self) {
        self.0.news.notified().await;
    }
}
