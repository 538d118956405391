//! What the controllers ask of a cloud, and nothing more.
//!
//! [`CloudProvider`] is narrow on purpose: launch, terminate, look up, list, catalog, drift, notices. Metrics, caching and price
//! overlays are decorators around it. A provider never decides what to launch beyond choosing among the offerings that
//! a request admits, and it never touches a Kubernetes object of Karpenter's own kinds.

pub mod conformance;
mod error;
mod instance;
pub mod metered;
mod notice;
mod registration;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use model::{NodeName, ProviderId, Vocabulary, node::NodeClassRef, pool::Pool, snapshot::Catalog};

pub use error::{ProviderError, Reason, Retry};
pub use instance::{Instance, LaunchRequest, Launched, Termination};
pub use metered::Metered;
pub use notice::{Notice, NoticeKind};
pub use registration::{Admission, Registering, RegistrationHook};

/// A kind of node class that a provider serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClassKind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
}

impl NodeClassKind {
    pub fn serves(&self, class: &NodeClassRef) -> bool {
        self.group == class.group && self.kind == class.kind
    }

    /// The label that carries the class's name on claims and nodes.
    pub fn label(&self) -> String {
        format!("{}/{}", self.group, self.kind.to_lowercase())
    }
}

/// A node condition that means a machine will not come back by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    pub condition: String,
    /// The status that counts as unhealthy.
    pub status: String,
    pub toleration: SignedDuration,
}

/// A cloud.
#[async_trait]
pub trait CloudProvider: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// The kinds of node class that pools and claims may refer to. The first is the default.
    fn node_classes(&self) -> &[NodeClassKind];

    /// Labels and resources with a meaning to this provider.
    fn vocabulary(&self) -> Arc<Vocabulary>;

    /// Launches one instance that satisfies the request.
    ///
    /// Idempotent on [`LaunchRequest::token`]: a second call with the same token answers with the instance of the
    /// first, also after a restart of the caller. That closes the window between a launch and its record.
    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError>;

    /// Asks for the end of an instance. Called until it answers [`Termination::Gone`].
    async fn terminate(&self, id: &ProviderId) -> Result<Termination, ProviderError>;

    /// The instance, or `None` when the cloud does not have it any more.
    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, ProviderError>;

    /// Every instance that this cluster owns and that is not terminated or terminating.
    async fn instances(&self) -> Result<Vec<Instance>, ProviderError>;

    /// The name under which the kubelet of an instance will join the cluster, where that is known before it does.
    async fn node_name(&self, _: &ProviderId) -> Result<Option<NodeName>, ProviderError> {
        Ok(None)
    }

    /// Every shape that exists for a pool, available or not.
    async fn catalog(&self, pool: &Pool) -> Result<Catalog, ProviderError>;

    /// Why an instance no longer matches what its node class asks for, if so. An instance that the cloud does not have
    /// any more may be called [gone](ProviderError::Gone) or not drifted.
    async fn drift(&self, instance: &ProviderId, class: &NodeClassRef) -> Result<Option<String>, ProviderError>;

    /// Waits for what the cloud has to say about instances, and answers with it; after a while also with nothing.
    ///
    /// Told again until [`acknowledge`](Self::acknowledge) was called, also after a restart of the caller. A provider
    /// whose cloud says nothing of its own accord never answers.
    async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        std::future::pending().await
    }

    /// A notice has been acted on and need not be told again.
    async fn acknowledge(&self, _: &Notice) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Conditions under which a node is given up.
    fn repair_policies(&self) -> &[RepairPolicy] {
        &[]
    }

    /// What has to be done to a node before it is registered.
    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        &[]
    }

    fn serves(&self, class: &NodeClassRef) -> bool {
        self.node_classes().iter().any(|kind| kind.serves(class))
    }
}
