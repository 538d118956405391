//! Deletes: at once, after a grace period, or when the last finalizer is gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Reply, list};
use crate::cluster::Cluster;
use crate::complaint;
use crate::encode::Encoder;
use crate::failure::{self, Failure};
use crate::kinds;
use crate::meta::{self, FOREGROUND, ORPHAN};
use crate::registry::{GroupResource, ResourceType};
use crate::request::Request;
use crate::store::{Object, ObjectRef, key};

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub grace_secs: Option<i64>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub propagation: Option<Propagation>,
    pub dry_run: bool,
    /// The old way to ask for a cascade; it changes the status code of the answer.
    orphan_dependents: Option<bool>,
}

impl DeleteOptions {
    pub(crate) fn with(propagation: Propagation) -> Self {
        Self {
            propagation: Some(propagation),
            ..Self::default()
        }
    }

    /// From the body, or from the query if there is no body.
    fn of(request: &Request) -> Result<Self, Failure> {
        if request.body.is_empty() {
            let query = &request.query;
            return Self::parse(&json!({
                "gracePeriodSeconds": query.number("gracePeriodSeconds")?,
                "propagationPolicy": Some(query.get("propagationPolicy")).filter(|text| !text.is_empty()),
                "orphanDependents": (!query.get("orphanDependents").is_empty()).then(|| query.flag("orphanDependents")),
                "dryRun": query.all("dryRun"),
            }));
        }
        let mut options = Self::parse(&super::decode::body(request)?)?;
        options.dry_run |= !request.query.all("dryRun").is_empty();
        Ok(options)
    }

    /// *Errors*: 422 for contradictions and for values outside the closed lists.
    pub(super) fn parse(options: &Value) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy = options["propagationPolicy"].as_str();
        let orphan_dependents = options["orphanDependents"].as_bool();
        let propagation = match policy {
            None | Some("") => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(complaint::not_supported("propagationPolicy", &json!(other), &supported));
                None
            }
        };
        if policy.is_some() && orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(complaint::invalid("propagationPolicy", &json!(policy), detail));
        }
        let dry_run = meta::list(&options["dryRun"]);
        if dry_run.iter().any(|value| value != "All") {
            errors.push(complaint::not_supported("dryRun", &options["dryRun"], &["All"]));
        }
        if !errors.is_empty() {
            return Err(Failure::invalid_kind("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        Ok(Self {
            grace_secs: options["gracePeriodSeconds"].as_i64(),
            uid: text(&options["preconditions"]["uid"]),
            resource_version: text(&options["preconditions"]["resourceVersion"]),
            propagation,
            dry_run: !dry_run.is_empty(),
            orphan_dependents,
        })
    }

    /// The wanted fate of the dependents, if anybody said: the options, then finalizers, then the kind.
    fn fate_of_dependents(&self, ty: &ResourceType, object: &Value) -> Option<Propagation> {
        if !kinds::has_dependents(ty) {
            return None;
        }
        if let Some(orphan) = self.orphan_dependents {
            return Some(if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            });
        }
        if self.propagation.is_some() {
            return self.propagation;
        }
        let finalizers = meta::finalizers(object);
        if finalizers.contains(&ORPHAN) {
            return Some(Propagation::Orphan);
        }
        if finalizers.contains(&FOREGROUND) {
            return Some(Propagation::Foreground);
        }
        kinds::orphans_by_default(ty).then_some(Propagation::Orphan)
    }
}

/// What a delete did.
pub(crate) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
    /// It waits for its finalizers or its grace period.
    Waiting(Arc<Object>),
}

