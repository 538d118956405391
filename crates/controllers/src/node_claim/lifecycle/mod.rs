//! Gives every node claim an instance, its instance a node, and its node a start; or a stated reason why not.
//!
//! ```text
//!  Pending ──launch──► Launched ──registration──► Registered ──initialization──► Initialized
//!     │ 5 min             │ 15 min
//!     └────── liveness ───┴────────► deleted
//! ```
//!
//! One pass takes every step that can be taken: each step is a no-op once its condition is True. What the steps found
//! is written in the end, once. Deletion of a claim is [`termination`](super::termination)'s business.

mod act;
mod adoption;
mod devices;
mod hooks;
mod initialization;
mod launch;
mod liveness;
mod notices;
mod pre_registration;
mod registration;

use async_trait::async_trait;
use model::ClaimName;
use state::{Event, View};
use std::time::Duration;

use crate::{
    context::Ctx,
    error::StepError,
    objects::{instance_under, is_deleting},
    runtime::{Action, Pace, Reconcile},
};

pub struct Lifecycle {
    ctx: Ctx,
}

impl Lifecycle {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for Lifecycle {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.lifecycle";
    const CONCURRENCY: usize = 1_000;
    const PACE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(60));

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ClaimName)) {
        match event {
            Event::Claim(change) if change.new.is_some() => add((&*change.key.name).into()),
            Event::Node(change) => {
                for instance in [&change.old, &change.new]
                    .into_iter()
                    .flatten()
                    .filter_map(|node| instance_under(node))
                {
                    for claim in view.claims_of(instance) {
                        add(claim.metadata.name.as_deref().unwrap_or_default().into());
                    }
                }
            }
            Event::Slice(change) => {
                let slices = change.old.iter().chain(&change.new);
                let nodes = slices.flat_map(|slice| devices::nodes_of(slice));
                let instances = nodes
                    .filter_map(|node| view.nodes.named(node))
                    .filter_map(|node| instance_under(node));
                for claim in instances.flat_map(|instance| view.claims_of(instance)) {
                    add(claim.metadata.name.as_deref().unwrap_or_default().into());
                }
            }
            _ => {}
        }
    }

    /// Safe to cancel and to repeat at any point: the claim's UID is the launch token, and every write names the
    /// version it was decided on.
    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        match view.claims.named(name.as_str()) {
            None => Ok(Action::AwaitChange),
            Some(claim) if is_deleting(&**claim) => super::termination::reconcile(&self.ctx, claim).await,
            Some(claim) => act::bring_up(&self.ctx, claim).await,
        }
    }
}
