//! Lets go of machines that the cloud is about to take back, while there is still time to move their pods.
//!
//! The claim is deleted; the drain that follows is the one that every node gets. A notice is acknowledged only after
//! that, so that one whose handling failed, or whose handler died, is told again.

mod decide;

use std::{sync::Arc, time::Duration};

use api::v1::NodeClaim;
use async_trait::async_trait;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use provider::Notice;
use state::{Event, View};
use tracing::info;

use self::decide::{Response, decide};
use crate::{
    context::Ctx,
    error::{CloudError, StepError},
    node_claim::remove,
    objects::{about_claim, about_node, is_deleting},
    outbox::{self, About},
    runtime::{Action, Reconcile},
};

pub struct Interruption {
    ctx: Ctx,
}

impl Interruption {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }

    async fn handle(&self, notice: &Notice) -> Result<(), StepError> {
        let age = self.ctx.clock.now().duration_since(notice.sent);
        self.ctx.metrics.interruption.received(notice.kind, age);
        let response = decide(notice.kind);
        let view = self.ctx.index.view();
        for instance in &notice.instances {
            let nodes = view.nodes_of(instance.as_str());
            for claim in view.claims_of(instance.as_str()) {
                self.respond(claim, &nodes, &response).await?;
            }
        }
        let acknowledged = self.ctx.cloud.acknowledge(notice).await;
        let action = "take an acknowledgement";
        acknowledged.map_err(|cause| CloudError { action, cause })?;
        self.ctx.metrics.interruption.acknowledged();
        Ok(())
    }

    async fn respond(&self, claim: &NodeClaim, nodes: &[&Arc<Node>], response: &Response) -> Result<(), StepError> {
        let told: Vec<About> = [about_claim(claim)]
            .into_iter()
            .chain(nodes.iter().map(|node| about_node(node)))
            .collect();
        for about in &told {
            self.ctx.outbox.publish(outbox::Notice {
                severity: response.severity,
                ..outbox::Notice::normal(response.reason, about.clone(), response.message.to_owned())
            });
        }
        let Some(why) = response.removal.filter(|_| !is_deleting(claim)) else {
            return Ok(());
        };
        remove(&self.ctx, claim, why).await?;
        info!(NodeClaim = %claim.name_any(), reason = why.as_str(), "initiating delete from interruption message");
        for about in told {
            let message = "Terminating because of an interruption".to_owned();
            self.ctx
                .outbox
                .publish(outbox::Notice::warning("TerminatingOnInterruption", about, message));
        }
        Ok(())
    }
}

#[async_trait]
impl Reconcile for Interruption {
    type Key = ();
    type Error = StepError;
    const NAME: &'static str = "interruption";
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(())) {
        if matches!(event, Event::Synced) {
            add(());
        }
    }

    async fn reconcile(&self, (): &()) -> Result<Action, StepError> {
        let action = "tell its notices";
        let notices = self.ctx.cloud.notices().await;
        let notices = notices.map_err(|cause| CloudError { action, cause })?;
        // One that fails is told again; the others have no time to wait for it.
        let mut failed = None;
        for notice in &notices {
            if let Err(error) = self.handle(notice).await {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(Action::After(Duration::ZERO)), Err)
    }
}
