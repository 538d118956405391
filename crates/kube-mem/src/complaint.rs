//! Builds the complaints about single fields that a 422 answer lists.

use serde_json::Value;

use crate::schema::{FieldError, Reason};

pub(crate) fn required(field: impl Into<String>, detail: &str) -> FieldError {
    bare(Reason::Required, "Required value", field, detail)
}

pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> FieldError {
    bare(Reason::Forbidden, "Forbidden", field, detail)
}

pub(crate) fn too_long(field: impl Into<String>, max: usize) -> FieldError {
    bare(
        Reason::TooLong,
        "Too long",
        field,
        &format!("may not be more than {max} bytes"),
    )
}

pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> FieldError {
    let shown = shown(value);
    bare(Reason::Invalid, &format!("Invalid value: {shown}"), field, detail)
}

pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> FieldError {
    let shown = shown(value);
    bare(Reason::Duplicate, &format!("Duplicate value: {shown}"), field, "")
}

/// A value outside a closed list; the list is shown quoted, in the given order.
pub(crate) fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> FieldError {
    let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    bare(
        Reason::NotSupported,
        &format!("Unsupported value: {}", shown(value)),
        field,
        &detail,
    )
}

fn bare(reason: Reason, words: &str, field: impl Into<String>, detail: &str) -> FieldError {
    let message = if detail.is_empty() {
        words.to_owned()
    } else {
        format!("{words}: {detail}")
    };
    FieldError {
        field: field.into(),
        reason,
        message,
    }
}

/// A value in the notation of the server's messages: strings quoted, scalars bare, the rest as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
