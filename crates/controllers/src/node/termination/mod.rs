//! Takes a deleted node down: nothing new, then nobody left, then no volume, then no instance.
//!
//! ```text
//!  claim deleted ─► tainted ─► drained (tier by tier, at least 5 s) ─► volumes detached ─► instance gone ─► released
//! ```
//!
//! Every step is read off pods, attachments, conditions and the cloud in each pass, so a restart loses nothing.
//! Evictions themselves are the [eviction queue](super::eviction)'s business.

mod act;
mod decide;
mod drain;
mod notices;
mod observe;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::NodeName;
use state::{Event, Served, View};

use super::eviction::Evictions;
use crate::{
    context::Ctx,
    error::StepError,
    objects::{instance_of, is_deleting},
    runtime::{Action, Pace, Reconcile},
};
pub(crate) use drain::is_forced;
pub(crate) use notices::failed_draining;

pub struct Termination {
    ctx: Ctx,
    served: Served,
    evictions: Arc<Evictions>,
}

impl Termination {
    pub fn new(ctx: &Ctx, served: Served, evictions: Arc<Evictions>) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            served,
            evictions,
        }
    }
}

#[async_trait]
impl Reconcile for Termination {
    type Key = NodeName;
    type Error = StepError;
    const NAME: &'static str = "node.termination";
    const CONCURRENCY: usize = 1_000;
    const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(10));

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(NodeName)) {
        let mut leaving = |name: &str| {
            if view.nodes.named(name).is_some_and(|node| is_deleting(&**node)) {
                add(name.into());
            }
        };
        match event {
            Event::Node(change) => leaving(&change.key.name),
            Event::Pod(change) => {
                if let Some(node) = change.latest().and_then(|pod| pod.node.as_ref()) {
                    leaving(node.as_str());
                }
            }
            Event::Attachment(change) => {
                if let Some(attachment) = change.latest() {
                    leaving(&attachment.spec.node_name);
                }
            }
            Event::Claim(change) => {
                let instance = change.latest().and_then(|claim| instance_of(claim));
                for node in instance.map(|id| view.nodes_of(id)).unwrap_or_default() {
                    leaving(node.metadata.name.as_deref().unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &NodeName) -> Result<Action, StepError> {
        let Some(view) = observe::observe(&self.ctx, &self.served, name).await? else {
            return Ok(Action::AwaitChange);
        };
        let step = decide::decide(&view, self.ctx.clock.now());
        act::act(&self.ctx, &self.evictions, &view, step).await
    }
}
