//! The way from the controller to the cloud. The faults of the cloud itself are `provider_sim`'s; what happens here is
//! that the controller can die on the way there or on the way back.

use std::sync::Arc;

use async_trait::async_trait;
use model::{NodeName, ProviderId, Vocabulary, node::NodeClassRef, pool::Pool, snapshot::Catalog};
use provider::{
    CloudProvider, Instance, LaunchRequest, Launched, NodeClassKind, Notice, ProviderError, RegistrationHook,
    RepairPolicy, Termination,
};

use super::crash::Gate;
use crate::history::{Deed, History};

pub struct Bridge {
    pub cloud: Arc<dyn CloudProvider>,
    pub gate: Gate,
    pub history: History,
}

impl Bridge {
    /// Across and back, with a chance to die on either side.
    async fn cross<T>(&self, call: impl Future<Output = T> + Send) -> T {
        self.gate.pass().await;
        let answer = call.await;
        self.gate.pass().await;
        answer
    }
}

#[async_trait]
impl CloudProvider for Bridge {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_classes(&self) -> &[NodeClassKind] {
        self.cloud.node_classes()
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.cloud.vocabulary()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, ProviderError> {
        self.gate.pass().await;
        self.history.deed(Deed::Launch {
            claim: request.claim.clone(),
            token: request.token.clone(),
        });
        self.cross(self.cloud.launch(request)).await
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, ProviderError> {
        self.gate.pass().await;
        self.history.deed(Deed::Terminate { id: id.clone() });
        self.cross(self.cloud.terminate(id)).await
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, ProviderError> {
        self.cross(self.cloud.instance(id)).await
    }

    async fn instances(&self) -> Result<Vec<Instance>, ProviderError> {
        self.cross(self.cloud.instances()).await
    }

    async fn node_name(&self, id: &ProviderId) -> Result<Option<NodeName>, ProviderError> {
        self.cross(self.cloud.node_name(id)).await
    }

    async fn catalog(&self, pool: &Pool) -> Result<Catalog, ProviderError> {
        self.cross(self.cloud.catalog(pool)).await
    }

    async fn drift(&self, instance: &ProviderId, class: &NodeClassRef) -> Result<Option<String>, ProviderError> {
        self.cross(self.cloud.drift(instance, class)).await
    }

    async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        self.cross(self.cloud.notices()).await
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), ProviderError> {
        self.cross(self.cloud.acknowledge(notice)).await
    }

    fn repair_policies(&self) -> &[RepairPolicy] {
        self.cloud.repair_policies()
    }

    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        self.cloud.registration_hooks()
    }
}
