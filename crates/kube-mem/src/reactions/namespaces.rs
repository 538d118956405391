//! A namespace that is deleted takes its contents with it, and goes when they are gone.

use crate::cluster::Cluster;
use crate::meta;
use crate::store::{Object, ObjectRef};
use crate::verbs::{DeleteOptions, Propagation};

pub(crate) const NAMESPACES: &str = "namespaces";

impl Cluster {
    pub(super) fn namespace_written(&mut self, at: &ObjectRef, object: &Object) {
        if !meta::is_deleting(&object.value) || !self.terminating.insert(at.key.to_string()) {
            return;
        }
        for content in self.contents(&at.key) {
            // Contents that hold out, by finalizers or grace, are waited for.
            let _ = self.delete_at(&content, &DeleteOptions::with(Propagation::Background));
        }
        self.finish_namespace(&at.key);
    }

    pub(super) fn namespace_removed(&mut self, at: &ObjectRef) {
        self.terminating.remove(&*at.key);
    }

    pub(super) fn namespace_content_removed(&mut self, namespace: &str) {
        if self.terminating.contains(namespace) {
            self.finish_namespace(namespace);
        }
    }

    fn contents(&self, namespace: &str) -> Vec<ObjectRef> {
        let mut contents = Vec::new();
        for (name, collection) in self.store.collections() {
            if !self.registry.of_collection(name).is_some_and(|ty| ty.namespaced) {
                continue;
            }
            contents.extend(collection.range(namespace, None).map(|(key, _)| ObjectRef {
                collection: name.clone(),
                key: key.clone(),
            }));
        }
        contents
    }

    fn finish_namespace(&mut self, namespace: &str) {
        let empty = self.store.collections().all(|(name, collection)| {
            let namespaced = self.registry.of_collection(name).is_some_and(|ty| ty.namespaced);
            !namespaced || collection.range(namespace, None).next().is_none()
        });
        if !empty {
            return;
        }
        let at = ObjectRef {
            collection: NAMESPACES.into(),
            key: namespace.into(),
        };
        let Some(existing) = self.store.get_ref(&at).cloned() else {
            return;
        };
        let mut new = existing.value.clone();
        meta::map_mut(&mut new, "spec").remove("finalizers");
        self.store_update(&at, &existing, new, false);
    }
}
