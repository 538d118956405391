//! The one door into what is known of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
};

use api::{
    FieldError, Stored,
    aws::AwsNodeTemplate,
    convert::Parsed,
    v1::{NodeClaim, NodePool},
    v1alpha1::NodeOverlay,
    v1alpha5::{Machine, Provisioner},
    v1beta1::CapacityBuffer,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Node, Pod, PodTemplate},
    policy::v1::PodDisruptionBudget,
    resource::v1::ResourceSlice,
    storage::v1::VolumeAttachment,
};
use kube::{ResourceExt, core::DynamicObject};
use model::{
    Labels, NodeKey, PoolName, StorageClass, Vocabulary, Volume, VolumeClaim,
    snapshot::{AttachLimits, Catalog, Daemon, DisruptionBudget},
};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::{
    Change, Event, Indexed, Kind, ObjectKey, Served, Table, View,
    daemons::DaemonPods,
    devices::DeviceTables,
    kinds::in_scope,
    ledger::Ledger,
    marks::Marks,
    notes::Notes,
    shapes::Shapes,
    table::{Entry, Identity},
    workloads::WorkloadTables,
};

/// Changes of an index, in order.
pub type Changes = mpsc::UnboundedReceiver<Event>;

/// Everything behind the lock.
#[derive(Debug)]
pub struct Core {
    view: Arc<View>,
    pub(crate) pods: Table<model::Pod>,
    pub(crate) daemons: Table<Daemon>,
    pub(crate) daemon_pods: DaemonPods,
    pub(crate) budgets: Table<DisruptionBudget>,
    pub(crate) namespaces: Table<Labels>,
    pub(crate) devices: DeviceTables,
    pub(crate) workloads: WorkloadTables,
    pub(crate) volume_claims: Table<VolumeClaim>,
    pub(crate) volumes: Table<Volume>,
    pub(crate) storage_classes: Table<StorageClass>,
    pub(crate) attach_limits: Table<AttachLimits>,
    pub(crate) marks: Marks,
    pub(crate) shapes: Shapes,
    pub(crate) notes: Notes,
    pub(crate) served: Served,
    /// Whether annotations of the time of Provisioners count.
    pub(crate) old_words: bool,
    ledgers: BTreeMap<(Kind, String), Ledger>,
    subscribers: Vec<mpsc::UnboundedSender<Event>>,
}

impl Core {
    /// Copies the view if a reader still holds it; otherwise changes it in place.
    pub(crate) fn view_mut(&mut self) -> &mut View {
        Arc::make_mut(&mut self.view)
    }

    pub(crate) fn publish(&mut self, event: Event) {
        self.subscribers
            .retain(|subscriber| subscriber.send(event.clone()).is_ok());
    }

    /// Tells a newcomer everything that is known.
    fn replay(&mut self, to: &mpsc::UnboundedSender<Event>) {
        fn tell<K: Indexed>(core: &mut Core, to: &mpsc::UnboundedSender<Event>) {
            for (key, entry) in &K::table(core).entries {
                let change = Change {
                    key: key.clone(),
                    old: None,
                    new: Some(entry.value.clone()),
                };
                if let Some(event) = K::event(change) {
                    // The receiver is in our hands.
                    let _ = to.send(event);
                }
            }
        }
        tell::<DynamicObject>(self, to);
        tell::<NodePool>(self, to);
        tell::<NodeClaim>(self, to);
        tell::<Node>(self, to);
        tell::<VolumeAttachment>(self, to);
        tell::<ResourceSlice>(self, to);
        tell::<PodDisruptionBudget>(self, to);
        tell::<Pod>(self, to);
        tell::<NodeOverlay>(self, to);
        tell::<PodTemplate>(self, to);
        tell::<CapacityBuffer>(self, to);
        tell::<ConfigMap>(self, to);
        tell::<Stored<AwsNodeTemplate>>(self, to);
        tell::<Stored<Provisioner>>(self, to);
        tell::<Stored<Machine>>(self, to);
        if self.view.synced {
            let _ = to.send(Event::Synced);
        }
    }

    /// Notes what could not be read of an object, in the place of what was noted before.
    pub(crate) fn note_unread(&mut self, kind: Kind, key: &ObjectKey, errors: Vec<FieldError>) {
        if !errors.is_empty() {
            let unread = &mut self.view_mut().unread;
            unread.insert((kind, key.clone()), errors.into());
        } else if !self.view.unread.is_empty() {
            self.view_mut().unread.remove(&(kind, key.clone()));
        }
    }

