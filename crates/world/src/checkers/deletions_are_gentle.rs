//! No pod is deleted with zero grace; every pod deletion or eviction carries the UID (lifecycle.md 18.5). Pods are
//! deleted only to keep a deadline, otherwise they are evicted.

use http::Method;
use serde_json::Value;

use super::{Checker, Moment, Verdict};
use crate::{
    history::Deed,
    kubelet::pods::node_of,
    mirror::{Key, Mirror},
};

pub struct DeletionsAreGentle;

impl Checker for DeletionsAreGentle {
    fn name(&self) -> &'static str {
        "deletions are gentle"
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Deed::Request {
            method,
            path,
            query,
            body,
            code,
        } = deed
        else {
            return Ok(());
        };
        if let Some(key) = evicted_pod(method, path) {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            return has_uid(&body["deleteOptions"])
                .then_some(())
                .ok_or(format!("eviction of {key} without its UID"));
        }
        let Some(key) = deleted_pod(method, path) else {
            return Ok(());
        };
        let options: Value = serde_json::from_slice(body).unwrap_or_default();
        if options["gracePeriodSeconds"] == 0 || query.contains("gracePeriodSeconds=0") {
            return Err(format!("pod {key} deleted with zero grace"));
        }
        if !has_uid(&options) {
            return Err(format!("pod {key} deleted without its UID"));
        }
        if *code < 300 && !has_deadline(moment.scene, &key) {
            return Err(format!("pod {key} deleted though its node has no deadline"));
        }
        Ok(())
    }
}

fn has_uid(options: &Value) -> bool {
    options["preconditions"]["uid"].is_string()
}

/// The pod that a request evicts.
pub fn evicted_pod(method: &Method, path: &str) -> Option<Key> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "api", "v1", "namespaces", namespace, "pods", name, "eviction"] if *method == Method::POST => {
            Some(Key::new(namespace, name))
        }
        _ => None,
    }
}

/// The pod that a request deletes.
pub fn deleted_pod(method: &Method, path: &str) -> Option<Key> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "api", "v1", "namespaces", namespace, "pods", name] if *method == Method::DELETE => {
            Some(Key::new(namespace, name))
        }
        _ => None,
    }
}

fn has_deadline(scene: &Mirror, key: &Key) -> bool {
    let Some(pod) = scene.pods.get(key) else { return true };
    let Some(node) = node_of(&pod) else { return true };
    scene.node_claims.all().iter().any(|claim| {
        let is_its = claim
            .status
            .as_ref()
            .is_some_and(|status| status.node_name.as_deref() == Some(node));
        let annotations = claim.metadata.annotations.as_ref();
        is_its && annotations.is_some_and(|all| all.contains_key(api::labels::annotations::TERMINATION_TIMESTAMP))
    })
}
