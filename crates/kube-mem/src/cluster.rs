//! What one server holds, and the one door for every change to it.
//!
//! A request is handled as a whole under one lock, so it is atomic. The verbs (`verbs/`) decide what a request does;
//! they change the store only by [`Cluster::commit`] and [`Cluster::evict_from_store`], which note what the change may
//! set off. [`Cluster::settle`] then lets the server's own reactions run (`reactions/`): owner collection, namespace
//! clean-up, custom resource definitions. They run inside the request, so there is no moment in which they are "not
//! yet done", and two runs never differ in their order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::ids::Ids;
use crate::meta;
use crate::registry::{Registry, ResourceType};
use crate::store::{Object, ObjectRef, Store};

/// Everything behind the lock.
pub(crate) struct Cluster {
    pub store: Store,
    pub registry: Registry,
    pub ids: Ids,
    /// Whether `managedFields` are kept of new objects.
    pub tracks_managers: bool,
    /// The moment of the request that is being handled.
    pub now: Timestamp,
    /// Changes that reactions have not looked at yet, oldest first.
    pub(crate) unsettled: VecDeque<Settled>,
    /// Namespaces that wait for their contents to go.
    pub(crate) terminating: BTreeSet<String>,
    /// When each version of an event was written, oldest first; the real server forgets events after an hour.
    pub(crate) event_ages: VecDeque<(Timestamp, Arc<str>, u64)>,
}

/// A change that is in the store.
#[derive(Clone, Debug)]
pub(crate) enum Settled {
    Written(ObjectRef),
    Removed { at: ObjectRef, last: Arc<Object> },
}

impl Cluster {
    pub(crate) fn new(seed: u64, history: usize, now: Timestamp) -> Self {
        Self {
            store: Store::new(history),
            registry: Registry::default(),
            ids: Ids::new(seed),
            tracks_managers: true,
            now,
            unsettled: VecDeque::new(),
            terminating: BTreeSet::new(),
            event_ages: VecDeque::new(),
        }
    }

    pub(crate) fn stamp(&self) -> String {
        meta::stamp(self.now)
    }

    /// The object of a type.
    pub(crate) fn find(&self, ty: &ResourceType, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.store.get(&ty.collection, &crate::store::key(namespace, name))
    }

    /// Stores a state. Reactions see it at the next [`Cluster::settle`].
    pub(crate) fn commit(&mut self, at: &ObjectRef, value: Value) -> Arc<Object> {
        let object = self.store.put(&at.collection, &at.key, value);
        self.unsettled.push_back(Settled::Written(at.clone()));
        object
    }

    /// Removes an object from the store, whatever its finalizers say.
    pub(crate) fn evict_from_store(&mut self, at: &ObjectRef) -> Option<Arc<Object>> {
        let last = self.store.remove(&at.collection, &at.key)?;
        self.unsettled.push_back(Settled::Removed {
            at: at.clone(),
            last: last.clone(),
        });
        Some(last)
    }
}
