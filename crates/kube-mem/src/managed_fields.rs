//! `metadata.managedFields`: which manager owns which fields.

use crate::schema::TypeSchema;
use serde_json::Value;

/// Records the fields that a create, update or patch changed as owned by `manager`.
pub fn record_update(
    _old: Option<&Value>,
    _new: &mut Value,
    _manager: &str,
    _subresource: Option<&str>,
    _now: &str,
    _types: &TypeSchema,
) {
}
