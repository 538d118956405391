//! The schema of a custom resource: pruning, defaulting, validation with CEL, and merge facts.
//!
//! ```text
//! structural.rs  reads a CRD version's openAPIV3Schema once      pattern.rs, format.rs
//! prune.rs       removes what is not declared
//! default.rs     removes meaningless nulls, fills in defaults
//! validate.rs    types, bounds, formats, alternatives            unique.rs: list types set and map
//! scale.rs       the fields that the scale subresource reads
//! rules.rs       x-kubernetes-validations                        cel_value.rs
//! type_schema.rs what merging and ownership need to know
//! ```

mod cel_value;
mod default;
mod field_error;
mod format;
mod pattern;
mod prune;
mod rules;
mod scale;
mod structural;
mod type_schema;
mod unique;
mod validate;

use serde_json::{Value, json};

pub use field_error::{FieldError, Reason, invalid_status};
pub use type_schema::TypeSchema;
pub(crate) use type_schema::{Builder, Form, ListKind, ListType, MapType, Meaning, NodeId, PatchFacts, Scalar};

use crate::complaint;
use crate::openapi::definition;
use structural::Schema;

/// Where the messages about a definition's schema place it.
const ROOT: &str = "spec.validation.openAPIV3Schema";

/// Why a CRD version's schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct SchemaError {
    pub path: String,
    pub message: String,
}

impl SchemaError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        SchemaError {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// The schema of one version of a custom resource, compiled once.
pub struct CrdSchema {
    root: Schema,
    types: TypeSchema,
    scale: Option<scale::Paths>,
}

impl CrdSchema {
    /// Compiles an entry of a CRD's `spec.versions`.
    pub fn compile(version: &Value) -> Result<CrdSchema, SchemaError> {
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            return Err(SchemaError::new(ROOT, "Required value: schemas are required"));
        }
        let has_status = version["subresources"]["status"].is_object();
        let mut builder = Builder::new(&definition);
        let node = builder.inline(&with_object_meta(schema, true), false);
        let types = builder.finish(node).with_status(has_status).of_custom_resource();
        let scale = scale::Paths::read(&version["subresources"]["scale"]);
        Ok(CrdSchema {
            root: Schema::read(schema, ROOT)?,
            types,
            scale,
        })
    }

    /// Removes fields that the schema does not know and gives their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Removes nulls that mean nothing and fills in defaults. A null where a default is declared gives way to it.
    pub fn default(&self, object: &mut Value) {
        default::prune_nulls(&self.root, object);
        default::fill(&self.root, object);
    }

    /// Everything that is wrong with `new`; `old` is the stored object on update.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.validate_after(Vec::new(), new, old)
    }

    /// As [`CrdSchema::validate`], after other checks that found `errors`.
    pub(crate) fn validate_after(
        &self,
        mut errors: Vec<FieldError>,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        errors.extend(validate::validate(&self.root, new, old));
        self.validate_invariants(errors, new, old)
    }

    /// The same for a write to the status alone. Its part of the schema is checked as if it stood by itself, which
    /// shows in the messages.
    pub(crate) fn validate_status(
        &self,
        mut errors: Vec<FieldError>,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        if let (Some(schema), Some(status)) = (self.root.properties.get("status"), new.get("status")) {
            let found = validate::validate(schema, status, old.and_then(|old| old.get("status")));
            errors.extend(found.into_iter().map(|mut error| {
                error.field = match error.field.as_str() {
                    "<nil>" => "status".into(),
                    field => format!("status.{field}"),
                };
                error
            }));
        }
        self.validate_invariants(errors, new, old)
    }

    /// What holds across fields: the paths of scale, uniqueness in lists, rules.
    fn validate_invariants(&self, mut errors: Vec<FieldError>, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        errors.extend(self.scale.iter().flat_map(|scale| scale.errors(new)));
        let was_unique = old.is_none_or(|old| unique::duplicates(&self.root, old).is_empty());
        if was_unique {
            errors.extend(unique::duplicates(&self.root, new));
        }
        if !self.root.has_rules {
            return errors;
        }
        if errors.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            errors.push(complaint::invalid("<nil>", &Value::Null, detail));
        } else {
            errors.extend(rules::broken_rules(&self.root, new, old));
        }
        errors
    }

    /// What merging and ownership need to know.
    pub fn types(&self) -> &TypeSchema {
        &self.types
    }
}

/// Rules may rely on types, presence and sizes, so they do not run where these are wrong.
fn blocks_rules(error: &FieldError) -> bool {
    use Reason::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.reason, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// The schema with the fields that every object has, at its root and in embedded objects.
pub(crate) fn with_object_meta(schema: &Value, is_object_root: bool) -> Value {
    let mut full = schema.clone();
    if let Some(properties) = full["properties"].as_object_mut() {
        properties
            .values_mut()
            .for_each(|property| *property = with_object_meta(property, false));
    }
    for key in ["items", "additionalProperties"] {
        if full[key].is_object() {
            full[key] = with_object_meta(&full[key], false);
        }
    }
    if is_object_root || full["x-kubernetes-embedded-resource"] == Value::Bool(true) {
        full["properties"]["apiVersion"] = json!({"type": "string"});
        full["properties"]["kind"] = json!({"type": "string"});
        full["properties"]["metadata"] = json!({"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
    }
    // Indexing a missing key leaves a null behind.
    if let Some(fields) = full.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    full
}

#[cfg(test)]
mod tests;
