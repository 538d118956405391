//! Marks node claims that have been left alone for as long as their pool asks: only those are consolidated.

mod decide;

use api::conditions::node_claim as condition;
use async_trait::async_trait;
use model::{ClaimName, NodeKey};
use state::{Event, View};
use std::time::Duration;

use self::decide::{Mark, decide};
use super::Draft;
use crate::{
    context::Ctx,
    error::StepError,
    objects::{is_deleting, pool_of},
    runtime::{Action, Reconcile},
};

pub struct Consolidatable {
    ctx: Ctx,
}

impl Consolidatable {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for Consolidatable {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.disruption";
    const CONCURRENCY: usize = 100;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ClaimName)) {
        match event {
            Event::Claim(change) if change.new.is_some() => add((&*change.key.name).into()),
            Event::Pool(change) => {
                for claim in view
                    .claims
                    .values()
                    .filter(|claim| pool_of(&***claim) == &*change.key.name)
                {
                    add(claim.metadata.name.as_deref().unwrap_or_default().into());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let machine = view.snapshot.nodes.get(&NodeKey::Claim(name.clone()));
        let (Some(facts), Some(claim)) = (machine.and_then(|m| m.claim.as_ref()), view.claims.named(name.as_str()))
        else {
            return Ok(Action::AwaitChange);
        };
        let Some(pool) = facts.pool.as_ref().and_then(|pool| view.snapshot.pools.get(pool)) else {
            return Ok(Action::AwaitChange);
        };
        if is_deleting(&**claim) {
            return Ok(Action::AwaitChange);
        }
        let now = self.ctx.clock.now();
        let mark = decide(facts, pool, now);
        let mut draft = Draft::of(claim, now);
        match mark {
            Mark::Set => draft.conditions.set_true(condition::CONSOLIDATABLE, now),
            Mark::Clear | Mark::ClearUntil(_) => draft.conditions.clear(condition::CONSOLIDATABLE),
        };
        draft.write(&self.ctx.writer).await?;
        Ok(match mark {
            Mark::ClearUntil(wait) => Action::After(wait.unsigned_abs().max(Duration::from_millis(1))),
            Mark::Set | Mark::Clear => Action::AwaitChange,
        })
    }
}
