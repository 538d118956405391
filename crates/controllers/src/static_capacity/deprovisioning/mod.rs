//! Deletes what static pools have too much of.
//!
//! Budgets do not hold it back, because the user has asked for fewer machines; the drain that follows honours pod
//! disruption budgets and do-not-disrupt as always.

mod victims;

use std::{sync::Arc, time::Duration};

use api::v1::NodeClaim;
use async_trait::async_trait;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use model::PoolName;
use state::{Event, View};
use tracing::info;

use super::{
    Census,
    provisioning::{changed_pool, is_static},
};
use crate::{
    context::Ctx,
    error::StepError,
    objects::{is_deleting, pool_of},
    runtime::{Action, Reconcile},
    writer::ApiError,
};

const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How many claims are deleted at once.
const PARALLEL: usize = 50;

pub struct StaticDeprovisioning {
    ctx: Ctx,
}

impl StaticDeprovisioning {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }

    async fn delete(&self, claim: Arc<NodeClaim>) -> Result<(), ApiError> {
        self.ctx.writer.delete(&*claim).await?;
        info!(
            NodePool = pool_of(&*claim),
            NodeClaim = claim.name_any(),
            "deleted nodeclaim"
        );
        Ok(())
    }
}

#[async_trait]
impl Reconcile for StaticDeprovisioning {
    type Key = PoolName;
    type Error = StepError;
    const NAME: &'static str = "static.deprovisioning";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(PoolName)) {
        match event {
            Event::Pool(change) => changed_pool(change.old.as_deref(), change.new.as_deref())
                .into_iter()
                .for_each(add),
            Event::Claim(change) => {
                if change.old.is_none()
                    && let Some(claim) = &change.new
                    && view.pools.named(pool_of(&**claim)).is_some_and(|pool| is_static(pool))
                {
                    add(pool_of(&**claim).into());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &PoolName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let replicas = view
            .pools
            .named(name.as_str())
            .filter(|pool| !is_deleting(&***pool))
            .and_then(|pool| pool.spec.replicas);
        let Some(replicas) = replicas.and_then(|replicas| usize::try_from(replicas).ok()) else {
            return Ok(Action::AwaitChange);
        };
        let active = Census::of(&view, name).active;
        let excess = active.len().saturating_sub(replicas);
        if excess > 0 {
            let victims = victims::victims(&view.snapshot, &active, excess, self.ctx.clock.now());
            let outcomes: Vec<_> = stream::iter(victims)
                .map(|claim| self.delete(claim))
                .buffered(PARALLEL)
                .collect()
                .await;
            outcomes.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(Action::After(LOOK_AGAIN))
    }
}
