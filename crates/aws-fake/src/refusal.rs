//! A call that AWS would not carry out, before it is written in the form of its service.

use http::StatusCode;

/// The error codes, messages and statuses are those of AWS; clients decide by them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
}

impl Refusal {
    /// With the status that AWS gives to most errors of a caller.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: code.into(),
            message: message.into(),
        }
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// What a dry run that would have succeeded is answered with.
    pub fn dry_run() -> Self {
        let message = "Request would have succeeded, but DryRun flag is set.";
        Self::new("DryRunOperation", message).with_status(StatusCode::PRECONDITION_FAILED)
    }

    pub fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}");
        Self::new("MissingParameter", message)
    }

    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterValue", message)
    }

    pub fn no_such_entity(message: impl Into<String>) -> Self {
        Self::new("NoSuchEntity", message).with_status(StatusCode::NOT_FOUND)
    }
}
