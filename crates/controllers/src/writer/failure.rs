//! What the API server's no means.

use crate::error::{Classify, Reason, Retry};

/// Why a request had no effect, or none that we know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFailure {
    NotFound,
    /// Our version is not the newest, or a precondition does not hold.
    Conflict,
    AlreadyExists,
    /// Too many requests; for an eviction, a budget that does not permit it now.
    Throttled,
    /// The request will never be accepted as it is.
    Rejected,
    /// An error inside the server, most often before anything was done.
    Internal,
    /// No answer: the request may or may not have been carried out.
    Unknown,
}

impl ApiFailure {
    fn of(cause: &kube::Error) -> Self {
        let kube::Error::Api(status) = cause else {
            return ApiFailure::Unknown;
        };
        match (status.code, status.reason.as_str()) {
            (404, _) => ApiFailure::NotFound,
            (409, "AlreadyExists") => ApiFailure::AlreadyExists,
            (409, _) => ApiFailure::Conflict,
            (429, _) => ApiFailure::Throttled,
            (400..=499, _) => ApiFailure::Rejected,
            (500, _) => ApiFailure::Internal,
            // 502, 503, 504 come from in between: the request may have reached the server.
            _ => ApiFailure::Unknown,
        }
    }
}

/// What was heard, if anything.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The server's own words.
    #[error("{message}")]
    Refusal { code: u16, message: String },
    #[error(transparent)]
    NoAnswer(kube::Error),
}

impl From<kube::Error> for Cause {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Cause::Refusal {
                code: status.code,
                message: status.message,
            },
            other => Cause::NoAnswer(other),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("could not {action} {object}")]
pub struct ApiError {
    pub action: &'static str,
    pub object: String,
    pub failure: ApiFailure,
    #[source]
    pub cause: Cause,
}

impl ApiError {
    pub fn new(action: &'static str, object: &str, cause: kube::Error) -> Self {
        Self {
            action,
            object: object.to_owned(),
            failure: ApiFailure::of(&cause),
            cause: cause.into(),
        }
    }

    /// The HTTP status, or zero when there was no answer.
    pub fn code(&self) -> u16 {
        match &self.cause {
            Cause::Refusal { code, .. } => *code,
            Cause::NoAnswer(_) => 0,
        }
    }
}

impl Classify for ApiError {
    fn reason(&self) -> Reason {
        match self.failure {
            ApiFailure::NotFound | ApiFailure::Conflict | ApiFailure::AlreadyExists => Reason::Conflict,
            ApiFailure::Rejected => Reason::Rejected,
            ApiFailure::Throttled | ApiFailure::Internal | ApiFailure::Unknown => Reason::ApiUnavailable,
        }
    }

    /// What is not found has left the index by now: the next look decides on that.
    fn retry(&self) -> Retry {
        match self.failure {
            ApiFailure::NotFound | ApiFailure::Conflict | ApiFailure::AlreadyExists => Retry::AtOnce,
            ApiFailure::Rejected | ApiFailure::Throttled | ApiFailure::Internal | ApiFailure::Unknown => {
                Retry::WithBackoff
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[track_caller]
    fn check(code: u16, reason: &str, failure: ApiFailure, retry: Retry) {
        let status = Status {
            code,
            reason: reason.to_owned(),
            ..Status::failure("", reason)
        };
        let error = ApiError::new("patch", "x", kube::Error::Api(Box::new(status)));
        assert_eq!((error.failure, error.retry(), error.code()), (failure, retry, code));
    }

    #[test]
    fn every_no_has_its_meaning() {
        check(404, "NotFound", ApiFailure::NotFound, Retry::AtOnce);
        check(409, "Conflict", ApiFailure::Conflict, Retry::AtOnce);
        check(409, "AlreadyExists", ApiFailure::AlreadyExists, Retry::AtOnce);
        check(422, "Invalid", ApiFailure::Rejected, Retry::WithBackoff);
        check(403, "Forbidden", ApiFailure::Rejected, Retry::WithBackoff);
        check(429, "TooManyRequests", ApiFailure::Throttled, Retry::WithBackoff);
        check(500, "InternalError", ApiFailure::Internal, Retry::WithBackoff);
        check(503, "ServiceUnavailable", ApiFailure::Unknown, Retry::WithBackoff);
    }
}
