//! Clears away what has lost its other half: claims whose instance is gone, instances whose claim is gone.

mod decide;

use std::time::Duration;

use api::v1::NodeClaim;
use async_trait::async_trait;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use state::{Event, View};
use tracing::info;

use super::remove;
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    metrics::DisruptedWhy,
    objects::adopted_by,
    runtime::{Action, Reconcile},
};

/// How often both sides are compared.
const EVERY: Duration = Duration::from_secs(2 * 60);
/// How many are let go at once.
const PARALLEL: usize = 20;

pub struct GarbageCollection {
    ctx: Ctx,
}

impl GarbageCollection {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }

    async fn collect_claim(&self, claim: &NodeClaim) -> Result<(), StepError> {
        // An instance of another program's time may lack the marks by which instances are listed.
        if let Some(id) = adopted_by(claim) {
            let found = self.ctx.cloud.instance(&id).await;
            let action = "find an instance";
            if found.map_err(|cause| CloudError { action, cause })?.is_some() {
                return Ok(());
            }
        }
        remove(&self.ctx, claim, DisruptedWhy::GarbageCollected).await?;
        info!(NodeClaim = %claim.name_any(), "garbage collected nodeclaim whose instance is gone");
        Ok(())
    }

    async fn collect_instance(&self, instance: &provider::Instance) -> Result<(), StepError> {
        // The index may lag; an instance is given up only on the server's own word that nobody claims it.
        if let Some(name) = &instance.claim
            && let Some(claim) = self.ctx.writer.get::<NodeClaim>(name.as_str()).await?
            && decide::may_own(&claim, instance)
        {
            return Ok(());
        }
        let action = "terminate an instance that nobody claims";
        self.ctx
            .cloud
            .terminate(&instance.provider_id)
            .await
            .map_err(|cause| CloudError { action, cause })?;
        info!(provider_id = %instance.provider_id, "garbage collected cloudprovider instance");
        Ok(())
    }
}

#[async_trait]
impl Reconcile for GarbageCollection {
    type Key = ();
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.garbagecollection";
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(())) {
        if matches!(event, Event::Synced) {
            add(());
        }
    }

    async fn reconcile(&self, (): &()) -> Result<Action, StepError> {
        // Read before the list: what registered while the list was on its way is not in it.
        let before = self.ctx.index.view();
        let listed = self.ctx.cloud.instances().await;
        let action = "list its instances";
        let instances = listed.map_err(|cause| CloudError { action, cause })?;
        // Read after the list: a claim is older than its instance, so every listed instance's claim is known by now.
        let view = self.ctx.index.view();
        let now = self.ctx.clock.now();

        let lost = decide::lost_claims(&before, &view, &instances);
        let unclaimed = decide::unclaimed(instances, &view, now);
        // One that fails does not keep the others waiting; it has its turn again.
        let claims = stream::iter(lost).map(|claim| async move { self.collect_claim(&claim).await });
        let mut outcomes: Vec<_> = claims.buffer_unordered(PARALLEL).collect().await;
        let instances = stream::iter(unclaimed).map(|found| async move { self.collect_instance(&found).await });
        outcomes.extend(instances.buffer_unordered(PARALLEL).collect::<Vec<_>>().await);
        outcomes.into_iter().collect::<Result<(), _>>()?;
        Ok(Action::After(EVERY))
    }
}
