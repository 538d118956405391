//! Creates an object: complete it, admit it, check it, store it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Written;
use super::decode::{self, WriteOptions};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::kinds;
use crate::meta;
use crate::registry::ResourceType;
use crate::request::Request;
use crate::store::{Object, ObjectRef, key};

impl Cluster {
    pub(super) fn create_object(&mut self, request: &Request) -> Result<Written, Failure> {
        let options = WriteOptions::of(request, "CreateOptions")?;
        let mut object = decode::object(request, &self.registry)?;
        let warnings = decode::without_unknown_fields(&request.ty, &mut object, options.validation)?;
        self.create(request, object, &options, Ownership::Record, warnings)
    }

    /// Stores a new object of the request's type. The object is in the request's version and has no unknown fields.
    pub(super) fn create(
        &mut self,
        request: &Request,
        object: Value,
        options: &WriteOptions,
        ownership: Ownership,
        warnings: Vec<String>,
    ) -> Result<Written, Failure> {
        match self.create_known(request, object, options, ownership) {
            Ok(object) => Ok(Written {
                code: 201,
                object,
                warnings,
            }),
            Err(failure) => Err(failure.warned(&warnings)),
        }
    }

    fn create_known(
        &mut self,
        request: &Request,
        object: Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Arc<Object>, Failure> {
        let ty = &request.ty;
        if ty.namespaced && request.namespace.is_empty() {
            return Err(Failure::method_not_allowed());
        }
        let mut object = decode::to_stored(ty, object);
        place(ty, &mut object, &request.namespace)?;
        self.name(&mut object);
        kinds::default(ty, &mut object);
        // What the server adds from here on belongs to nobody.
        if ownership == Ownership::Record && self.tracks_managers {
            kinds::record_fields(ty, None, &mut object, &options.manager, None, &self.stamp());
        }
        self.admit_namespace(ty, &request.namespace, meta::name(&object))?;
        kinds::admit(self, ty, &mut object)?;
        self.fill_system_fields(&mut object);
        kinds::prepare_create(self, ty, &mut object);
        let errors = kinds::validate(ty, &object, None, None);
        let name = meta::name(&object).to_owned();
        if !errors.is_empty() {
            return Err(Failure::invalid(ty, &name, &errors));
        }
        let at = ObjectRef {
            collection: ty.collection.clone(),
            key: key(&request.namespace, &name),
        };
        if let Some(existing) = self.store.get_ref(&at) {
            let mut failure = Failure::already_exists(&ty.group_resource(), &name);
            if meta::is_deleting(&existing.value) {
                failure.message.insert_str(0, "object is being deleted: ");
            }
            return Err(failure);
        }
        // What comes back from storage is defaulted once more, so the default of a status outlives its removal.
        if ty.custom.is_some() {
            kinds::default(ty, &mut object);
        }
        Ok(if options.dry_run {
            Object::unstored(object)
        } else {
            self.commit(&at, object)
        })
    }

    /// Creates one of the server's own objects; it is well formed.
    pub(crate) fn create_own(&mut self, ty: &Arc<ResourceType>, mut object: Value) {
        object["apiVersion"] = ty.api_version().into();
        object["kind"] = ty.kind.clone().into();
        kinds::default(ty, &mut object);
        self.fill_system_fields(&mut object);
        kinds::prepare_create(self, ty, &mut object);
        let at = ObjectRef {
            collection: ty.collection.clone(),
            key: key(meta::namespace(&object), meta::name(&object)),
        };
        if self.tracks_managers {
            kinds::record_fields(ty, None, &mut object, "kube-apiserver", None, &self.stamp());
        }
        self.commit(&at, object);
    }

    /// Generates the name if only its beginning is given. An object without either is refused with all its other faults.
    fn name(&mut self, object: &mut Value) {
        if !meta::name(object).is_empty() {
            return;
        }
        let base = meta::text(object, "generateName").to_owned();
        if base.is_empty() {
            return;
        }
        let name = self.ids.generated_name(&base);
        meta::metadata_mut(object).insert("name".to_owned(), name.into());
    }

    /// New content needs a namespace that exists and stays.
    fn admit_namespace(&self, ty: &ResourceType, namespace: &str, name: &str) -> Result<(), Failure> {
        if !ty.namespaced {
            return Ok(());
        }
        let Some(found) = self.store.get("namespaces", namespace) else {
            let namespaces = crate::registry::GroupResource {
                group: String::new(),
                plural: "namespaces".to_owned(),
            };
            return Err(Failure::not_found(&namespaces, namespace));
        };
        if !meta::is_deleting(&found.value) {
            return Ok(());
        }
        let cause = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Failure::forbidden(&ty.group_resource(), name, &cause);
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(failure)
    }

    fn fill_system_fields(&mut self, object: &mut Value) {
        let (uid, now) = (self.ids.uid(), self.stamp());
        let metadata = meta::metadata_mut(object);
        for own in [
            "resourceVersion",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ] {
            metadata.remove(own);
        }
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), now.into());
    }
}

/// Whether a write still has to be entered in the managed fields. An apply has done so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    Record,
    Recorded,
}

/// Puts an object into the namespace of the request.
///
/// *Errors*: 400 if it names another one.
pub(super) fn place(ty: &ResourceType, object: &mut Value, namespace: &str) -> Result<(), Failure> {
    let said = meta::namespace(object);
    if ty.namespaced {
        if !said.is_empty() && said != namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta::metadata_mut(object).insert("namespace".to_owned(), namespace.into());
    } else {
        meta::metadata_mut(object).remove("namespace");
    }
    Ok(())
}
