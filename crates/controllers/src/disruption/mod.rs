//! Removes nodes that are better gone: now those without pods.
//!
//! ```text
//!  heal ─► candidates ─► method decides ─► 15 s ─► decided again: what survives is carried out
//!   ▲                                                                       │
//!   └──────────── at once after an act, else after 10 s ────────────────────┘
//! ```
//!
//! Between decision and act a pod may be bound, a node nominated, a budget closed; the second decision, on the cluster
//! as it is then, is what counts. All choices are made in crate `disruption`; here they are waited for and carried out.

mod act;
mod decide;
mod heal;
mod notices;

use std::time::Duration;

use disruption::Command;
use model::budget::DisruptionReason;
use state::View;
use tokio::time::{Instant, sleep};
use tracing::{debug, error};

use self::decide::{propose, revalidate};
use crate::{
    context::Ctx,
    error::{StepError, chain},
    runtime::Pace,
};

const IDLE: Duration = Duration::from_secs(10);
const UNSYNCED: Duration = Duration::from_secs(1);
/// Longer than pod events are deduplicated for, so that none can hide in between.
const VALIDATION_DELAY: Duration = Duration::from_secs(15);
const PACE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(60));

/// The label under which metrics know the method.
const EMPTY: &str = "empty";

pub struct Disruption {
    ctx: Ctx,
}

enum Pass {
    Acted,
    Idle,
    Unsynced,
}

impl Disruption {
    pub const NAME: &'static str = "disruption";

    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        self.ctx.index.until(|view| view.synced).await;
        let mut failures = 0;
        loop {
            let wait = match self.pass().await {
                Ok(Pass::Acted) => Duration::ZERO,
                Ok(Pass::Idle) => IDLE,
                Ok(Pass::Unsynced) => UNSYNCED,
                Err(failure) => {
                    error!(controller = Self::NAME, error = %chain(&failure), "disruption pass failed");
                    failures += 1;
                    sleep(PACE.after(failures - 1)).await;
                    continue;
                }
            };
            failures = 0;
            sleep(wait).await;
        }
    }

    async fn pass(&self) -> Result<Pass, StepError> {
        let view = self.ctx.index.view();
        if !view.synced || !view.unlaunched.is_empty() {
            return Ok(Pass::Unsynced);
        }
        heal::heal(&self.ctx, &view).await?;
        let Some(proposed) = self.propose(&view) else {
            return Ok(Pass::Idle);
        };
        sleep(VALIDATION_DELAY).await;
        let view = self.ctx.index.view();
        let command = revalidate(&view.snapshot, &proposed, self.ctx.clock.now());
        let kept = command.as_ref().map_or(0, |command| command.nodes.len());
        self.ctx
            .metrics
            .disruption
            .failed_validation(EMPTY, proposed.nodes.len() - kept);
        let Some(command) = command else {
            debug!(
                nodes = proposed.nodes.len(),
                "abandoned a command that did not survive its validation"
            );
            return Ok(Pass::Idle);
        };
        act::carry_out(&self.ctx, &view, &command).await?;
        Ok(Pass::Acted)
    }

    /// Decides, and tells what was found on the way.
    fn propose(&self, view: &View) -> Option<Command> {
        let started = Instant::now();
        let now = self.ctx.clock.now();
        let proposal = propose(&view.snapshot, now);
        let (reason, took) = (DisruptionReason::Empty, started.elapsed());
        let metrics = &self.ctx.metrics.disruption;
        metrics.eligible(reason, proposal.eligible);
        metrics.evaluated(reason, EMPTY, took);
        for stay in &proposal.staying {
            notices::blocked(&self.ctx, view, stay);
        }
        for candidate in &proposal.never {
            notices::unconsolidatable(&self.ctx, view, candidate);
        }
        notices::budgets(&self.ctx, view, reason, now);
        proposal.command
    }
}
