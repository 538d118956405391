//! The objects of one kind, in the order of their names, and the groups they can be looked up by.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use parking_lot::Mutex;

use super::Mirrored;

/// Names an object within its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object without namespace.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What objects can be looked up by, besides their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The UID of the controlling owner.
    Controller(String),
    /// The node that a pod is bound to.
    Node(String),
    /// Pods that are bound nowhere.
    Unbound,
}

pub(super) fn groups_of_pod(pod: &Pod) -> Vec<Group> {
    let controller = controller_of(&pod.metadata).map(|owner| Group::Controller(owner.uid.clone()));
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    controller
        .into_iter()
        .chain([node.map_or(Group::Unbound, Group::Node)])
        .collect()
}

/// The owner that answers for the object's existence.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// Resource versions are opaque to clients of a real cluster. The embedded API server counts them up by one, and the
/// simulation leans on that to put the histories of several kinds into one order.
pub fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// An object before and after. One of the two is there.
#[derive(Clone, Debug)]
pub struct Change<K> {
    pub key: Key,
    pub old: Option<Arc<K>>,
    pub new: Option<Arc<K>>,
    pub version: u64,
}

impl<K> Change<K> {
    /// The object after the change, or before it when it is gone.
    pub fn either(&self) -> &Arc<K> {
        self.new
            .as_ref()
            .or(self.old.as_ref())
            .expect("a change has a before or an after")
    }

    /// Before and after, as far as they exist.
    pub fn both(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(&self.new)
    }
}

pub struct Store<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    objects: BTreeMap<Key, Arc<K>>,
    groups: BTreeMap<Group, BTreeMap<Key, Arc<K>>>,
    /// The newest version that came in by list or watch. Answers to own requests that are not newer bring no news.
    seen: u64,
    synced: bool,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            groups: BTreeMap::new(),
            seen: 0,
            synced: false,
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl<K: Mirrored> Store<K> {
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.state.lock().objects.get(key).cloned()
    }

    /// In the order of the keys.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.state.lock().objects.values().cloned().collect()
    }

    pub fn keys(&self) -> Vec<Key> {
        self.state.lock().objects.keys().cloned().collect()
    }

    /// The members of a group, in the order of their keys.
    pub fn group(&self, group: &Group) -> Vec<Arc<K>> {
        let state = self.state.lock();
        state
            .groups
            .get(group)
            .into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }

    pub fn has_members(&self, group: &Group) -> bool {
        self.state.lock().groups.contains_key(group)
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.state.lock().objects.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.state.lock().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is in.
    pub fn is_synced(&self) -> bool {
        self.state.lock().synced
    }

    pub(super) fn wrote(&self, object: Arc<K>) -> Option<Change<K>> {
        let mut state = self.state.lock();
        (version_of(object.meta()) > state.seen)
            .then(|| state.put(object))
            .flatten()
    }

    pub(super) fn observed(&self, object: Arc<K>) -> Option<Change<K>> {
        let mut state = self.state.lock();
        state.seen = state.seen.max(version_of(object.meta()));
        state.put(object)
    }

    pub(super) fn vanished(&self, object: &K) -> Option<Change<K>> {
        let mut state = self.state.lock();
        let version = version_of(object.meta());
        state.seen = state.seen.max(version);
        state.remove(&Key::of(object.meta()), version)
    }

    /// Takes over a complete list; whatever it does not name is gone.
    pub(super) fn listed(&self, objects: Vec<Arc<K>>, version: u64) -> Vec<Change<K>> {
        let mut state = self.state.lock();
        let named: BTreeSet<Key> = objects.iter().map(|object| Key::of(object.meta())).collect();
        let gone: Vec<Key> = state
            .objects
            .keys()
            .filter(|key| !named.contains(key))
            .cloned()
            .collect();
        let gone = gone
            .iter()
            .filter_map(|key| state.remove(key, version))
            .collect::<Vec<_>>();
        let put: Vec<_> = objects.into_iter().filter_map(|object| state.put(object)).collect();
        state.seen = state.seen.max(version);
        state.synced = true;
        gone.into_iter().chain(put).collect()
    }
}

impl<K: Mirrored> State<K> {
    /// Does nothing when the mirror already has this version or a newer one.
    fn put(&mut self, new: Arc<K>) -> Option<Change<K>> {
        let key = Key::of(new.meta());
        let version = version_of(new.meta());
        let old = self.objects.get(&key).cloned();
        if old.as_ref().is_some_and(|old| version_of(old.meta()) >= version) {
            return None;
        }
        self.ungroup(&key, old.as_deref());
        for group in new.groups() {
            self.groups
                .entry(group)
                .or_default()
                .insert(key.clone(), Arc::clone(&new));
        }
        self.objects.insert(key.clone(), Arc::clone(&new));
        Some(Change {
            key,
            old,
            new: Some(new),
            version,
        })
    }

    fn remove(&mut self, key: &Key, version: u64) -> Option<Change<K>> {
        // A newer object of the same name is another one.
        let old = self
            .objects
            .get(key)
            .filter(|old| version_of(old.meta()) <= version)
            .cloned()?;
        self.objects.remove(key);
        self.ungroup(key, Some(&old));
        Some(Change {
            key: key.clone(),
            old: Some(old),
            new: None,
            version,
        })
    }

    fn ungroup(&mut self, key: &Key, old: Option<&K>) {
        for group in old.into_iter().flat_map(K::groups) {
            if let Some(members) = self.groups.get_mut(&group) {
                members.remove(key);
                if members.is_empty() {
                    self.groups.remove(&group);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, version: u64, node: Option<&str>) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.into());
        pod.metadata.namespace = Some("default".into());
        pod.metadata.resource_version = Some(version.to_string());
        pod.spec = Some(k8s_openapi::api::core::v1::PodSpec {
            node_name: node.map(Into::into),
            ..Default::default()
        });
        Arc::new(pod)
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
    }

    #[test]
    fn an_answer_that_arrives_after_the_deletion_does_not_bring_the_object_back() {
        let store = Store::<Pod>::default();
        store.listed(vec![pod("a", 3, None)], 3);
        assert!(store.vanished(&pod("a", 9, None)).is_some());
        assert!(store.wrote(pod("a", 7, None)).is_none());
        assert!(store.is_empty());
    }

    #[test]
    fn an_own_write_is_seen_at_once_and_its_event_brings_no_news() {
        let store = Store::<Pod>::default();
        store.listed(vec![], 3);
        assert!(store.wrote(pod("a", 4, None)).is_some());
        assert!(store.observed(pod("a", 4, None)).is_none());
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn groups_follow_the_objects() {
        let store = Store::<Pod>::default();
        store.listed(vec![pod("a", 1, None), pod("b", 2, Some("n1"))], 2);
        store.observed(pod("a", 3, Some("n1")));
        assert_eq!(names(&store.group(&Group::Node("n1".into()))), ["a", "b"]);
        store.listed(vec![pod("b", 5, Some("n2"))], 6);
        assert!(store.group(&Group::Node("n1".into())).is_empty());
        assert_eq!(names(&store.group(&Group::Node("n2".into()))), ["b"]);
    }
}
