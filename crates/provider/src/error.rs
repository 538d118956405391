//! Why a cloud said no, in a closed list.

use jiff::SignedDuration;
use model::ProviderId;

/// The one word that condition, event and metric use for an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    InsufficientCapacity,
    NodeClassNotReady,
    LaunchFailed,
    /// A reason in the provider's own words, for the `Launched` condition.
    Provider(String),
    Gone,
    Unavailable,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// This request will never succeed.
    Never,
    WithBackoff,
    After(SignedDuration),
}

#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// None of the offerings that the request admits can be had now.
    #[error("the cloud has no capacity for any offering that the claim admits: {details}")]
    InsufficientCapacity { details: String },
    #[error("the node class is not ready: {details}")]
    NodeClassNotReady { details: String },
    /// The launch was refused for a reason that a user can act on.
    #[error("{message}")]
    Refused { reason: String, message: String },
    /// A question about an instance that the cloud does not have any more.
    #[error("the cloud has no instance {instance}")]
    Gone { instance: ProviderId },
    #[error("the cloud did not answer")]
    Unavailable {
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ProviderError {
    pub fn reason(&self) -> Reason {
        match self {
            ProviderError::InsufficientCapacity { .. } => Reason::InsufficientCapacity,
            ProviderError::NodeClassNotReady { .. } => Reason::NodeClassNotReady,
            ProviderError::Refused { reason, .. } => Reason::Provider(reason.clone()),
            ProviderError::Gone { .. } => Reason::Gone,
            ProviderError::Unavailable { .. } => Reason::Unavailable,
        }
    }

    pub fn retry(&self) -> Retry {
        match self {
            ProviderError::InsufficientCapacity { .. } | ProviderError::NodeClassNotReady { .. } => Retry::Never,
            ProviderError::Refused { .. } | ProviderError::Gone { .. } | ProviderError::Unavailable { .. } => {
                Retry::WithBackoff
            }
        }
    }
}
