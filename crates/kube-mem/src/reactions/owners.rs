//! Owner garbage collection: what nobody owns any more goes, and owners that wait for it are released.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::meta::{self, FOREGROUND, ORPHAN};
use crate::store::{Object, ObjectRef};
use crate::verbs::{DeleteOptions, Propagation};

impl Cluster {
    pub(super) fn owner_written(&mut self, at: &ObjectRef, object: &Object) {
        if meta::is_deleting(&object.value) {
            let finalizers = meta::finalizers(&object.value);
            if finalizers.contains(&ORPHAN) {
                self.orphan_dependents(at, meta::uid(&object.value));
                return;
            }
            if finalizers.contains(&FOREGROUND) {
                self.delete_dependents(at, meta::uid(&object.value));
                return;
            }
        }
        if !meta::owner_references(&object.value).is_empty() {
            self.check_owners(at);
        }
    }

    pub(super) fn owner_removed(&mut self, last: &Value) {
        for dependent in self.store.dependents(meta::uid(last)) {
            self.check_owners(&dependent);
        }
        for owner in meta::owner_references(last) {
            let uid = owner["uid"].as_str().unwrap_or_default();
            let Some(at) = self.store.find_uid(uid).cloned() else {
                continue;
            };
            if self.waits_for_dependents(&at) {
                self.delete_dependents(&at, uid);
            }
        }
    }

    /// Deletes an object whose owners are all gone, or going and waiting for it. While one owner stays, only the
    /// references to the others are taken away.
    fn check_owners(&mut self, at: &ObjectRef) {
        let Some(object) = self.store.get_ref(at).cloned() else {
            return;
        };
        if meta::is_deleting(&object.value) {
            return;
        }
        let (mut solid, mut waiting, mut gone) = (0, 0, 0);
        let mut kept = Vec::new();
        for owner in meta::owner_references(&object.value) {
            match self.owner_state(&object.value, owner) {
                OwnerState::Solid => {
                    solid += 1;
                    kept.push(owner.clone());
                }
                OwnerState::Waiting => waiting += 1,
                OwnerState::Gone => gone += 1,
            }
        }
        if solid > 0 {
            if waiting + gone > 0 {
                self.set_owners(at, kept);
            }
            return;
        }
        let has_dependents = !self.store.dependents(meta::uid(&object.value)).is_empty();
        let finalizers = meta::finalizers(&object.value);
        let propagation = if waiting > 0 && has_dependents {
            Propagation::Foreground
        } else if finalizers.contains(&ORPHAN) {
            Propagation::Orphan
        } else if finalizers.contains(&FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        // It exists and has no preconditions, so the delete can only be refused for what may never be deleted.
        let _ = self.delete_at(at, &DeleteOptions::with(propagation));
    }

    fn owner_state(&self, dependent: &Value, reference: &Value) -> OwnerState {
        let uid = reference["uid"].as_str().unwrap_or_default();
        let Some(at) = self.store.find_uid(uid) else {
            return OwnerState::Gone;
        };
        let Some(owner) = self.store.get_ref(at) else {
            return OwnerState::Gone;
        };
        // A namespaced owner in another namespace is no owner.
        let namespace = meta::namespace(&owner.value);
        if !namespace.is_empty() && namespace != meta::namespace(dependent) {
            return OwnerState::Gone;
        }
        if self.waits_for_dependents(at) {
            OwnerState::Waiting
        } else {
            OwnerState::Solid
        }
    }

    fn waits_for_dependents(&self, at: &ObjectRef) -> bool {
        self.store.get_ref(at).is_some_and(|object| {
            meta::is_deleting(&object.value) && meta::finalizers(&object.value).contains(&FOREGROUND)
        })
    }

    /// Foreground deletion: the owner is released when no dependent that blocks it is left.
    fn delete_dependents(&mut self, owner: &ObjectRef, uid: &str) {
        for dependent in self.store.dependents(uid) {
            self.check_owners(&dependent);
        }
        let blocked = self.store.dependents(uid).iter().any(|at| {
            self.store.get_ref(at).is_some_and(|dependent| {
                meta::owner_references(&dependent.value)
                    .iter()
                    .any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == true)
            })
        });
        if !blocked {
            self.drop_finalizer(owner, FOREGROUND);
        }
    }

    fn orphan_dependents(&mut self, owner: &ObjectRef, uid: &str) {
        for dependent in self.store.dependents(uid) {
            let Some(object) = self.store.get_ref(&dependent) else {
                continue;
            };
            let others = meta::owner_references(&object.value)
                .iter()
                .filter(|reference| reference["uid"] != uid);
            let others = others.cloned().collect();
            self.set_owners(&dependent, others);
        }
        self.drop_finalizer(owner, ORPHAN);
    }

    fn set_owners(&mut self, at: &ObjectRef, owners: Vec<Value>) {
        let Some(existing) = self.store.get_ref(at).cloned() else {
            return;
        };
        let mut new = existing.value.clone();
        let owners = (!owners.is_empty()).then_some(Value::Array(owners));
        meta::set_or_remove(meta::metadata_mut(&mut new), "ownerReferences", owners);
        self.store_update(at, &existing, new, false);
    }
}

enum OwnerState {
    Solid,
    /// Being deleted in the foreground: it waits for this very dependent.
    Waiting,
    Gone,
}
