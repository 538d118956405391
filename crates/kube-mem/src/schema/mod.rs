//! The structural schema of a custom resource: pruning, defaulting, validation with CEL, and merge facts.

mod field_error;
mod type_schema;

pub use field_error::{FieldError, Reason, invalid_status};
pub use type_schema::TypeSchema;
pub(crate) use type_schema::{Builder, DEDUCED, Field, Form, ListKind, ListType, MapType, Node, NodeId, Scalar};

use serde_json::Value;

/// Why a CRD version's schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct SchemaError {
    pub path: String,
    pub message: String,
}

/// The schema of one version of a custom resource, compiled once.
pub struct CrdSchema {
    types: TypeSchema,
}

impl CrdSchema {
    /// Compiles an entry of a CRD's `spec.versions`.
    pub fn compile(_version: &Value) -> Result<CrdSchema, SchemaError> {
        Ok(CrdSchema {
            types: TypeSchema::deduced(),
        })
    }

    /// Removes fields that the schema does not know and gives their paths.
    pub fn prune(&self, _object: &mut Value) -> Vec<String> {
        Vec::new()
    }

    /// Fills in defaults.
    pub fn default(&self, _object: &mut Value) {}

    /// Everything that is wrong with `new`; `old` is the stored object on update.
    pub fn validate(&self, _new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }

    /// What merging and ownership need to know.
    pub fn types(&self) -> &TypeSchema {
        &self.types
    }
}
