//! The objects of one kind, each in its newest known version.

use std::sync::Arc;

use imbl::OrdMap;
use kube::{Resource, ResourceExt};
use model::PodKey;

/// Where an object lives; the namespace is empty for cluster-wide kinds.
pub type ObjectKey = PodKey;

/// Which object this is, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    pub version: u64,
}

impl Identity {
    pub fn of<K: Resource>(object: &K, scope: &str) -> Self {
        let namespace = object.meta().namespace.as_deref().unwrap_or(scope);
        Self {
            key: ObjectKey::new(namespace, object.meta().name.as_deref().unwrap_or_default()),
            uid: object.meta().uid.as_deref().unwrap_or_default().into(),
            version: version(object.resource_version().as_deref()),
        }
    }
}

/// Resource versions are numbers that grow with every write; one that is not a number counts as the oldest.
pub(crate) fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub uid: Arc<str>,
    pub version: u64,
    pub value: Arc<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            version: self.version,
            value: self.value.clone(),
        }
    }
}

/// The objects of one kind, in the order of their names. A clone shares them.
#[derive(Debug)]
pub struct Table<T> {
    pub(crate) entries: OrdMap<ObjectKey, Entry<T>>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: OrdMap::new() }
    }
}

impl<T> Table<T> {
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// An object of a cluster-wide kind.
    pub fn named(&self, name: &str) -> Option<&Arc<T>> {
        self.get(&ObjectKey::new("", name))
    }

    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.values().map(|entry| &entry.value)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
