//! What the API server's no means.

use std::time::Duration;

use kube::core::Status;

use crate::error::{Classify, Reason, Retry};

/// Why a request had no effect, or none that we know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFailure {
    NotFound,
    /// Our version is not the newest, or a precondition does not hold.
    Conflict,
    AlreadyExists,
    /// The server is too busy.
    Throttled,
    /// A disruption budget does not permit an eviction now, or there are two of them.
    Budget,
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
            (429 | 500, _) if refuses_eviction(status) => ApiFailure::Budget,
            (429, _) => ApiFailure::Throttled,
            (400..=499, _) => ApiFailure::Rejected,
            (500, _) => ApiFailure::Internal,
            // 502, 503, 504 come from in between: the request may have reached the server.
            _ => ApiFailure::Unknown,
        }
    }
}

/// A budget that says no and a server that is busy answer with the same code, and only the cause tells them apart. Two
/// budgets on one pod are more than the eviction API can serve; it says so as an internal error.
fn refuses_eviction(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let budget = |reason: &str| reason == "DisruptionBudget";
    causes.into_iter().any(|cause| budget(&cause.reason))
        || status.message.contains("more than one PodDisruptionBudget")
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
    /// When the server wants to be asked again, if it said so.
    pub retry_after: Option<Duration>,
    #[source]
    pub cause: Cause,
}

impl ApiError {
    pub fn new(action: &'static str, object: &str, cause: kube::Error) -> Self {
        Self {
            action,
            object: object.to_owned(),
            failure: ApiFailure::of(&cause),
            retry_after: state::retry_after(&cause),
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
            ApiFailure::Rejected | ApiFailure::Budget => Reason::Rejected,
            ApiFailure::Throttled | ApiFailure::Internal | ApiFailure::Unknown => Reason::ApiUnavailable,
        }
    }

    /// What is not found has left the index by now: the next look decides on that.
    fn retry(&self) -> Retry {
        match (self.failure, self.retry_after) {
            (ApiFailure::NotFound | ApiFailure::Conflict | ApiFailure::AlreadyExists, _) => Retry::AtOnce,
            (_, Some(wait)) => Retry::After(wait),
            (
                ApiFailure::Rejected
                | ApiFailure::Budget
                | ApiFailure::Throttled
                | ApiFailure::Internal
                | ApiFailure::Unknown,
                None,
            ) => Retry::WithBackoff,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(code: u16, message: &str, details: Value) -> ApiError {
        let status = Status {
            code,
            message: message.to_owned(),
            details: serde_json::from_value(details).expect("the literal is the details of a status"),
            ..Status::failure("", "")
        };
        ApiError::new("evict", "x", kube::Error::Api(Box::new(status)))
    }

    /// LC-Q4, LC-Q5: one budget says no with 429, two with 500. A busy server says 429, too, and when to come back.
    #[test]
    fn a_budget_is_told_from_a_busy_server() {
        let because = json!({ "causes": [{ "reason": "DisruptionBudget" }] });
        assert_eq!(refusal(429, "Cannot evict pod", because).failure, ApiFailure::Budget);
        let several =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert_eq!(refusal(500, several, Value::Null).failure, ApiFailure::Budget);
        let later = json!({ "retryAfterSeconds": 7 });
        let busy = refusal(429, "too many requests", later);
        assert_eq!(
            (busy.failure, busy.retry()),
            (ApiFailure::Throttled, Retry::After(Duration::from_secs(7)))
        );
    }

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
