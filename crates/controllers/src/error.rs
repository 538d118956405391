//! What a failure means for the one who met it.

use std::{error::Error, fmt, time::Duration};

use provider::ProviderError;

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Trying again would fail again.
    Never,
    /// Somebody was faster; look again and decide anew.
    AtOnce,
    WithBackoff,
    After(Duration),
}

/// One word for a failure, from a closed list: log field and metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    Conflict,
    Rejected,
    ApiUnavailable,
    CloudUnavailable,
    CloudRefused,
    InvalidObject,
}

pub trait Classify: Error + Send + Sync + 'static {
    fn reason(&self) -> Reason;
    fn retry(&self) -> Retry;

    /// Part of ordinary life, such as a budget that says no: nothing that an operator should be woken for.
    fn is_expected(&self) -> bool {
        self.retry() == Retry::AtOnce
    }
}

/// An error with everything that caused it, on one line.
pub fn chain(error: &dyn Error) -> impl fmt::Display {
    struct Chain(String);
    impl fmt::Display for Chain {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // Some libraries repeat their source in their own message.
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    Chain(text)
}

/// A call to the cloud that failed.
#[derive(Debug, thiserror::Error)]
#[error("the cloud failed to {action}")]
pub struct CloudError {
    pub action: &'static str,
    #[source]
    pub cause: ProviderError,
}

impl Classify for CloudError {
    fn reason(&self) -> Reason {
        match self.cause {
            ProviderError::Unavailable { .. } => Reason::CloudUnavailable,
            ProviderError::Gone { .. }
            | ProviderError::InsufficientCapacity { .. }
            | ProviderError::NodeClassNotReady { .. }
            | ProviderError::Refused { .. } => Reason::CloudRefused,
        }
    }

    fn retry(&self) -> Retry {
        match self.cause.retry() {
            provider::Retry::Never => Retry::Never,
            provider::Retry::WithBackoff => Retry::WithBackoff,
            provider::Retry::After(wait) => Retry::After(wait.unsigned_abs()),
        }
    }
}

/// What most controllers can fail with.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Api(#[from] crate::writer::ApiError),
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

impl Classify for StepError {
    fn reason(&self) -> Reason {
        match self {
            StepError::Api(error) => error.reason(),
            StepError::Cloud(error) => error.reason(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            StepError::Api(error) => error.retry(),
            StepError::Cloud(error) => error.retry(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_tells_each_level_once() {
        let error = CloudError {
            action: "terminate an instance",
            cause: ProviderError::Unavailable {
                cause: "timed out".into(),
            },
        };
        assert_eq!(
            chain(&error).to_string(),
            "the cloud failed to terminate an instance: the cloud did not answer: timed out"
        );
        assert_eq!(
            (error.reason(), error.retry()),
            (Reason::CloudUnavailable, Retry::WithBackoff)
        );
    }
}
