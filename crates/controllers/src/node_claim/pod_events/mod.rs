//! Notes on a node claim when a pod last came to its node or left it: the start of the wait for consolidation.

mod decide;

use api::v1::NodeClaim;
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::{ClaimName, NodeKey};
use state::{Event, View};

use crate::{
    context::Ctx,
    error::StepError,
    objects::is_deleting,
    runtime::{Action, Reconcile},
};

pub struct PodEvents {
    ctx: Ctx,
}

impl PodEvents {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for PodEvents {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.podevents";
    const CONCURRENCY: usize = 100;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ClaimName)) {
        let Event::Pod(change) = event else { return };
        let Some(node) = change.latest().and_then(|pod| pod.node.as_ref()) else {
            return;
        };
        let Some(machine) = view.snapshot.node_named(node) else {
            return;
        };
        let (Some(claim), NodeKey::Claim(name)) = (&machine.claim, &machine.key) else {
            return;
        };
        if decide::is_news(change.old.as_deref(), change.new.as_deref(), claim.last_pod_event) {
            add(name.clone());
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let Some(claim) = view.claims.named(name.as_str()).filter(|claim| !is_deleting(&***claim)) else {
            return Ok(Action::AwaitChange);
        };
        let now = self.ctx.clock.now();
        let noted = claim
            .status
            .as_ref()
            .and_then(|status| status.last_pod_event_time.as_ref());
        if decide::is_due(noted.map(|time| time.0), now) {
            let mut stamped = NodeClaim::clone(claim);
            stamped.status.get_or_insert_default().last_pod_event_time = Some(Time(now));
            self.ctx.writer.update_status(&**claim, &stamped).await?;
        }
        Ok(Action::AwaitChange)
    }
}
