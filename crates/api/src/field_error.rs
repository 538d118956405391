//! What is wrong with one field of an object.

use std::fmt::Display;

/// One field and what is wrong with it.
///
/// The text names both, because it ends up in a condition message beside others of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// The path from the root of the object, such as `spec.template.spec.requirements[0].key`.
    pub field: String,
    pub problem: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, problem: impl Display) -> Self {
        FieldError {
            field: field.into(),
            problem: problem.to_string(),
        }
    }
}

/// All errors in one message, as conditions show them.
pub fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
