//! The objects of one resource, the log of their changes, and those who follow it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use super::{Object, Version};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub kind: ChangeKind,
    pub revision: u64,
    pub key: Arc<str>,
    /// The new state; for a removal the last state with the version of the removal.
    pub object: Version,
    pub previous: Option<Version>,
}

/// The log no longer reaches back to the version that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that can still be asked for.
    pub oldest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatcherId(pub(super) u64);

#[derive(Debug)]
struct Watcher {
    /// The version up to which it has seen everything.
    seen: u64,
    waker: Option<Waker>,
}

/// A watcher that lags may hold back the log up to this many times its usual length. One request can change a thousand
/// objects before any watcher runs; dropping them all for that would be harsher than the real server is.
const LAG_FACTOR: usize = 16;

/// So many changes at the end of the log are kept as they are, for watchers that keep up.
const RECENT: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Collection {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    log: VecDeque<Change>,
    /// Changes up to this version have left the log.
    compacted: u64,
    watchers: BTreeMap<WatcherId, Watcher>,
}

impl Collection {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The objects of a namespace after a key, in order. The empty namespace stands for all.
    pub(crate) fn range<'a>(
        &'a self,
        namespace: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
        range(&self.objects, namespace, after)
    }

    /// The objects as they were at a version.
    pub(crate) fn at(&self, revision: u64) -> Result<BTreeMap<Arc<str>, Arc<Object>>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        let mut objects = self.objects.clone();
        for change in self.log.iter().rev().take_while(|change| change.revision > revision) {
            match &change.previous {
                Some(previous) => objects.insert(change.key.clone(), previous.unpacked()),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// True if nothing changed after a version, so that the present state is the state at that version.
    pub(crate) fn unchanged_since(&self, revision: u64) -> bool {
        self.compacted <= revision && self.log.back().is_none_or(|change| change.revision <= revision)
    }

    /// The oldest version that can still be asked for, if the given one is older.
    pub(crate) fn compacted_after(&self, revision: u64) -> Option<u64> {
        (revision < self.compacted).then_some(self.compacted)
    }

    pub(super) fn insert(&mut self, key: &Arc<str>, object: Arc<Object>) -> Option<Arc<Object>> {
        self.objects.insert(key.clone(), object)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<(Arc<str>, Arc<Object>)> {
        self.objects.remove_entry(key)
    }

    pub(super) fn record(&mut self, change: Change, history: usize) {
        self.pack_superseded(&change);
        self.log.push_back(change);
        if self.log.len() > history {
            self.trim(history);
        }
        self.wake_watchers();
    }

    /// Packs what nobody but a latecomer will read: the change that leaves the recent part of the log, and the version
    /// that the new change supersedes if it lies further back.
    fn pack_superseded(&mut self, change: &Change) {
        let recent = self.log.len().saturating_sub(RECENT);
        if let Some(Version::Live(superseded)) = &change.previous {
            let place = self.log.partition_point(|entry| entry.revision < superseded.revision);
            if place < recent
                && let Some(entry) = self.log.get_mut(place)
            {
                entry.object.pack();
            }
        }
        let Some(leaving) = recent.checked_sub(1).and_then(|index| self.log.get_mut(index)) else {
            return;
        };
        let current = self
            .objects
            .get(&leaving.key)
            .is_some_and(|object| object.revision == leaving.revision);
        // The present version is kept for itself, so the log may share it.
        if !current {
            leaving.object.pack();
        }
        if let Some(previous) = &mut leaving.previous {
            previous.pack();
        }
    }

    fn trim(&mut self, history: usize) {
        let slowest = self
            .watchers
            .values()
            .map(|watcher| watcher.seen)
            .min()
            .unwrap_or(u64::MAX);
        while self.log.len() > history
            && let Some(oldest) = self.log.front()
            && (oldest.revision <= slowest || self.log.len() > history * LAG_FACTOR)
        {
            self.compacted = oldest.revision;
            self.log.pop_front();
        }
    }

    pub(super) fn wake_watchers(&mut self) {
        for watcher in self.watchers.values_mut() {
            if let Some(waker) = watcher.waker.take() {
                waker.wake();
            }
        }
    }

    pub(super) fn add_watcher(&mut self, id: WatcherId, seen: u64) {
        self.watchers.insert(id, Watcher { seen, waker: None });
    }

    pub(super) fn remove_watcher(&mut self, id: WatcherId) {
        self.watchers.remove(&id);
    }

    /// What the watcher has not seen; it is woken at the next change. Nothing for a watcher that is not registered.
    pub(super) fn poll_watcher(&mut self, id: WatcherId, waker: &Waker) -> Option<Result<Vec<Change>, Compacted>> {
        let watcher = self.watchers.get_mut(&id)?;
        if watcher.seen < self.compacted {
            return Some(Err(Compacted { oldest: self.compacted }));
        }
        let first = self.log.partition_point(|change| change.revision <= watcher.seen);
        let changes: Vec<Change> = self.log.range(first..).cloned().collect();
        if let Some(last) = changes.last() {
            watcher.seen = last.revision;
        }
        match &mut watcher.waker {
            Some(current) => current.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
        Some(Ok(changes))
    }
}

/// The entries of a namespace after a key. Keys of a namespace share the prefix `namespace/`, and `0` is the character
/// after the slash.
pub(crate) fn range<'a>(
    objects: &'a BTreeMap<Arc<str>, Arc<Object>>,
    namespace: &str,
    after: Option<&str>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
    let first = if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    };
    let end = (!namespace.is_empty()).then(|| format!("{namespace}0"));
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let lower = match (after, end.as_deref()) {
        (Some(after), Some(end)) if after >= end => Bound::Included(end),
        (Some(after), _) if *after >= *first => Bound::Excluded(after),
        _ => Bound::Included(first.as_str()),
    };
    objects.range::<str, _>((lower, upper))
}
