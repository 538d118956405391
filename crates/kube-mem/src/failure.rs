//! Refusals as the real server words them: a `Status` with code, reason, message and details.

use serde_json::{Value, json};

use crate::registry::{GroupResource, ResourceType};
use crate::schema::{FieldError, invalid_status};

/// Why a request was refused. Displays as the message of the `Status` that the client gets.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// Where an expired list can be gone on with, at the price of consistency.
    pub continue_token: Option<String>,
    /// What the writer should know besides.
    pub warnings: Vec<String>,
}

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        self.details = Some(details(&resource.group, &resource.plural, name));
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// The path names a resource that the group and version do not have.
    pub(crate) fn unknown_resource() -> Self {
        let mut failure = Self::new(404, "NotFound", "the server could not find the requested resource");
        failure.details = Some(json!({}));
        failure
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut failure = Self::new(405, "MethodNotAllowed", message);
        failure.details = Some(json!({}));
        failure
    }

    pub(crate) fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists")).about(resource, name)
    }

    pub(crate) fn conflict(resource: &GroupResource, name: &str, cause: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {cause}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The version that the writer saw is not the newest.
    pub(crate) fn stale(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(resource: &GroupResource, name: &str, cause: &str) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {cause}")
        } else {
            format!("{resource} {name:?} is forbidden: {cause}")
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    pub(crate) fn invalid(ty: &ResourceType, name: &str, errors: &[FieldError]) -> Self {
        // Inside the real server an event is of the core group, whichever way it came.
        let group = if ty.group == "events.k8s.io" { "" } else { &ty.group };
        Self::invalid_kind(group, &ty.kind, name, errors)
    }

    pub(crate) fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut status = invalid_status(group, kind, name, errors);
        let details = status["details"].take();
        let message = status["message"].as_str().unwrap_or_default();
        let mut failure = Self::new(422, "Invalid", message);
        failure.details = Some(without_empty(details));
        failure
    }

    /// An error that the real server did not foresee: its text, and nothing else.
    pub(crate) fn bare(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The client asked for a version that this server has not reached.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(504, "Timeout", message);
        failure.details = Some(json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        }));
        failure
    }

    pub(crate) fn retry_after_secs(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// The object that goes over the wire.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.as_str().into();
        }
        status
    }
}

/// The `details` of a `Status`; empty parts are left out, as in the real server's answers.
pub(crate) fn details(group: &str, kind: &str, name: &str) -> Value {
    without_empty(json!({ "name": name, "group": group, "kind": kind }))
}

fn without_empty(mut details: Value) -> Value {
    if let Some(map) = details.as_object_mut() {
        map.retain(|_, value| value != "");
    }
    details
}