    fn replace<K: Indexed>(&mut self, id: Identity, new: Option<Parsed<K::Kept>>) {
        let (new, errors) = new.map(|parsed| (Arc::new(parsed.value), parsed.errors)).unzip();
        let entries = &mut K::table(self).entries;
        let old = match &new {
            Some(value) => entries.insert(
                id.key.clone(),
                Entry {
                    uid: id.uid,
                    version: id.version,
                    value: value.clone(),
                },
            ),
            None => entries.remove(&id.key),
        };
        let change = Change {
            key: id.key,
            old: old.map(|entry| entry.value),
            new,
        };
        if change.old.is_none() && change.new.is_none() {
            return;
        }
        self.view_mut().snapshot.version += 1;
        self.note_unread(K::KIND, &change.key, errors.unwrap_or_default());
        K::settle(self, &change);
        if let Some(event) = K::event(change) {
            self.publish(event);
        }
    }

    fn ledger(&mut self, kind: Kind, scope: &str) -> &mut Ledger {
        self.ledgers.entry((kind, scope.to_owned())).or_default()
    }

    fn take_in<K: Indexed>(&mut self, object: K, scope: &str, from_list: bool) {
        let id = Identity::of(&object, scope);
        let known = K::table(self).entries.get(&id.key).map(|entry| entry.version);
        let ledger = self.ledger(K::KIND, scope);
        let newer = match known {
            Some(version) => id.version > version && !ledger.is_deleted(&id.uid),
            None if from_list => !ledger.is_deleted(&id.uid),
            None => ledger.is_news(&id.uid, id.version),
        };
        if newer {
            // An object that has stopped being ours leaves the index as if it were deleted.
            let kept = object.keep(self);
            self.replace::<K>(id, kept);
        }
    }
}

/// What is known of the cluster: one writer at a time, readers without a lock.
#[derive(Debug)]
pub struct Index {
    core: Mutex<Core>,
    /// Rung after every write. A `watch` channel would wake its receivers in a random order, and the order in which
    /// controllers wake up must be the same in every run of a simulation.
    written: Notify,
}

impl Index {
    pub fn new(vocabulary: Arc<Vocabulary>, served: Served) -> Self {
        let mut view = View {
            synced: true,
            ..View::default()
        };
        view.snapshot.vocabulary = vocabulary;
        Self {
            core: Mutex::new(Core {
                view: Arc::new(view),
                pods: Table::default(),
                daemons: Table::default(),
                daemon_pods: DaemonPods::default(),
                budgets: Table::default(),
                namespaces: Table::default(),
                devices: DeviceTables::default(),
                workloads: WorkloadTables::default(),
                volume_claims: Table::default(),
                volumes: Table::default(),
                storage_classes: Table::default(),
                attach_limits: Table::default(),
                marks: Marks::default(),
                shapes: Shapes::default(),
                notes: Notes::default(),
                served,
                old_words: false,
                ledgers: BTreeMap::new(),
                subscribers: Vec::new(),
            }),
            written: Notify::new(),
        }
    }

    /// What is known now.
    pub fn view(&self) -> Arc<View> {
        self.core.lock().view.clone()
    }

    /// Everything that is there, as if it had just come, and then every change in order.
    pub fn subscribe(&self) -> Changes {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut core = self.core.lock();
        core.replay(&sender);
        core.subscribers.push(sender);
        receiver
    }

    /// Waits until the view satisfies a condition, and returns that view.
    pub async fn until(&self, mut holds: impl FnMut(&View) -> bool) -> Arc<View> {
        loop {
            // Listening before looking: a write in between is not missed.
            let mut written = pin!(self.written.notified());
            written.as_mut().enable();
            let view = self.view();
            if holds(&view) {
                return view;
            }
            written.await;
        }
    }

    /// An object as the API server has it: an event of a watch, or the answer to one of our writes.
    pub fn apply<K: Indexed<DynamicType: Default>>(&self, object: K) {
        self.apply_with(object, &K::DynamicType::default());
    }

    /// An object out of a file. It has no history: it counts as it stands, in the place of one of the same name.
    pub fn load<K: Indexed<DynamicType: Default>>(&self, object: K) {
        let scope = K::scope(&K::DynamicType::default());
        self.write(|core| {
            let id = Identity::of(&object, &scope);
            let kept = object.keep(core);
            core.replace::<K>(id, kept);
        });
    }

    pub fn apply_with<K: Indexed>(&self, object: K, kind: &K::DynamicType) {
        let scope = K::scope(kind);
        self.write(|core| core.take_in(object, &scope, false));
    }

    /// An object in its last state before it went.
    pub fn delete<K: Indexed<DynamicType: Default>>(&self, object: &K) {
        self.delete_with(object, &K::DynamicType::default());
    }

    pub fn delete_with<K: Indexed>(&self, object: &K, kind: &K::DynamicType) {
        let scope = K::scope(kind);
        self.write(|core| {
            let id = Identity::of(object, &scope);
            core.ledger(K::KIND, &scope).bury(id.uid.clone(), id.version);
            let same = K::table(core)
                .entries
                .get(&id.key)
                .is_some_and(|entry| entry.uid == id.uid);
            if same {
                core.replace::<K>(id, None);
            }
        });
    }

