//! Lets go of nodes that will not come back by themselves.
//!
//! ```text
//!  condition that a policy names ──► tolerated? wait ──► too many ill at once? wait ──► deadline now, claim deleted
//! ```
//!
//! Which conditions mean that, and for how long each is tolerated, is the provider's knowledge. Where many nodes fall
//! ill together the cause is hardly the nodes, and replacing them all would make it worse: then nothing is done and
//! people are told.

mod act;
mod decide;
mod notices;
mod observe;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use model::NodeName;
use state::{Event, View};

use crate::{
    context::Ctx,
    error::StepError,
    runtime::{Action, Reconcile},
};

pub struct Health {
    ctx: Ctx,
}

impl Health {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for Health {
    type Key = NodeName;
    type Error = StepError;
    const NAME: &'static str = "node.health";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(NodeName)) {
        if let Event::Node(change) = event
            && change.new.is_some()
            && facts(change.old.as_deref()) != facts(change.new.as_deref())
        {
            add((&*change.key.name).into());
        }
    }

    async fn reconcile(&self, name: &NodeName) -> Result<Action, StepError> {
        let Some(view) = observe::observe(&self.ctx, name) else {
            return Ok(Action::AwaitChange);
        };
        let step = decide::decide(&view, self.ctx.clock.now());
        act::act(&self.ctx, &view, step).await
    }
}

/// All that matters of the conditions. Heartbeats do not.
fn facts(node: Option<&Node>) -> Vec<(&str, &str, Option<Timestamp>)> {
    let fact = |condition: &NodeCondition| condition.last_transition_time.as_ref().map(|time| time.0);
    let listed = node.map(conditions_of).unwrap_or_default().iter();
    listed
        .map(|condition| (&*condition.type_, &*condition.status, fact(condition)))
        .collect()
}

fn conditions_of(node: &Node) -> &[NodeCondition] {
    let status = node.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}
