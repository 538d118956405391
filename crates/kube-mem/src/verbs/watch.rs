//! Watches: from which position, with which objects first.

use std::sync::Arc;
use std::time::Duration;

use super::{Reply, list};
use crate::cluster::Cluster;
use crate::complaint;
use crate::encode::Encoder;
use crate::failure::Failure;
use crate::request::Request;
use crate::schema::FieldError;
use crate::store::Object;
use crate::watch::{Scope, Start, WatchOptions};

impl Cluster {
    pub(super) fn watch(&mut self, request: &Request) -> Result<Reply, Failure> {
        let errors = contradictions(request);
        if !errors.is_empty() {
            return Err(Failure::invalid_kind("meta.k8s.io", "ListOptions", "", &errors));
        }
        let scope = self.watched(request)?;
        let encoder = Encoder::of(request)?;
        let timeout = request
            .query
            .number("timeoutSeconds")?
            .and_then(|seconds| u64::try_from(seconds).ok());
        let bookmarks = request.query.flag("allowWatchBookmarks");
        let asked = list::version(request)?;
        let current = self.store.revision();
        let with_initial = match request.query.get("sendInitialEvents") {
            "" => asked.is_none(),
            _ => request.query.flag("sendInitialEvents"),
        };
        let collection = request.ty.collection.clone();
        let (start, revision) = if with_initial {
            if let Some(asked) = asked.filter(|asked| *asked > current) {
                return Err(Failure::too_large_version(asked, current));
            }
            let mark_end = bookmarks && !request.query.get("sendInitialEvents").is_empty();
            (
                Start::Initial {
                    objects: self.present(&collection, &scope),
                    mark_end,
                },
                current,
            )
        } else {
            let position = asked.unwrap_or(current);
            match self
                .store
                .collection(&collection)
                .and_then(|found| found.compacted_after(position))
            {
                Some(oldest) => (Start::Refused(too_old(position, oldest)), current),
                None => (Start::Position, position),
            }
        };
        let id = self.store.add_watcher(&collection, revision);
        Ok(Reply::Watch(Box::new(WatchOptions {
            collection,
            id,
            scope,
            encoder,
            start,
            revision,
            timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            bookmarks,
        })))
    }

    /// A watch on a named object is a watch on the collection with that name selected.
    fn watched(&self, request: &Request) -> Result<Scope, Failure> {
        let mut scope = list::scope(request)?;
        if !request.name.is_empty() {
            scope.selector.fields.require_name(&request.name);
        }
        Ok(scope)
    }

    fn present(&self, collection: &str, scope: &Scope) -> Vec<Arc<Object>> {
        let Some(collection) = self.store.collection(collection) else {
            return Vec::new();
        };
        let everything = scope.selector.is_everything();
        collection
            .range(&scope.namespace, None)
            .filter(|(_, object)| everything || scope.selector.matches(&object.value))
            .map(|(_, object)| object.clone())
            .collect()
    }
}

fn too_old(asked: u64, oldest: u64) -> Failure {
    Failure::expired(format!("too old resource version: {asked} ({oldest})"))
}

fn contradictions(request: &Request) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rule = request.query.get("resourceVersionMatch");
    let initial = !request.query.get("sendInitialEvents").is_empty();
    let forbidden = |detail| complaint::forbidden("resourceVersionMatch", detail);
    if initial && rule != "NotOlderThan" {
        errors.push(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if !rule.is_empty() {
        if !initial {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(forbidden(detail));
        }
        if rule != "NotOlderThan" {
            errors.push(complaint::not_supported(
                "resourceVersionMatch",
                &rule.into(),
                &["NotOlderThan"],
            ));
        }
        if !request.query.get("continue").is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    errors
}