impl Cluster {
    pub(super) fn delete_object(&mut self, request: &Request) -> Result<Reply, Failure> {
        let options = DeleteOptions::of(request)?;
        self.existing(request)?;
        let at = ObjectRef {
            collection: request.ty.collection.clone(),
            key: key(&request.namespace, &request.name),
        };
        let mut warnings = Vec::new();
        if kinds::orphans_by_default(&request.ty) && options.propagation.is_none() && request.ty.kind == "Job" {
            warnings.push(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                 remove them or set propagationPolicy=Orphan to suppress this warning"
                    .to_owned(),
            );
        }
        let encoder = Encoder::of(request)?;
        let (code, bytes) = match self.delete_at(&at, &options)? {
            Deleted::Waiting(object) => {
                let code = if options.orphan_dependents == Some(false) {
                    202
                } else {
                    200
                };
                (code, encoder.object(&object, self.now))
            }
            Deleted::Gone(object) if kinds::returns_deleted_object(&request.ty) => {
                (200, encoder.object(&object, self.now))
            }
            Deleted::Gone(object) => (200, crate::encode::bytes_of(&success(&request.ty, &object.value))),
        };
        Ok(Reply::Bytes { code, bytes, warnings })
    }

    /// Deletes what a list with the same parameters would show.
    pub(super) fn delete_collection(&mut self, request: &Request) -> Result<Reply, Failure> {
        let scope = list::scope(request)?;
        let options = DeleteOptions::of(request)?;
        let reply = self.list(request)?;
        let found: Vec<ObjectRef> = match self.store.collection(&request.ty.collection) {
            Some(collection) => collection
                .range(&scope.namespace, None)
                .filter(|(_, object)| scope.selector.matches(&object.value))
                .map(|(key, _)| ObjectRef {
                    collection: request.ty.collection.clone(),
                    key: key.clone(),
                })
                .collect(),
            None => Vec::new(),
        };
        for at in found {
            match self.delete_at(&at, &options) {
                // Deleting one may have taken another with it.
                Err(failure) if failure.code != 404 => return Err(failure),
                _ => {}
            }
        }
        Ok(reply)
    }

    /// Deletes an object by its place. The server's own reactions delete by this door too.
    ///
    /// *Errors*: 404, 409 for preconditions that do not hold, 403 for what may not be deleted.
    pub(crate) fn delete_at(&mut self, at: &ObjectRef, options: &DeleteOptions) -> Result<Deleted, Failure> {
        let ty = self
            .registry
            .of_collection(&at.collection)
            .cloned()
            .ok_or_else(Failure::unknown_resource)?;
        let name = at.key.rsplit('/').next().unwrap_or_default();
        let existing = self
            .store
            .get_ref(at)
            .cloned()
            .ok_or_else(|| Failure::not_found(&ty.group_resource(), name))?;
        let old = &existing.value;
        preconditions(&ty, old, options)?;
        kinds::admit_delete(&ty, name)?;
        let grace = match graceful(&ty, old, options, self.now) {
            Grace::Pending => return Ok(Deleted::Waiting(existing)),
            other => other,
        };
        let mut new = old.clone();
        kinds::hold_deleted(&ty, &mut new);
        self.note_fate_of_dependents(&ty, &mut new, options);
        let held = !meta::finalizers(&new).is_empty() || !meta::list(&new["spec"]["finalizers"]).is_empty();
        match &grace {
            Grace::Set { timestamp, secs } => set_deletion(&mut new, timestamp.clone(), *secs),
            Grace::None if held => {
                mark_deleting(&mut new, self.now);
                // These two have their own way of going, without a grace period and without a new generation.
                if ty.is("", "namespaces") || ty.is("apiextensions.k8s.io", "customresourcedefinitions") {
                    let metadata = meta::metadata_mut(&mut new);
                    metadata.remove("deletionGracePeriodSeconds");
                    meta::set_or_remove(metadata, "generation", old["metadata"].get("generation").cloned());
                }
            }
            _ => {}
        }
        let waits = held || matches!(grace, Grace::Set { secs, .. } if secs > 0);
        if options.dry_run {
            let object = Object::unstored(new);
            return Ok(if waits {
                Deleted::Waiting(object)
            } else {
                Deleted::Gone(object)
            });
        }
        // A graceful delete is an update first, even if the grace is nothing: watchers see the mark before the removal.
        if waits || matches!(grace, Grace::Set { .. }) {
            let stored = self.store_update(at, &existing, new, false);
            if waits {
                return Ok(Deleted::Waiting(stored));
            }
        }
        let last = self.evict_from_store(at).unwrap_or(existing);
        Ok(Deleted::Gone(last))
    }

