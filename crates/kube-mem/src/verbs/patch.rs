//! Patches: four media types, one way into the store.

use serde_json::{Value, json};

use super::Written;
use super::create::Ownership;
use super::decode::{self, FieldValidation, WriteOptions};
use super::update::name_matches;
use crate::cluster::Cluster;
use crate::complaint;
use crate::encode;
use crate::failure::Failure;
use crate::kinds;
use crate::meta;
use crate::patch::{self, ApplyError, ApplyOptions, Conflict, PatchError};
use crate::request::Request;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl Cluster {
    pub(super) fn patch_object(&mut self, request: &Request) -> Result<Written, Failure> {
        let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
        if media_type == APPLY {
            return self.apply_object(request);
        }
        if ![JSON, MERGE, STRATEGIC].contains(&media_type) || (media_type == STRATEGIC && request.ty.custom.is_some()) {
            return Err(unsupported(request));
        }
        let options = WriteOptions::of(request, "PatchOptions")?;
        if request.query.flag("force") {
            let forbidden = complaint::forbidden("force", "may not be specified for non-apply patch");
            return Err(Failure::invalid_kind("meta.k8s.io", "PatchOptions", "", &[forbidden]));
        }
        let existing = self.existing(request)?.clone();
        let current = encode::in_version(&request.ty, &existing.value);
        let patch = patch_body(request, media_type)?;
        let patched = || {
            match media_type {
                JSON => patch::json(&current, &patch),
                MERGE => Ok(patch::merge(&current, &patch)),
                _ => patch::strategic(&request.ty.gvk(), &current, &patch),
            }
            .map_err(|cause| refused(&cause, &patch))
        };
        let mut object = patched()?;
        self.checked_identity(request, &object)?;
        let unknown = match kinds::fit(&request.ty, &mut object) {
            Ok(unknown) => unknown,
            // What does not fit is the patch's fault, not the object's.
            Err(cause) => {
                let shown = match media_type {
                    STRATEGIC => patch::go_text(&patch),
                    _ => patched()?.to_string(),
                };
                let unfit = complaint::invalid("patch", &json!(shown), &cause);
                return Err(Failure::invalid_kind("", "", "", &[unfit]));
            }
        };
        let warnings = strict_patch(&object, &unknown, options.validation)?;
        let object = decode::to_stored(&request.ty, object);
        self.replace(request, &existing, object, &options, Ownership::Record, warnings)
    }

    fn apply_object(&mut self, request: &Request) -> Result<Written, Failure> {
        let options = WriteOptions::of(request, "PatchOptions")?;
        if request.query.get("fieldManager").is_empty() {
            let missing = complaint::required("fieldManager", "is required for apply patch");
            return Err(Failure::invalid_kind("meta.k8s.io", "PatchOptions", "", &[missing]));
        }
        let applied = decode::typed(decode::yaml(&request.body)?, &request.ty, &self.registry)?;
        let existing = self.find(&request.ty, &request.namespace, &request.name).cloned();
        if existing.is_none() && !request.subresource.is_empty() {
            return Err(Failure::not_found(&request.ty.group_resource(), &request.name));
        }
        let live = existing
            .as_ref()
            .map(|object| encode::in_version(&request.ty, &object.value));
        let now = self.stamp();
        let how = ApplyOptions {
            manager: &options.manager,
            force: request.query.flag("force"),
            subresource: request.subresource_name(),
            now: &now,
        };
        let mut object = kinds::with_types(&request.ty, |types| patch::apply(live.as_deref(), &applied, how, types))
            .map_err(|cause| apply_refused(&cause))?;
        readable(request, &applied, &mut object)?;
        let warnings = unknown_applied(request, &applied, options.validation)?;
        name_matches(request, &object)?;
        match existing {
            Some(existing) => {
                let object = decode::to_stored(&request.ty, object);
                self.replace(request, &existing, object, &options, Ownership::Recorded, warnings)
            }
            None => {
                if !meta::uid(&applied).is_empty() {
                    let uid = meta::uid(&applied);
                    let cause = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(Failure::conflict(&request.ty.group_resource(), &request.name, &cause));
                }
                self.create(request, object, &options, Ownership::Recorded, warnings)
            }
        }
    }

    /// A patch cannot turn an object into another one.
    fn checked_identity(&self, request: &Request, patched: &Value) -> Result<(), Failure> {
        if patched["kind"] != request.ty.kind.as_str() || patched["apiVersion"] != request.ty.api_version() {
            let error = complaint::invalid(
                "patch",
                &json!(patched.to_string()),
                "the type of an object cannot be changed",
            );
            return Err(Failure::invalid_kind("", "", "", &[error]));
        }
        if request.ty.namespaced && meta::namespace(patched) != request.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        name_matches(request, patched)
    }
}

