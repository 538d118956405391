//! Creates the claims that static pools lack.

mod decide;
mod pace;

use std::time::Duration;

use api::v1::NodePool;
use async_trait::async_trait;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use model::{Pool, PoolName};
use state::{Event, View};
use tokio::time::Instant;
use tracing::info;

use super::{Census, Slot};
use crate::{
    context::Ctx,
    error::StepError,
    objects::{is_deleting, pool_of},
    provisioning::{
        claim_object,
        creation::{self, Creation},
    },
    runtime::{Action, Reconcile},
    writer::ApiError,
};
use decide::is_news;
use pace::Attempts;

const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// A pool at its limit is looked at more often: room appears without a change of the pool.
const LOOK_AGAIN_AT_LIMIT: Duration = Duration::from_secs(30);

pub struct StaticProvisioning {
    ctx: Ctx,
    attempts: Attempts,
}

impl StaticProvisioning {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            attempts: Attempts::default(),
        }
    }

    /// The slot is held until the claim is in the index, and given back whatever came of it.
    async fn create(&self, pool: &NodePool, planned: &Pool, view: &View, slot: Slot) -> Result<String, ApiError> {
        let claim = claim_object::of_template(planned, pool, &view.snapshot.vocabulary);
        let created = Creation::of(&self.ctx, claim).carry_out(&self.ctx).await;
        drop(slot);
        let name = created?.name_any();
        self.ctx
            .metrics
            .claims
            .created("provisioned", planned.name.as_str(), false);
        info!(NodePool = %planned.name, NodeClaim = %name, "created nodeclaim");
        Ok(name)
    }
}

#[async_trait]
impl Reconcile for StaticProvisioning {
    type Key = PoolName;
    type Error = StepError;
    const NAME: &'static str = "static.provisioning";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(PoolName)) {
        match event {
            Event::Pool(change) => changed_pool(change.old.as_deref(), change.new.as_deref())
                .into_iter()
                .for_each(add),
            // A claim that goes leaves a gap.
            Event::Claim(change) => {
                let begins_to_go = change.new.as_ref().is_none_or(|claim| is_deleting(&**claim));
                let went_before = change.old.as_ref().is_some_and(|claim| is_deleting(&**claim));
                if let Some(claim) = change.latest()
                    && begins_to_go
                    && (change.new.is_none() || !went_before)
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
        let pools = (view.pools.named(name.as_str()), view.snapshot.pools.get(name));
        let (Some(pool), Some(planned)) = pools else {
            return Ok(Action::AwaitChange);
        };
        let Some(want) = decide::want(planned, &Census::of(&view, name)) else {
            return Ok(Action::After(LOOK_AGAIN));
        };
        let exists = |claim: &str| self.ctx.index.view().claims.named(claim).is_some();
        if let Some(pause) = self.attempts.pause(name, exists, Instant::now()) {
            return Ok(Action::After(pause));
        }
        let taken = || Census::of(&self.ctx.index.view(), name).total();
        let slots = self.ctx.slots.reserve(name, want.limit, want.missing, taken);
        if slots.is_empty() {
            info!(NodePool = %name, limit = want.limit, "nodepool has reached its limit on nodes");
            return Ok(Action::After(LOOK_AGAIN_AT_LIMIT));
        }
        let partial = (slots.len() as u64) < want.missing;
        let outcomes: Vec<_> = stream::iter(slots)
            .map(|slot| self.create(pool, planned, &view, slot))
            .buffered(creation::PARALLEL)
            .collect()
            .await;
        let created = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok().cloned());
        self.attempts.note(name, created.collect(), exists, Instant::now());
        outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Action::After(if partial { LOOK_AGAIN_AT_LIMIT } else { LOOK_AGAIN }))
    }
}

/// The static pool that this change says something new about.
pub(super) fn changed_pool(old: Option<&NodePool>, new: Option<&NodePool>) -> Option<PoolName> {
    let pool = new.filter(|pool| is_static(pool) && is_news(old, pool))?;
    Some(pool.name_any().into())
}

pub(super) fn is_static(pool: &NodePool) -> bool {
    pool.spec.replicas.is_some()
}
