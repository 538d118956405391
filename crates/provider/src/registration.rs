//! What a provider may still have to do to a node before pods may count on it.

use async_trait::async_trait;
use jiff::SignedDuration;
use model::{ClaimName, Labels, NodeName, ProviderId};

use crate::ProviderError;

/// A node that has joined and is about to be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registering {
    pub claim: ClaimName,
    /// The claim's UID.
    pub token: String,
    pub instance: ProviderId,
    pub node: NodeName,
    /// The claim's, as they go onto the node.
    pub labels: Labels,
    pub annotations: Labels,
}

/// What a hook says of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// Go on. The labels go onto claim and node, over what is there.
    Passed { labels: Labels },
    /// Ask again after this time; what was given so far goes onto claim and node all the same.
    Pending { labels: Labels, again: SignedDuration },
}

impl Admission {
    pub fn passed() -> Self {
        Admission::Passed {
            labels: Labels::default(),
        }
    }

    pub fn pending(again: SignedDuration) -> Self {
        Admission::Pending {
            labels: Labels::default(),
            again,
        }
    }
}

/// Holds the registration of nodes up until the provider is done with them.
///
/// While a hook is pending the node keeps the taint that keeps pods away. All hooks of a provider are asked at once, in
/// every pass over a claim that is not registered, until all of them pass in one pass; so asking must be safe to repeat.
#[async_trait]
pub trait RegistrationHook: Send + Sync + 'static {
    /// Named in the claim's condition while it is pending.
    fn name(&self) -> &str;

    async fn admit(&self, node: &Registering) -> Result<Admission, ProviderError>;
}