    /// The answer to one of our writes. A write that took the last finalizer off a deleted object was its end, and no
    /// later state will be told; pods have a grace period and end otherwise.
    pub fn absorb<K: Indexed<DynamicType: Default>>(&self, object: K) {
        self.absorb_with(object, &K::DynamicType::default());
    }

    pub fn absorb_with<K: Indexed>(&self, object: K, kind: &K::DynamicType) {
        let deleted = object.meta().deletion_timestamp.is_some() && object.finalizers().is_empty();
        if deleted && K::KIND != Kind::Pod {
            self.delete_with(&object, kind);
        } else {
            self.apply_with(object, kind);
        }
    }

    /// A complete list, and the version it was taken at. What it lacks is gone, unless we know something newer.
    pub fn reset<K: Indexed>(&self, objects: Vec<K>, version: u64, kind: &K::DynamicType) {
        let mut listed = BTreeSet::new();
        self.take_page(objects, kind, &mut listed);
        self.finish_list::<K>(&listed, version, kind);
    }

    /// A page of a list that is under way, and where its objects live. They count at once: keeping them until the list
    /// is complete would take several times the memory of the index.
    pub(crate) fn take_page<K: Indexed>(
        &self,
        objects: Vec<K>,
        kind: &K::DynamicType,
        listed: &mut BTreeSet<ObjectKey>,
    ) {
        let scope = K::scope(kind);
        self.write(|core| {
            for object in objects {
                listed.insert(Identity::of(&object, &scope).key);
                core.take_in(object, &scope, true);
            }
        });
    }

    /// The list is complete: what it lacks is gone, unless we know something newer.
    pub(crate) fn finish_list<K: Indexed>(&self, listed: &BTreeSet<ObjectKey>, version: u64, kind: &K::DynamicType) {
        let scope = K::scope(kind);
        self.write(|core| {
            let lost: Vec<_> = K::table(core)
                .entries
                .iter()
                .filter(|(key, entry)| in_scope(key, &scope) && !listed.contains(key) && entry.version <= version)
                .map(|(key, entry)| Identity {
                    key: key.clone(),
                    uid: entry.uid.clone(),
                    version: entry.version,
                })
                .collect();
            for id in lost {
                core.replace::<K>(id, None);
            }
            core.ledger(K::KIND, &scope).listed_at(version);
            if !core.view.synced && core.ledgers.values().all(|ledger| ledger.listed) {
                core.view_mut().synced = true;
                core.publish(Event::Synced);
            }
        });
    }

    /// Announces that a kind will be listed; until that has happened the index is not synced.
    pub(crate) fn expect<K: Indexed>(&self, kind: &K::DynamicType) {
        let scope = K::scope(kind);
        self.write(|core| {
            if !core.ledger(K::KIND, &scope).listed {
                core.view_mut().synced = false;
            }
        });
    }

    /// Pods are on their way to these machines until then.
    pub fn nominate<'a>(&self, machines: impl IntoIterator<Item = &'a NodeKey>, until: Timestamp) {
        self.mark(machines, |marks, key| marks.nominate(key, until));
    }

    /// A decision has taken these machines: nothing new is planned onto them, and their pods need room elsewhere.
    pub fn mark_for_deletion<'a>(&self, machines: impl IntoIterator<Item = &'a NodeKey>) {
        self.mark(machines, Marks::mark_for_deletion);
    }

    pub fn unmark_for_deletion<'a>(&self, machines: impl IntoIterator<Item = &'a NodeKey>) {
        self.mark(machines, Marks::unmark_for_deletion);
    }

    fn mark<'a>(&self, machines: impl IntoIterator<Item = &'a NodeKey>, mut set: impl FnMut(&mut Marks, &NodeKey)) {
        self.write(|core| {
            for key in machines {
                let Some(machine) = core.view.snapshot.nodes.get(key) else {
                    continue;
                };
                let mut machine = (**machine).clone();
                set(&mut core.marks, key);
                core.marks.put_on(&mut machine);
                let view = core.view_mut();
                view.snapshot.version += 1;
                view.snapshot.put_node(Arc::new(machine));
                core.publish(Event::Mark(key.clone()));
            }
        });
    }

    /// What a pool may launch; `None` when the provider could not say.
    pub fn put_catalog(&self, pool: &PoolName, catalog: Option<Catalog>) {
        self.write(|core| {
            let snapshot = &mut core.view_mut().snapshot;
            if !snapshot.pools.contains_key(pool) {
                return;
            }
            snapshot.version += 1;
            match catalog {
                Some(catalog) => snapshot.catalogs.insert(pool.clone(), catalog),
                None => snapshot.catalogs.remove(pool),
            };
            core.publish(Event::Catalog(pool.clone()));
        });
    }

    pub(crate) fn write(&self, change: impl FnOnce(&mut Core)) {
        change(&mut self.core.lock());
        // Sync is no change of the snapshot, so waiters are woken after every write rather than on a new version.
        self.written.notify_waiters();
    }
}
