//! Tells every node overlay whether it is in force, and why not.
//!
//! What overlays change is decided in [`model::overlay`]; where the result is kept is [`crate::catalog::Shelves`].

use std::time::Duration;

use api::{
    conditions::{Conditions, node_pool::VALIDATION_SUCCEEDED},
    v1::NodePool,
    v1alpha1::NodeOverlay,
};
use async_trait::async_trait;
use kube::ResourceExt;
use state::{Change, Event, View};

use crate::{
    catalog::Verdict,
    context::Ctx,
    error::StepError,
    runtime::{Action, Reconcile},
};

/// Everything that matters is a change; this is for what nobody thought of.
const LOOK_AGAIN: Duration = Duration::from_secs(6 * 60 * 60);

pub struct NodeOverlays {
    ctx: Ctx,
}

impl NodeOverlays {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }
}

#[async_trait]
impl Reconcile for NodeOverlays {
    /// All overlays are looked at together: each may contradict any other.
    type Key = ();
    type Error = StepError;
    const NAME: &'static str = "nodeoverlay.controller";
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(())) {
        let concerns = match event {
            Event::Overlay(change) => overlay_changed(change),
            Event::Pool(change) => pool_changed(change),
            Event::Catalog(_) => true,
            _ => false,
        };
        if concerns {
            add(());
        }
    }

    async fn reconcile(&self, (): &()) -> Result<Action, StepError> {
        let verdicts = self.ctx.shelves.evaluate(&self.ctx.index);
        let view = self.ctx.index.view();
        for overlay in view.overlays.values() {
            if let Some(verdict) = verdicts.get(overlay.name_any().as_str()) {
                let wanted = judged(overlay, verdict, self.ctx.clock.now());
                self.ctx.writer.update_status(&**overlay, &wanted).await?;
            }
        }
        Ok(Action::After(LOOK_AGAIN))
    }
}

fn overlay_changed(change: &Change<NodeOverlay>) -> bool {
    let spec = |side: &Option<std::sync::Arc<NodeOverlay>>| side.as_ref().map(|overlay| overlay.spec.clone());
    spec(&change.old) != spec(&change.new)
}

fn pool_changed(change: &Change<NodePool>) -> bool {
    let generation = |side: &Option<std::sync::Arc<NodePool>>| side.as_ref().map(|pool| pool.metadata.generation);
    generation(&change.old) != generation(&change.new)
}

fn judged(overlay: &NodeOverlay, verdict: &Verdict, now: jiff::Timestamp) -> NodeOverlay {
    let mut judged = overlay.clone();
    let mut conditions = Conditions::of(overlay, now);
    match verdict {
        Verdict::InForce => conditions.set_true(VALIDATION_SUCCEEDED, now),
        Verdict::Invalid(message) => conditions.set_false(VALIDATION_SUCCEEDED, "RuntimeValidation", message, now),
        Verdict::Conflict => {
            conditions.set_false(VALIDATION_SUCCEEDED, "Conflict", "conflict with another overlay", now)
        }
    };
    judged.status.get_or_insert_default().conditions = Some(conditions.into_list());
    judged
}

#[cfg(test)]
mod tests {
    use api::conditions;

    use super::*;

    #[test]
    fn a_verdict_becomes_a_condition() {
        let overlay = NodeOverlay::new("o", Default::default());
        let told = |verdict: &Verdict| {
            let judged = judged(&overlay, verdict, jiff::Timestamp::UNIX_EPOCH);
            let listed = judged
                .status
                .and_then(|status| status.conditions)
                .expect("conditions are there");
            let of = |type_: &str| conditions::find(&listed, type_).expect("it is there").clone();
            let (validation, ready) = (of(VALIDATION_SUCCEEDED), of(conditions::READY));
            format!("{} {} ready={}", validation.status, validation.reason, ready.status)
        };
        assert_eq!(told(&Verdict::InForce), "True ValidationSucceeded ready=True");
        assert_eq!(told(&Verdict::Conflict), "False Conflict ready=False");
        assert_eq!(
            told(&Verdict::Invalid("x".to_owned())),
            "False RuntimeValidation ready=False"
        );
    }
}
