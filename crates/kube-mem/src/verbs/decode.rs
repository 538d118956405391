//! From the body of a request to an object of the requested type, and the options of a write.

use serde_json::{Value, json};

use crate::complaint;
use crate::events;
use crate::failure::Failure;
use crate::kinds;
use crate::meta;
use crate::protobuf;
use crate::registry::{Gvk, Registry, ResourceType};
use crate::request::Request;

const MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// What to do about fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options that all writes have.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub dry_run: bool,
    pub manager: String,
    pub validation: FieldValidation,
}

impl WriteOptions {
    /// *Errors*: 422 for values outside the closed lists; `kind` is the kind of options that the message names.
    pub(crate) fn of(request: &Request, kind: &str) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let dry_run = request.query.all("dryRun");
        if dry_run.iter().any(|value| value != "All") {
            errors.push(complaint::not_supported("dryRun", &json!(dry_run), &["All"]));
        }
        let validation = match request.query.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(complaint::not_supported("fieldValidation", &json!(other), &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Failure::invalid_kind("meta.k8s.io", kind, "", &errors));
        }
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            manager: request.field_manager(),
            validation,
        })
    }
}

/// The body as a value, from JSON or YAML.
pub(super) fn body(request: &Request) -> Result<Value, Failure> {
    let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => serde_json::from_slice(&request.body).map_err(|cause| {
            let (kind, shown) = (&request.ty.kind, String::from_utf8_lossy(&request.body));
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
                 error: {cause} ({shown})"
            ))
        }),
        "application/yaml" => yaml(&request.body),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&request.body).map_err(Failure::bad_request),
        _ => Err(Failure::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES}"
        ))),
    }
}

/// YAML includes JSON, so bodies that may be either are read with this.
pub(super) fn yaml(bytes: &[u8]) -> Result<Value, Failure> {
    let malformed = |cause: String| Failure::bad_request(format!("error decoding YAML: {cause}"));
    // Clients that could send YAML mostly send JSON, which is much faster to read.
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = std::str::from_utf8(bytes).map_err(|cause| malformed(cause.to_string()))?;
    serde_saphyr::from_str(text).map_err(|cause| malformed(cause.to_string()))
}

/// The body as an object of the request's own type.
///
/// *Errors*: 400 if it says that it is something else.
pub(super) fn object(request: &Request, registry: &Registry) -> Result<Value, Failure> {
    typed(body(request)?, &request.ty, registry)
}

/// Checks and completes what an object says about its type.
pub(super) fn typed(mut object: Value, ty: &ResourceType, registry: &Registry) -> Result<Value, Failure> {
    let (api_version, kind) = (ty.api_version(), ty.kind.as_str());
    if !object.is_object() {
        return Err(unfit(ty, kind, "json: cannot unmarshal into Go value"));
    }
    let said = |key: &str| object[key].as_str().unwrap_or_default();
    let (said_version, said_kind) = (said("apiVersion"), said("kind"));
    let same_version = said_version.is_empty() || said_version == api_version;
    let same_kind = said_kind.is_empty() || said_kind == kind;
    if !same_version || !same_kind {
        return Err(other_type(ty, &object, registry));
    }
    // A custom resource has no type but the one that it says.
    if ty.custom.is_some() && said_kind.is_empty() {
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{object}'"
        )));
    }
    let Some(fields) = object.as_object_mut() else {
        return Ok(object);
    };
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    match fields.get("metadata") {
        None | Some(Value::Null) => {
            fields.insert("metadata".to_owned(), json!({}));
        }
        Some(Value::Object(_)) => {}
        Some(_) => return Err(unfit(ty, kind, "json: cannot unmarshal metadata into an object")),
    }
    Ok(object)
}

/// The object is of another type than the path.
fn other_type(ty: &ResourceType, object: &Value, registry: &Registry) -> Failure {
    let said = |key: &str| object[key].as_str().unwrap_or_default();
    let (said_version, said_kind, name) = (said("apiVersion"), said("kind"), meta::name(object));
    let expected = ty.api_version();
    let said_version = if said_version.is_empty() {
        expected.as_str()
    } else {
        said_version
    };
    let (group, version) = said_version.rsplit_once('/').unwrap_or(("", said_version));
    let said_kind = if said_kind.is_empty() {
        ty.kind.as_str()
    } else {
        said_kind
    };
    let mismatch =
        format!("the API version in the data ({said_version}) does not match the expected API version ({expected})");
    if ty.custom.is_some() {
        if said_version == expected {
            let detail = format!("must be {}", ty.kind);
            let error = complaint::invalid("kind", &json!(said_kind), &detail);
            return Failure::invalid_kind(&ty.group, said_kind, name, &[error]);
        }
        return Failure::bad_request(mismatch);
    }
    let cause = match registry.find_kind(&Gvk::new(group, version, said_kind)) {
        Some(known) if known.kind == ty.kind => return Failure::bad_request(mismatch),
        Some(known) => {
            let package = |group: &str| {
                if group.is_empty() { "core" } else { group }
                    .split('.')
                    .next()
                    .map(str::to_owned)
            };
            let inside = package(&ty.group).unwrap_or_default();
            format!(
                "converting ({}.{said_kind}) to ({inside}.{}): unknown conversion",
                known.version, ty.kind
            )
        }
        None => format!(
            "no kind {said_kind:?} is registered for version {said_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ),
    };
    let kind = &ty.kind;
    Failure::bad_request(format!(
        "{said_kind} in version {version:?} cannot be handled as a {kind}: {cause}"
    ))
}

pub(super) fn unfit(ty: &ResourceType, said_kind: &str, cause: &str) -> Failure {
    let (version, kind) = (&ty.version, &ty.kind);
    Failure::bad_request(format!(
        "{said_kind} in version {version:?} cannot be handled as a {kind}: {cause}"
    ))
}

/// The form in which objects of the type are stored.
pub(super) fn to_stored(ty: &ResourceType, mut object: Value) -> Value {
    match &ty.custom {
        Some(custom) if custom.storage_version != ty.version => {
            object["apiVersion"] = crate::registry::api_version(&ty.group, &custom.storage_version).into();
            object
        }
        None if ty.group == "events.k8s.io" => events::to_core(&object),
        _ => object,
    }
}

/// Removes what the schema does not know.
///
/// *Errors*: 400 if the client wants to be strict about it. Otherwise the result is what to warn about.
pub(super) fn without_unknown_fields(
    ty: &ResourceType,
    object: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Failure> {
    let unknown = kinds::fit(ty, object).map_err(|cause| unfit(ty, &ty.kind, &cause))?;
    let texts = unknown_field_texts(&unknown);
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(texts),
        FieldValidation::Strict if texts.is_empty() => Ok(texts),
        FieldValidation::Strict => Err(unfit(
            ty,
            &ty.kind,
            &format!("strict decoding error: {}", texts.join(", ")),
        )),
    }
}

/// What clients are told about fields that the schema does not know.
pub(super) fn unknown_field_texts(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field {path:?}")).collect()
}
