//! Tells people of nodes that are not what their claims say.
//!
//! A claim is looked at when it or its node changes, and at most every ten minutes: what is found is for people, and
//! nothing else follows from it.

mod decide;

use std::{collections::BTreeMap, time::Duration};

use api::{
    conditions::{HasConditions, is_true, node_claim as condition},
    v1::NodeClaim,
};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use model::ClaimName;
use parking_lot::Mutex;
use state::{Event, View};
use tracing::error;

use super::Draft;
use crate::{
    context::Ctx,
    error::StepError,
    objects::{about_claim, instance_of, instance_under, is_deleting},
    outbox::Notice,
    runtime::{Action, Reconcile},
};

/// How often a claim is checked.
const EVERY: SignedDuration = SignedDuration::from_mins(10);

pub struct Consistency {
    ctx: Ctx,
    /// When each claim was checked last, and which claim of that name it was.
    checked: Mutex<BTreeMap<ClaimName, (String, Timestamp)>>,
}

impl Consistency {
    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            checked: Mutex::default(),
        }
    }

    /// How long until the claim is due; `None` when it is due now.
    fn not_before(&self, name: &ClaimName, uid: &str, now: Timestamp) -> Option<Duration> {
        let checked = self.checked.lock();
        let (_, last) = checked.get(name).filter(|(known, _)| known == uid)?;
        let left = EVERY - now.duration_since(*last);
        left.is_positive().then(|| left.unsigned_abs())
    }

    async fn record(&self, claim: &NodeClaim, issues: &[decide::Issue]) -> Result<(), StepError> {
        let now = self.ctx.clock.now();
        let mut draft = Draft::of(claim, now);
        for issue in issues {
            error!(NodeClaim = %claim.name_any(), error = %issue, "consistency error");
            let message = issue.to_string();
            let notice = Notice::warning("FailedConsistencyCheck", about_claim(claim), message.clone());
            self.ctx.outbox.publish(notice.told_apart_by(message));
        }
        if issues.is_empty() {
            draft.conditions.set_true(condition::CONSISTENT_STATE_FOUND, now);
        } else {
            let (name, reason) = (condition::CONSISTENT_STATE_FOUND, "ConsistencyCheckFailed");
            draft
                .conditions
                .set_false(name, reason, "Consistency Check Failed", now);
        }
        draft.write(&self.ctx.writer).await?;
        Ok(())
    }
}

#[async_trait]
impl Reconcile for Consistency {
    type Key = ClaimName;
    type Error = StepError;
    const NAME: &'static str = "nodeclaim.consistency";
    const CONCURRENCY: usize = 10;

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(ClaimName)) {
        match event {
            Event::Claim(change) => add((&*change.key.name).into()),
            Event::Node(change) => {
                let instance = change.latest().and_then(|node| instance_under(node));
                for claim in instance.map(|id| view.claims_of(id)).unwrap_or_default() {
                    add(claim.name_any().into());
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, name: &ClaimName) -> Result<Action, StepError> {
        let view = self.ctx.index.view();
        let Some(claim) = view.claims.named(name.as_str()) else {
            self.checked.lock().remove(name);
            return Ok(Action::AwaitChange);
        };
        let Some(instance) = instance_of(claim) else {
            return Ok(Action::AwaitChange);
        };
        // Before that the lifecycle speaks, and while a claim goes nobody asks any more.
        if is_deleting(&**claim) || !is_true(claim.conditions(), condition::INITIALIZED) {
            return Ok(Action::AwaitChange);
        }
        let [node] = view.nodes_of(instance)[..] else {
            return Ok(Action::AwaitChange);
        };
        let (uid, now) = (claim.uid().unwrap_or_default(), self.ctx.clock.now());
        if let Some(wait) = self.not_before(name, &uid, now) {
            return Ok(Action::After(wait));
        }
        let mut issues = decide::shared(claim, instance, &view.claims_of(instance));
        issues.extend(decide::shape(claim, node));
        self.record(claim, &issues).await?;
        // Noted after the write: a check whose outcome was not recorded has not been made.
        self.checked.lock().insert(name.clone(), (uid, now));
        Ok(Action::After(EVERY.unsigned_abs()))
    }
}
