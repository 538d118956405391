//! A watch: a position in a collection's log, read as a stream of lines.
//!
//! ```text
//! initial objects ─► changes after the position ─► ... ─► end (timeout, resource gone)
//!                       ▲            │
//!                       └─ bookmark ─┘ about once a minute, so that a quiet watcher's position does not age
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::encode::{Encoder, bytes_of};
use crate::failure::Failure;
use crate::selector::Selector;
use crate::server::Shared;
use crate::store::{Change, ChangeKind, Object, Version, WatcherId};

/// The real server sends bookmarks about this often.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Which objects of a collection are watched or listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Empty for all namespaces.
    pub namespace: String,
    pub selector: Selector,
}

impl Scope {
    pub(crate) fn holds(&self, key: &str) -> bool {
        self.namespace.is_empty()
            || key
                .strip_prefix(self.namespace.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// How a watch begins.
pub(crate) enum Start {
    /// Objects that exist already are told first; a bookmark may mark their end.
    Initial { objects: Vec<Arc<Object>>, mark_end: bool },
    /// Only what comes after the position.
    Position,
    /// The position is too old to go on from.
    Refused(Failure),
}

pub(crate) struct WatchStream {
    shared: Arc<Shared>,
    collection: Arc<str>,
    id: WatcherId,
    scope: Scope,
    encoder: Encoder,
    /// Lines that are ready before the log is read.
    pending: Option<Bytes>,
    /// Set once the pending lines are the last ones.
    ending: bool,
    sent_anything: bool,
    /// The version up to which the client has been told everything.
    told: u64,
    deadline: Option<Pin<Box<Sleep>>>,
    bookmark: Option<Pin<Box<Sleep>>>,
}

pub(crate) struct WatchOptions {
    pub collection: Arc<str>,
    pub id: WatcherId,
    pub scope: Scope,
    pub encoder: Encoder,
    pub start: Start,
    pub revision: u64,
    pub timeout: Option<Duration>,
    pub bookmarks: bool,
}

impl WatchStream {
    pub(crate) fn new(shared: Arc<Shared>, options: WatchOptions, now: Timestamp) -> Self {
        let mut stream = Self {
            shared,
            collection: options.collection,
            id: options.id,
            scope: options.scope,
            encoder: options.encoder,
            pending: None,
            ending: false,
            sent_anything: false,
            told: options.revision,
            deadline: options.timeout.map(|timeout| Box::pin(sleep(timeout))),
            bookmark: options.bookmarks.then(|| Box::pin(sleep(BOOKMARK_EVERY))),
        };
        let mut lines = BytesMut::new();
        match options.start {
            Start::Position => {}
            Start::Initial { objects, mark_end } => {
                for object in objects {
                    stream.line(&mut lines, "ADDED", &object, now);
                }
                if mark_end {
                    put_line(&mut lines, "BOOKMARK", &stream.encoder.bookmark(options.revision, true));
                }
            }
            Start::Refused(failure) => {
                put_line(&mut lines, "ERROR", &bytes_of(&failure.to_status()));
                stream.ending = true;
            }
        }
        stream.pending = (!lines.is_empty()).then(|| lines.freeze());
        stream
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(lines) = self.pending.take() {
            return Poll::Ready(Some(lines));
        }
        if self.ending {
            return Poll::Ready(None);
        }
        let changes = {
            let store = &mut self.shared.cluster.lock().store;
            self.told = store.revision();
            store.poll_watcher(&self.collection, self.id, context.waker())
        };
        // A watcher that fell behind the log is dropped, as the real server drops it; so is one whose resource is gone.
        let Some(Ok(changes)) = changes else {
            self.ending = true;
            return Poll::Ready(None);
        };
        if let Some(lines) = self.lines(&changes) {
            return Poll::Ready(Some(lines));
        }
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            self.ending = true;
            return Poll::Ready(None);
        }
        if let Some(bookmark) = &mut self.bookmark
            && bookmark.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(self.bookmark_line(context)));
        }
        Poll::Pending
    }

    /// The changes in this client's view, as lines; nothing if it sees none of them.
    fn lines(&mut self, changes: &[Change]) -> Option<Bytes> {
        changes.first()?;
        let now = self.shared.clock.now();
        let mut lines = BytesMut::new();
        for change in changes {
            if !self.scope.holds(&change.key) {
                continue;
            }
            if let Some((kind, object)) = self.seen_as(change) {
                self.line(&mut lines, kind, &object, now);
            }
        }
        (!lines.is_empty()).then(|| lines.freeze())
    }

    /// A change that enters the selector is an addition to this client, one that leaves it a removal: it sees the last
    /// state that matched.
    fn seen_as(&self, change: &Change) -> Option<(&'static str, Arc<Object>)> {
        let selector = &self.scope.selector;
        let deleted = change.kind == ChangeKind::Deleted;
        if selector.is_everything() {
            let kind = match change.kind {
                ChangeKind::Added => "ADDED",
                ChangeKind::Modified => "MODIFIED",
                ChangeKind::Deleted => "DELETED",
            };
            return Some((kind, change.object.unpacked()));
        }
        let before = change
            .previous
            .as_ref()
            .map(Version::unpacked)
            .filter(|object| selector.matches(&object.value));
        let object = change.object.unpacked();
        let after = !deleted && selector.matches(&object.value);
        match (before, after) {
            (None, true) => Some(("ADDED", object)),
            (Some(_), true) => Some(("MODIFIED", object)),
            (Some(_), false) if deleted => Some(("DELETED", object)),
            (Some(last), false) => Some(("DELETED", last.at_revision(change.revision))),
            (None, false) => None,
        }
    }

    fn line(&mut self, lines: &mut BytesMut, kind: &str, object: &Object, now: Timestamp) {
        let object = self.encoder.watched(object, !self.sent_anything, now);
        self.sent_anything = true;
        put_line(lines, kind, &object);
    }

    fn bookmark_line(&mut self, context: &mut Context<'_>) -> Bytes {
        if let Some(bookmark) = &mut self.bookmark {
            bookmark.set(sleep_until(Instant::now() + BOOKMARK_EVERY));
            // The fresh timer has to know whom to wake. It cannot be ready yet.
            let _ = bookmark.as_mut().poll(context);
        }
        let mut lines = BytesMut::new();
        put_line(&mut lines, "BOOKMARK", &self.encoder.bookmark(self.told, false));
        lines.freeze()
    }
}

fn put_line(lines: &mut BytesMut, kind: &str, object: &[u8]) {
    lines.reserve(object.len() + kind.len() + 24);
    lines.put_slice(b"{\"type\":\"");
    lines.put_slice(kind.as_bytes());
    lines.put_slice(b"\",\"object\":");
    lines.put_slice(object);
    lines.put_slice(b"}\n");
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.shared
            .cluster
            .lock()
            .store
            .remove_watcher(&self.collection, self.id);
    }
}