fn unsupported(request: &Request) -> Failure {
    if request.ty.custom.is_some() {
        return Failure::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {JSON}, {MERGE}, {APPLY}"
        ));
    }
    let mut failure = Failure::unsupported_media_type("415: Unsupported Media Type");
    failure.details = Some(json!({}));
    failure
}

fn patch_body(request: &Request, media_type: &str) -> Result<Value, Failure> {
    let malformed = |cause: String| Failure::bad_request(format!("error decoding patch: {cause}"));
    let patch: Value = serde_json::from_slice(&request.body).map_err(|cause| malformed(cause.to_string()))?;
    if media_type == JSON && !patch.is_array() {
        return Err(malformed(
            "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".to_owned(),
        ));
    }
    Ok(patch)
}

/// Unknown fields in a patch are refused with another status than in a whole object.
fn strict_patch(object: &Value, unknown: &[String], validation: FieldValidation) -> Result<Vec<String>, Failure> {
    let warnings = decode::unknown_field_texts(unknown);
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(warnings),
        FieldValidation::Strict if warnings.is_empty() => Ok(warnings),
        FieldValidation::Strict => {
            let detail = format!("strict decoding error: {}", warnings.join(", "));
            let error = complaint::invalid("patch", &json!(object.to_string()), &detail);
            Err(Failure::invalid_kind("", "", "", &[error]))
        }
    }
}

fn refused(cause: &PatchError, patch: &Value) -> Failure {
    match cause {
        // A list of operations is well formed, whatever the operations are; the real server finds out on applying it.
        PatchError::Malformed(text) if !patch.is_array() => Failure::bad_request(text),
        PatchError::Internal(text) => Failure::bare(text),
        PatchError::Malformed(_) | PatchError::Unprocessable(_) => {
            let message = "the server rejected our request due to an error in our request";
            let mut failure = Failure::new(422, "Invalid", message);
            failure.details = Some(json!({}));
            failure
        }
    }
}

/// What is unknown in an applied object is told or refused as in a whole one. It is removed later, with the rest.
fn unknown_applied(request: &Request, applied: &Value, validation: FieldValidation) -> Result<Vec<String>, Failure> {
    decode::without_unknown_fields(&request.ty, &mut applied.clone(), validation)
}

/// Brings the merged object into the shape of its kind.
///
/// *Errors*: 500 for a value that has the right type and still cannot be read, as on a real server.
fn readable(request: &Request, applied: &Value, object: &mut Value) -> Result<(), Failure> {
    let ty = &request.ty;
    kinds::fit(ty, object).map(|_| ()).map_err(|cause| {
        let gvk = format!("{}/{}, Kind={}", ty.group, ty.version, ty.kind);
        let place = format!("{}/{}; {gvk}", meta::namespace(applied), meta::name(applied));
        // Times have a reader of their own.
        let reader = if cause.starts_with("parsing time") {
            ""
        } else {
            "error decoding from json: "
        };
        Failure::new(
            500,
            "",
            format!(
                "failed to convert new object ({place}) to proper version: unable to convert unstructured object to \
                 {gvk}: {reader}{cause}"
            ),
        )
    })
}

fn apply_refused(cause: &ApplyError) -> Failure {
    match cause {
        ApplyError::Malformed(text) => Failure::bad_request(text),
        ApplyError::Untyped(text) => Failure::new(500, "", text),
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .iter()
                .map(|conflict| {
                    json!({
                        "reason": "FieldManagerConflict",
                        "message": format!("conflict with {}", conflict.manager),
                        "field": conflict.field,
                    })
                })
                .collect();
            let mut failure = Failure::new(409, "Conflict", conflict_message(conflicts));
            failure.details = Some(json!({ "causes": causes }));
            failure
        }
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.manager, only.field
        );
    }
    let mut lines = Vec::new();
    for (at, Conflict { manager, field }) in conflicts.iter().enumerate() {
        // Conflicts of one manager stand together.
        if at == 0 || conflicts[at - 1].manager != *manager {
            lines.push(format!("conflicts with {manager}:"));
        }
        lines.push(format!("- {field}"));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
