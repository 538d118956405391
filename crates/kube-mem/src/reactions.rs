//! What the server does by itself after a write, before it answers.
//!
//! In a real cluster these are controllers that run a moment later. Here they run inside the request, to the end, in
//! the order in which the changes were made: nobody has to wait for them and no two runs differ.

mod definitions;
mod event_ttl;
mod namespaces;
mod owners;

use crate::cluster::{Cluster, Settled};
use crate::meta;
use crate::store::{Object, ObjectRef};

pub(crate) use definitions::{CLEANUP_FINALIZER, DEFINITIONS};
pub(crate) use namespaces::NAMESPACES;

impl Cluster {
    /// Lets every reaction run, and the reactions to those, until nothing is left to do.
    pub(crate) fn settle(&mut self) {
        while let Some(change) = self.unsettled.pop_front() {
            match change {
                Settled::Written(at) => self.after_write(&at),
                Settled::Removed { at, last } => self.after_removal(&at, &last),
            }
        }
    }

    fn after_write(&mut self, at: &ObjectRef) {
        // A later change of the same object has its own entry.
        let Some(object) = self.store.get_ref(at).cloned() else {
            return;
        };
        match &*at.collection {
            NAMESPACES => self.namespace_written(at, &object),
            DEFINITIONS => self.definition_written(at, &object),
            event_ttl::EVENTS => self.event_written(at, &object),
            _ => {}
        }
        self.owner_written(at, &object);
    }

    fn after_removal(&mut self, at: &ObjectRef, last: &Object) {
        match &*at.collection {
            NAMESPACES => self.namespace_removed(at),
            DEFINITIONS => self.definition_removed(&last.value),
            _ => {}
        }
        self.owner_removed(&last.value);
        self.namespace_content_removed(meta::namespace(&last.value));
        self.custom_resource_removed(&at.collection);
    }

    /// Takes one finalizer away; the object goes if it was the last thing that held it.
    pub(crate) fn drop_finalizer(&mut self, at: &ObjectRef, finalizer: &str) {
        let Some(existing) = self.store.get_ref(at).cloned() else {
            return;
        };
        let mut new = existing.value.clone();
        let kept: Vec<String> = meta::finalizers(&existing.value)
            .into_iter()
            .filter(|present| *present != finalizer)
            .map(str::to_owned)
            .collect();
        meta::set_finalizers(&mut new, &kept);
        self.store_update(at, &existing, new, false);
    }
}
