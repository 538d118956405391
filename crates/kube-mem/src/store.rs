//! The objects, their versions, and the log of what changed.
//!
//! One counter versions everything, as in etcd. Each collection keeps its objects by key and a bounded log of its
//! changes; a watch is a position in that log, so a change is stored once however many watch it. Two indexes over
//! all collections, by uid and by owner, serve the garbage collection.

mod collection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

pub(crate) use collection::{Change, ChangeKind, Collection, WatcherId, range};

use crate::meta;

/// A stored object in one version.
#[derive(Debug)]
pub(crate) struct Object {
    pub value: Value,
    pub revision: u64,
    /// The wire form, made when it is first asked for: most versions are sent to several watchers, some to none.
    json: OnceLock<Bytes>,
}

impl Object {
    fn new(mut value: Value, revision: u64) -> Arc<Self> {
        let version = Value::String(revision.to_string());
        meta::metadata_mut(&mut value).insert("resourceVersion".to_owned(), version);
        Arc::new(Self {
            value,
            revision,
            json: OnceLock::new(),
        })
    }

    /// An object that is shown but not stored: the outcome of a dry run.
    pub(crate) fn unstored(value: Value) -> Arc<Self> {
        let revision = meta::text(&value, "resourceVersion").parse().unwrap_or_default();
        Arc::new(Self {
            value,
            revision,
            json: OnceLock::new(),
        })
    }

    /// The same state under another version.
    pub(crate) fn at_revision(&self, revision: u64) -> Arc<Self> {
        Self::new(self.value.clone(), revision)
    }

    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| {
            let bytes = serde_json::to_vec(&self.value).expect("a JSON value is always serialisable");
            Bytes::from(bytes)
        })
    }
}

/// An object as the log holds it. Old versions are kept in their wire form alone, which takes a quarter of the space;
/// only a watch that resumes or a list of the past has to read them again.
#[derive(Clone, Debug)]
pub(crate) enum Version {
    Live(Arc<Object>),
    Packed { revision: u64, json: Bytes },
}

impl Version {
    pub(crate) fn unpacked(&self) -> Arc<Object> {
        match self {
            Self::Live(object) => object.clone(),
            Self::Packed { revision, json } => Arc::new(Object {
                value: serde_json::from_slice(json).expect("the store wrote it"),
                revision: *revision,
                json: OnceLock::from(json.clone()),
            }),
        }
    }

    fn pack(&mut self) {
        if let Self::Live(object) = self {
            *self = Self::Packed {
                revision: object.revision,
                json: object.json().clone(),
            };
        }
    }
}

/// Where an object lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    pub collection: Arc<str>,
    pub key: Arc<str>,
}

/// The key of an object in its collection. Keys sort as the real server's do, so lists come in the same order.
pub(crate) fn key(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() {
        name.into()
    } else {
        format!("{namespace}/{name}").into()
    }
}

#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    /// How many changes a collection remembers at least.
    history: usize,
    collections: BTreeMap<Arc<str>, Collection>,
    by_uid: BTreeMap<String, ObjectRef>,
    dependents: BTreeMap<String, BTreeSet<ObjectRef>>,
    next_watcher: u64,
}

impl Store {
    pub(crate) fn new(history: usize) -> Self {
        Self {
            // The real server has written a few things before anyone can ask; version 0 has a meaning of its own.
            revision: 1,
            history,
            collections: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            dependents: BTreeMap::new(),
            next_watcher: 0,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Versions go on from at least here.
    pub(crate) fn advance_to(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    pub(crate) fn collection(&self, name: &str) -> Option<&Collection> {
        self.collections.get(name)
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = (&Arc<str>, &Collection)> {
        self.collections.iter()
    }

    fn collection_mut(&mut self, name: &Arc<str>) -> &mut Collection {
        self.collections.entry(name.clone()).or_default()
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&Arc<Object>> {
        self.collections.get(collection)?.get(key)
    }

    pub(crate) fn get_ref(&self, at: &ObjectRef) -> Option<&Arc<Object>> {
        self.get(&at.collection, &at.key)
    }

    pub(crate) fn find_uid(&self, uid: &str) -> Option<&ObjectRef> {
        self.by_uid.get(uid)
    }

    /// The objects that name this uid as an owner, in order.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Stores a new object or a new version of one.
    pub(crate) fn put(&mut self, collection: &Arc<str>, key: &Arc<str>, value: Value) -> Arc<Object> {
        self.revision += 1;
        let object = Object::new(value, self.revision);
        let at = ObjectRef {
            collection: collection.clone(),
            key: key.clone(),
        };
        let history = self.history;
        let target = self.collection_mut(collection);
        let previous = target.insert(key, object.clone());
        let kind = if previous.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        target.record(
            Change {
                kind,
                revision: object.revision,
                key: key.clone(),
                object: Version::Live(object.clone()),
                previous: previous.clone().map(Version::Live),
            },
            history,
        );
        if let Some(previous) = &previous {
            self.unindex(previous, &at);
        }
        self.index(&object, at);
        object
    }

    /// Removes an object. Watchers see its last state with the version of the removal.
    pub(crate) fn remove(&mut self, collection: &Arc<str>, key: &str) -> Option<Arc<Object>> {
        let target = self.collections.get_mut(collection)?;
        let (key, previous) = target.take(key)?;
        self.revision += 1;
        let object = Object::new(previous.value.clone(), self.revision);
        target.record(
            Change {
                kind: ChangeKind::Deleted,
                revision: self.revision,
                key: key.clone(),
                object: Version::Live(object.clone()),
                previous: Some(Version::Live(previous.clone())),
            },
            self.history,
        );
        self.unindex(
            &previous,
            &ObjectRef {
                collection: collection.clone(),
                key,
            },
        );
        Some(object)
    }

    /// Forgets a collection as a whole; its watchers find it gone and end.
    pub(crate) fn drop_collection(&mut self, name: &str) {
        if let Some(mut collection) = self.collections.remove(name) {
            collection.wake_watchers();
        }
    }

    pub(crate) fn add_watcher(&mut self, collection: &Arc<str>, after: u64) -> WatcherId {
        self.next_watcher += 1;
        let id = WatcherId(self.next_watcher);
        self.collection_mut(collection).add_watcher(id, after);
        id
    }

    pub(crate) fn remove_watcher(&mut self, collection: &str, id: WatcherId) {
        if let Some(collection) = self.collections.get_mut(collection) {
            collection.remove_watcher(id);
        }
    }

    /// The changes that a watcher has not seen, or nothing if the collection is gone.
    pub(crate) fn poll_watcher(
        &mut self,
        collection: &str,
        id: WatcherId,
        waker: &std::task::Waker,
    ) -> Option<Result<Vec<Change>, collection::Compacted>> {
        self.collections.get_mut(collection)?.poll_watcher(id, waker)
    }

    fn index(&mut self, object: &Object, at: ObjectRef) {
        for owner in meta::owner_references(&object.value) {
            let owner = owner["uid"].as_str().unwrap_or_default();
            self.dependents.entry(owner.to_owned()).or_default().insert(at.clone());
        }
        self.by_uid.insert(meta::uid(&object.value).to_owned(), at);
    }

    fn unindex(&mut self, object: &Object, at: &ObjectRef) {
        self.by_uid.remove(meta::uid(&object.value));
        for owner in meta::owner_references(&object.value) {
            let owner = owner["uid"].as_str().unwrap_or_default();
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(at);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }
}
