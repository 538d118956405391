//! Tells about pods that no node is launched for because what they ask for cannot be read.
//!
//! Such a pod never takes part in a round, so no round can speak of it.

use std::time::Duration;

use api::FieldError;
use async_trait::async_trait;
use model::{Pod, PodKey};
use state::{Event, Kind, View};

use super::notices;
use crate::{
    context::Ctx,
    error::StepError,
    runtime::{Action, Reconcile},
};

/// How often the reason is repeated, as that of a pod that was refused.
const EVERY: Duration = Duration::from_secs(5 * 60);

pub struct UnreadablePods {
    ctx: Ctx,
}

impl UnreadablePods {
    pub fn new(ctx: &Ctx) -> Self {
        Self { ctx: ctx.clone() }
    }
}

/// What could not be read of a pod that would need a node and gets none for this reason.
fn obstacles<'a>(pod: &Pod, view: &'a View) -> Option<&'a [FieldError]> {
    let is_held = pod.scheduling_gated && pod.node.is_none() && pod.is_active();
    let unread = || view.unread.get(&(Kind::Pod, pod.key.clone()));
    is_held.then(unread)?.map(|fields| &**fields)
}

#[async_trait]
impl Reconcile for UnreadablePods {
    type Key = PodKey;
    type Error = StepError;
    const NAME: &'static str = "provisioner.unreadable";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(PodKey)) {
        if let Event::Pod(change) = event
            && change.new.as_ref().is_some_and(|pod| obstacles(pod, view).is_some())
        {
            add(change.key.clone());
        }
    }

    async fn reconcile(&self, key: &PodKey) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let pod = view.snapshot.pods.get(key);
        let Some((pod, fields)) = pod.and_then(|pod| Some((pod, obstacles(pod, &view)?))) else {
            return Ok(Action::AwaitChange);
        };
        self.ctx.outbox.publish(notices::unreadable_demand(pod, fields));
        Ok(Action::After(EVERY))
    }
}
