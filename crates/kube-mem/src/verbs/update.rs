//! Replaces an object: the same version, the same identity, one half of it at a time.

use std::sync::Arc;

use serde_json::Value;

use super::Written;
use super::create::{Ownership, place};
use super::decode::{self, WriteOptions};
use crate::cluster::Cluster;
use crate::complaint;
use crate::failure::Failure;
use crate::kinds;
use crate::meta;
use crate::request::Request;
use crate::store::{Object, ObjectRef, key};

impl Cluster {
    pub(super) fn update_object(&mut self, request: &Request) -> Result<Written, Failure> {
        let options = WriteOptions::of(request, "UpdateOptions")?;
        let mut object = decode::object(request, &self.registry)?;
        let warnings = decode::without_unknown_fields(&request.ty, &mut object, options.validation)?;
        let warned = |failure: Failure| failure.warned(&warnings);
        name_matches(request, &object).map_err(warned)?;
        let existing = self.find(&request.ty, &request.namespace, &request.name).cloned();
        let creates = kinds::creates_on_update(&request.ty) && request.subresource.is_empty();
        if existing.is_some() || creates {
            let uid = existing.as_ref().map_or("", |existing| meta::uid(&existing.value));
            same_uid(request, &object, uid).map_err(warned)?;
        }
        match existing {
            Some(existing) => {
                let object = decode::to_stored(&request.ty, object);
                self.replace(request, &existing, object, &options, Ownership::Record, warnings)
            }
            None if creates => self.create(request, object, &options, Ownership::Record, warnings),
            None => Err(warned(Failure::not_found(&request.ty.group_resource(), &request.name))),
        }
    }

    /// Stores a new state of an existing object, in its stored form.
    pub(super) fn replace(
        &mut self,
        request: &Request,
        existing: &Arc<Object>,
        new: Value,
        options: &WriteOptions,
        ownership: Ownership,
        warnings: Vec<String>,
    ) -> Result<Written, Failure> {
        match self.replace_known(request, existing, new, options, ownership) {
            Ok(object) => Ok(Written {
                code: 200,
                object,
                warnings,
            }),
            Err(failure) => Err(failure.warned(&warnings)),
        }
    }

    fn replace_known(
        &mut self,
        request: &Request,
        existing: &Arc<Object>,
        mut new: Value,
        options: &WriteOptions,
        ownership: Ownership,
    ) -> Result<Arc<Object>, Failure> {
        let (ty, old) = (&request.ty, &existing.value);
        let name = meta::name(old).to_owned();
        place(ty, &mut new, &request.namespace)?;
        same_object(request, &new, existing)?;
        keep_identity(&mut new, old);
        kinds::default(ty, &mut new);
        let subresource = request.subresource_name();
        if ownership == Ownership::Record {
            kinds::record_fields(ty, Some(old), &mut new, &options.manager, subresource, &self.stamp());
        }
        kinds::prepare_update(ty, subresource, &mut new, old);
        let errors = kinds::validate(ty, &new, Some(old), subresource);
        if !errors.is_empty() {
            return Err(Failure::invalid(ty, &name, &errors));
        }
        let at = ObjectRef {
            collection: ty.collection.clone(),
            key: key(&request.namespace, &name),
        };
        Ok(self.store_update(&at, existing, new, options.dry_run))
    }

    /// Writes the new state, or removes the object if the update took away the last thing that held it.
    pub(crate) fn store_update(
        &mut self,
        at: &ObjectRef,
        existing: &Arc<Object>,
        new: Value,
        dry_run: bool,
    ) -> Arc<Object> {
        if is_released(&new, &existing.value) {
            if !dry_run {
                self.evict_from_store(at);
            }
            return Object::unstored(new);
        }
        if same_content(&new, &existing.value) {
            return existing.clone();
        }
        if dry_run {
            Object::unstored(new)
        } else {
            self.commit(at, new)
        }
    }
}

/// An object that waits for deletion goes as soon as nothing holds it any more.
fn is_released(new: &Value, old: &Value) -> bool {
    let held = !meta::finalizers(new).is_empty() || !meta::list(&new["spec"]["finalizers"]).is_empty();
    !held && meta::is_deleting(old) && meta::deletion_grace_secs(old).is_none_or(|secs| secs == 0)
}

/// True if nothing changed but the times at which managers last wrote. The version is kept then, so that controllers
/// that write the same again and again do not wake each other.
fn same_content(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return new == old;
    };
    let same_keys = new.len() == old.len();
    same_keys
        && new.iter().all(|(key, value)| match (key.as_str(), old.get(key)) {
            ("metadata", Some(old)) => same_metadata(value, old),
            (_, Some(old)) => value == old,
            (_, None) => false,
        })
}

fn same_metadata(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return new == old;
    };
    new.len() == old.len()
        && new.iter().all(|(key, value)| match (key.as_str(), old.get(key)) {
            ("managedFields", Some(old)) => same_managers(meta::list(value), meta::list(old)),
            (_, Some(old)) => value == old,
            (_, None) => false,
        })
}

fn same_managers(new: &[Value], old: &[Value]) -> bool {
    let same = |(new, old): (&Value, &Value)| {
        [
            "manager",
            "operation",
            "apiVersion",
            "fieldsType",
            "fieldsV1",
            "subresource",
        ]
        .iter()
        .all(|field| new[field] == old[field])
    };
    new.len() == old.len() && new.iter().zip(old).all(same)
}

/// The name in the body is the name in the path.
pub(super) fn name_matches(request: &Request, object: &Value) -> Result<(), Failure> {
    let said = meta::name(object);
    if said.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.name
        )));
    }
    if said != request.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({})",
            request.name
        )));
    }
    let namespace = meta::namespace(object);
    if !namespace.is_empty() && namespace != request.namespace {
        return Err(Failure::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            request.namespace
        )));
    }
    Ok(())
}

/// A whole object that names a uid is meant for that object only.
fn same_uid(request: &Request, new: &Value, uid: &str) -> Result<(), Failure> {
    let said = meta::uid(new);
    if said.is_empty() || said == uid {
        return Ok(());
    }
    let cause = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {said}, UID in object meta: {uid}",
        kinds::storage_key(&request.ty, &request.namespace, &request.name)
    );
    Err(Failure::conflict(&request.ty.group_resource(), &request.name, &cause))
}

/// The writer has seen the newest version of this very object.
fn same_object(request: &Request, new: &Value, existing: &Object) -> Result<(), Failure> {
    let (ty, name) = (&request.ty, meta::name(&existing.value));
    let resource = ty.group_resource();
    match meta::text(new, "resourceVersion") {
        "" | "0" if kinds::updates_unconditionally(ty) => Ok(()),
        "" | "0" => {
            let missing = complaint::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
            Err(Failure::invalid_kind(&ty.group, &ty.plural, name, &[missing]))
        }
        said => match said.parse::<u64>() {
            Ok(said) if said == existing.revision => Ok(()),
            Ok(_) => Err(Failure::stale(&resource, name)),
            Err(_) => Err(Failure::bare(format!(
                "strconv.ParseUint: parsing {said:?}: invalid syntax"
            ))),
        },
    }
}

/// What no update can change.
fn keep_identity(new: &mut Value, old: &Value) {
    let metadata = meta::metadata_mut(new);
    metadata.remove("selfLink");
    // A patch that changes these is refused, so they are only completed.
    for field in ["name", "namespace", "uid"] {
        if let Some(own) = old["metadata"].get(field) {
            meta::set_default(metadata, field, own.clone());
        }
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "resourceVersion",
    ] {
        meta::set_or_remove(metadata, field, old["metadata"].get(field).cloned());
    }
}