    /// The finalizers by which the garbage collection recognises what it has to do first.
    fn note_fate_of_dependents(&self, ty: &ResourceType, object: &mut Value, options: &DeleteOptions) {
        if !kinds::has_dependents(ty) {
            return;
        }
        let fate = options.fate_of_dependents(ty, object);
        let mut finalizers: Vec<String> = meta::finalizers(object)
            .into_iter()
            .filter(|finalizer| *finalizer != ORPHAN && *finalizer != FOREGROUND)
            .map(str::to_owned)
            .collect();
        match fate {
            Some(Propagation::Orphan) => finalizers.push(ORPHAN.to_owned()),
            Some(Propagation::Foreground) => finalizers.push(FOREGROUND.to_owned()),
            Some(Propagation::Background) | None => {}
        }
        meta::set_finalizers(object, &finalizers);
    }
}

/// How the grace period bears on a delete.
enum Grace {
    /// The kind knows no grace.
    None,
    /// It is being deleted already and this request does not shorten that.
    Pending,
    Set {
        timestamp: String,
        secs: i64,
    },
}

fn graceful(ty: &ResourceType, object: &Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    if !kinds::deletes_gracefully(ty) {
        return Grace::None;
    }
    // A negative period counts as one second.
    let asked = options.grace_secs.map(|secs| if secs < 0 { 1 } else { secs });
    if meta::is_deleting(object) {
        let current = match meta::deletion_grace_secs(object) {
            None | Some(0) => return Grace::None,
            Some(secs) => secs,
        };
        let Some(mut secs) = asked.filter(|secs| *secs < current) else {
            return Grace::Pending;
        };
        let deadline: Timestamp = meta::text(object, "deletionTimestamp").parse().unwrap_or(now);
        let mut moved = deadline - SignedDuration::from_secs(current) + SignedDuration::from_secs(secs);
        if moved < now {
            moved = now;
            secs = secs.min(1);
        }
        return Grace::Set {
            timestamp: meta::stamp(moved),
            secs,
        };
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let terminal = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let unbound = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let secs = if terminal || unbound { 0 } else { asked.unwrap_or(own) };
    let secs = if secs < 0 { 1 } else { secs };
    Grace::Set {
        timestamp: meta::stamp(now + SignedDuration::from_secs(secs)),
        secs,
    }
}

fn set_deletion(object: &mut Value, timestamp: String, secs: i64) {
    bump_generation_once(object);
    let metadata = meta::metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), timestamp.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), secs.into());
}

/// Kinds without grace are marked too, if finalizers hold them.
fn mark_deleting(object: &mut Value, now: Timestamp) {
    bump_generation_once(object);
    let later = meta::text(object, "deletionTimestamp")
        .parse::<Timestamp>()
        .map_or(true, |deadline| deadline > now);
    let metadata = meta::metadata_mut(object);
    if later {
        metadata.insert("deletionTimestamp".to_owned(), meta::stamp(now).into());
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
}

/// The first mark counts as a change of what is wanted.
fn bump_generation_once(object: &mut Value) {
    let generation = meta::generation(object);
    if !meta::is_deleting(object) && generation > 0 {
        meta::metadata_mut(object).insert("generation".to_owned(), (generation + 1).into());
    }
}

pub(super) fn preconditions(ty: &ResourceType, object: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    // The real server names the kind where its other conflicts name the resource.
    let subject = GroupResource {
        group: ty.group.clone(),
        plural: ty.kind.clone(),
    };
    let name = meta::name(object);
    let uid = meta::uid(object);
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let cause = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        );
        return Err(Failure::conflict(&subject, name, &cause));
    }
    let version = meta::text(object, "resourceVersion");
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        let cause = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Failure::conflict(&subject, name, &cause));
    }
    Ok(())
}

fn success(ty: &ResourceType, object: &Value) -> Value {
    let mut details = failure::details(&ty.group, &ty.plural, meta::name(object));
    details["uid"] = meta::uid(object).into();
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
