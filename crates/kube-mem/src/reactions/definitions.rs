//! Custom resource definitions: what is written starts to be served, what is deleted takes its objects along.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::meta;
use crate::registry::{ResourceType, served_versions};
use crate::store::{Object, ObjectRef};
use crate::verbs::{DeleteOptions, Propagation};

pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Cluster {
    pub(super) fn definition_written(&mut self, at: &ObjectRef, object: &Object) {
        let definition = &object.value;
        if meta::is_deleting(definition) {
            self.delete_custom_resources(at, definition);
            return;
        }
        let (group, plural) = names(definition);
        self.registry.remove_custom(group, plural);
        // The schema was compiled when the definition was validated, so an error here has been answered already.
        for ty in served_versions(definition).unwrap_or_default() {
            self.registry.add_custom(ty);
        }
    }

    pub(super) fn definition_removed(&mut self, definition: &Value) {
        let (group, plural) = names(definition);
        self.registry.remove_custom(group, plural);
        self.store
            .drop_collection(&ResourceType::collection_name(group, plural));
    }

    pub(super) fn custom_resource_removed(&mut self, collection: &str) {
        let custom = self
            .registry
            .of_collection(collection)
            .is_some_and(|ty| ty.custom.is_some());
        if !custom {
            return;
        }
        let at = ObjectRef {
            collection: DEFINITIONS.into(),
            key: collection.into(),
        };
        let Some(definition) = self.store.get_ref(&at).cloned() else {
            return;
        };
        if meta::is_deleting(&definition.value) {
            self.finish_definition(&at, collection);
        }
    }

    fn delete_custom_resources(&mut self, at: &ObjectRef, definition: &Value) {
        if !meta::finalizers(definition).contains(&CLEANUP_FINALIZER) {
            return;
        }
        let (group, plural) = names(definition);
        let collection = ResourceType::collection_name(group, plural);
        let objects: Vec<ObjectRef> = match self.store.collection(&collection) {
            Some(found) => found
                .range("", None)
                .filter(|(_, object)| !meta::is_deleting(&object.value))
                .map(|(key, _)| ObjectRef {
                    collection: collection.clone(),
                    key: key.clone(),
                })
                .collect(),
            None => Vec::new(),
        };
        for object in objects {
            // Objects with finalizers are waited for.
            let _ = self.delete_at(&object, &DeleteOptions::with(Propagation::Background));
        }
        self.finish_definition(at, &collection);
    }

    fn finish_definition(&mut self, at: &ObjectRef, collection: &str) {
        if self.store.collection(collection).is_none_or(|found| found.len() == 0) {
            self.drop_finalizer(at, CLEANUP_FINALIZER);
        }
    }
}

fn names(definition: &Value) -> (&str, &str) {
    let spec = &definition["spec"];
    (
        spec["group"].as_str().unwrap_or_default(),
        spec["names"]["plural"].as_str().unwrap_or_default(),
    )
}
