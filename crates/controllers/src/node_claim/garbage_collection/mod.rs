//! Clears away what has lost its other half: claims whose instance is gone, instances whose claim is gone.

mod decide;

use std::{collections::BTreeSet, time::Duration};

use api::v1::NodeClaim;
use async_trait::async_trait;
use kube::ResourceExt;
use model::ProviderId;
use state::{Event, View};
use tracing::info;

use super::remove;
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    metrics::DisruptedWhy,
    runtime::{Action, Reconcile},
};

/// How often both sides are compared.
const EVERY: Duration = Duration::from_secs(2 * 60);

pub struct GarbageCollection {
    ctx: Ctx,
}

impl GarbageCollection {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
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
        let listed = self.ctx.cloud.instances().await;
        let action = "list its instances";
        let instances = listed.map_err(|cause| CloudError { action, cause })?;
        // Read after the list: a claim is older than its instance, so every listed instance's claim is known by now.
        let view = self.ctx.index.view();
        let now = self.ctx.clock.now();

        let alive: BTreeSet<&ProviderId> = instances.iter().map(|instance| &instance.provider_id).collect();
        for claim in view
            .claims
            .values()
            .filter(|claim| decide::has_lost_its_instance(claim, &view, &alive))
        {
            remove(&self.ctx, claim, DisruptedWhy::GarbageCollected).await?;
            info!(NodeClaim = %claim.name_any(), "garbage collected nodeclaim whose instance is gone");
        }
        for instance in instances
            .iter()
            .filter(|instance| decide::is_unclaimed(instance, &view, now))
        {
            self.collect_instance(instance).await?;
        }
        Ok(Action::After(EVERY))
    }
}
