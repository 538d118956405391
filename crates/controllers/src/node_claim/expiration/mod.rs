//! Removes node claims that have reached the age their pool allows.
//!
//! Neither budgets nor pods that refuse to leave can stop it; the drain that follows still honours them.

mod decide;

use std::time::Duration;

use async_trait::async_trait;
use kube::ResourceExt;
use model::{ClaimName, NodeKey};
use state::{Event, View};
use tracing::info;

use self::decide::{Step, decide};
use super::remove;
use crate::{
    context::Ctx,
    error::StepError,
    metrics::DisruptedWhy,
    runtime::{Action, Reconcile},
};

pub struct Expiration {
    ctx: Ctx,
}

impl Expiration {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for Expiration {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.expiration";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(ClaimName)) {
        if let Event::Claim(change) = event
            && change.new.is_some()
        {
            add((&*change.key.name).into());
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let machine = view.snapshot.nodes.get(&NodeKey::Claim(name.clone()));
        let (Some(facts), Some(claim)) = (machine.and_then(|m| m.claim.as_ref()), view.claims.named(name.as_str()))
        else {
            return Ok(Action::AwaitChange);
        };
        match decide(facts, self.ctx.clock.now()) {
            Step::Keep => Ok(Action::AwaitChange),
            Step::CheckAgain(wait) => Ok(Action::After(wait.unsigned_abs().max(Duration::from_millis(1)))),
            Step::Expire => {
                remove(&self.ctx, claim, DisruptedWhy::Expired).await?;
                info!(NodeClaim = %claim.name_any(), "deleting expired nodeclaim");
                Ok(Action::AwaitChange)
            }
        }
    }
}
