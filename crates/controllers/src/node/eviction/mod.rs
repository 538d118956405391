//! Sends pods away, one request at a time each, for as long as it takes.
//!
//! Entries live in memory only. They are bound to a pod's UID, so that one never hits a namesake, and a drain puts them
//! back within a second after a restart.

mod decide;
mod entries;
mod notices;

use std::{sync::Arc, time::Duration};

use api::conditions::{self, HasConditions, node_claim as condition};
use async_trait::async_trait;
use jiff::SignedDuration;
use model::Pod;
use state::{Event, View};

use self::decide::{Step, decide};
pub use self::entries::{Evictions, Victim};
use super::termination::failed_draining;
use crate::{
    context::Ctx,
    error::{Classify, Reason, Retry},
    objects::{about_node, instance_under},
    runtime::{Action, Pace, Reconcile},
    writer::{ApiError, ApiFailure},
};

/// A pod that was let go is seen to go within this time, or is asked to once more.
const CARRIED_OUT_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Why a pod is still there.
#[derive(Debug, thiserror::Error)]
pub enum EvictionError {
    #[error("a disruption budget does not let pod {pod} go now")]
    Budget {
        pod: String,
        #[source]
        cause: ApiError,
    },
    #[error("pod {pod} is not to be disturbed")]
    Protected { pod: String },
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl Classify for EvictionError {
    fn reason(&self) -> Reason {
        match self {
            EvictionError::Budget { .. } | EvictionError::Protected { .. } => Reason::Rejected,
            EvictionError::Api(error) => error.reason(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            EvictionError::Budget { .. } | EvictionError::Protected { .. } => Retry::WithBackoff,
            EvictionError::Api(error) => error.retry(),
        }
    }

    fn is_expected(&self) -> bool {
        matches!(self, EvictionError::Budget { .. } | EvictionError::Protected { .. })
    }
}

pub struct EvictionQueue {
    ctx: Ctx,
    evictions: Arc<Evictions>,
}

impl EvictionQueue {
    pub fn new(ctx: &Ctx, evictions: Arc<Evictions>) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            evictions,
        }
    }

    /// Says whether the pod is going, rather than gone.
    async fn evict(&self, victim: &Victim, pod: &Pod, node: &str) -> Result<bool, EvictionError> {
        let sent = self.ctx.writer.evict(&victim.pod, &victim.uid).await;
        let code = sent.as_ref().map_or_else(ApiError::code, |()| 200);
        self.ctx.metrics.claims.eviction(code);
        match sent {
            Ok(()) => {
                let reason = self.reason(node);
                self.ctx.metrics.claims.pod_drained(&reason);
                self.ctx.outbox.publish(notices::evicted(pod, &reason));
                Ok(true)
            }
            // Gone, or another pod by now.
            Err(error) if matches!(error.failure, ApiFailure::NotFound | ApiFailure::Conflict) => Ok(false),
            Err(cause) if cause.failure == ApiFailure::Budget => {
                if let Some(node) = self.ctx.index.view().nodes.named(node) {
                    let why = format!("evicting pod {} would violate a disruption budget", victim.pod);
                    let notice = failed_draining(about_node(node), &why).told_apart_by("budget");
                    self.ctx.outbox.publish(notice);
                }
                let pod = victim.pod.to_string();
                Err(EvictionError::Budget { pod, cause })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The reason why the pod's node is going, as people know it.
    fn reason(&self, node: &str) -> String {
        let view = self.ctx.index.view();
        let Some(instance) = view.nodes.named(node).and_then(|node| instance_under(node)) else {
            return String::new();
        };
        let [claim] = view.claims_of(instance)[..] else {
            return String::new();
        };
        let found = conditions::find(claim.conditions(), condition::DISRUPTION_REASON);
        found.map_or_else(
            || "Forceful Termination".to_owned(),
            |condition| condition.reason.clone(),
        )
    }
}

/// Whether a change of a pod may end its stay in the queue, or its wait there. Other changes are no reason to ask its
/// budget before the time.
fn is_news(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => !new.is_active() || old.uid != new.uid || old.do_not_disrupt != new.do_not_disrupt,
        _ => true,
    }
}

#[async_trait]
impl Reconcile for EvictionQueue {
    type Key = Victim;
    type Error = EvictionError;
    const NAME: &'static str = "eviction-queue";
    const CONCURRENCY: usize = 100;
    const PACE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(10));

    fn keys(&self, event: &Event, view: &View, add: &mut dyn FnMut(Victim)) {
        match event {
            Event::Pod(change) => {
                if let Some(pod) = change.latest().filter(|pod| self.evictions.holds(pod))
                    && is_news(change.old.as_deref(), change.new.as_deref())
                {
                    add(Victim::of(pod));
                }
            }
            // As many as the budget has room for: the others would only be told no again.
            Event::Budget(change) => {
                if let Some(budget) = &change.new {
                    let room = usize::try_from(budget.disruptions_allowed).unwrap_or(0);
                    let mut waiting = self.evictions.waiting_in(&budget.key.namespace);
                    waiting.retain(|victim| {
                        view.snapshot
                            .pods
                            .get(&victim.pod)
                            .is_some_and(|pod| budget.covers(pod))
                    });
                    waiting.into_iter().take(room).for_each(add);
                }
            }
            _ => {}
        }
    }

    async fn reconcile(&self, victim: &Victim) -> Result<Action, EvictionError> {
        let Some(entry) = self.evictions.entry(victim) else {
            return Ok(Action::AwaitChange);
        };
        let view = self.ctx.index.view();
        let pod = view.snapshot.pods.get(&victim.pod).filter(|pod| pod.uid == victim.uid);
        // With its node goes the reason for sending a pod away; what the node left behind, the cluster collects.
        let pod = pod.filter(|_| view.nodes.named(&entry.node).is_some());
        let Some(pod) = pod else {
            self.evictions.remove(victim);
            return Ok(Action::AwaitChange);
        };
        match decide(pod, entry.deadline, self.ctx.clock.now()) {
            Step::Drop => {}
            Step::Wait => {
                let pod = victim.pod.to_string();
                return Err(EvictionError::Protected { pod });
            }
            Step::Evict => {
                let now = self.ctx.clock.now();
                let left = entry
                    .granted
                    .map(|since| CARRIED_OUT_WITHIN - now.duration_since(since));
                if let Some(left) = left.filter(SignedDuration::is_positive) {
                    return Ok(Action::After(left.unsigned_abs()));
                }
                if self.evict(victim, pod, &entry.node).await? {
                    self.evictions.grant(victim, now);
                    return Ok(Action::After(CARRIED_OUT_WITHIN.unsigned_abs()));
                }
            }
            Step::Delete { grace_secs } => match self.ctx.writer.delete_pod(&victim.pod, &victim.uid, grace_secs).await
            {
                Ok(()) => self.ctx.outbox.publish(notices::disrupted(pod, grace_secs)),
                Err(error) if matches!(error.failure, ApiFailure::NotFound | ApiFailure::Conflict) => {}
                Err(error) => return Err(error.into()),
            },
        }
        self.evictions.remove(victim);
        Ok(Action::AwaitChange)
    }
}
