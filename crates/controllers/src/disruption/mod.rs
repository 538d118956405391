//! Removes nodes that are better gone: empty, drifted, or dearer than what their pods need.
//!
//! ```text
//!  heal ─► decide on the whole cluster ─► drift ───────────────────────────┐
//!   ▲            └─► empty, under-used ─► 15 s ─► validated, what is left ─┴─► start ─► queue ─► finish or roll back
//!   └──────── at once after an act, else after 10 s ───────────────────────────┘         (any number at a time)
//! ```
//!
//! Between decision and act a pod may be bound, a node nominated, a budget closed; the second decision, on the cluster
//! as it is then, is what counts. All choices are made in crate `disruption`; here they are waited for and carried out.

mod finish;
mod heal;
mod log;
mod mark;
mod notices;
mod queue;
mod start;

use std::{collections::BTreeMap, time::Duration};

use disruption::{Command, Method, Pass, Settings, Stay, Why, decide, validate};
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use jiff::{SignedDuration, Timestamp};
use model::{PoolName, budget::DisruptionReason};
use parking_lot::Mutex;
use state::View;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tracing::{debug, error};

use self::queue::{Started, Taken};
use crate::{
    context::Ctx,
    error::{Classify, StepError, chain},
    runtime::{Pace, after_conflicts},
};

const IDLE: Duration = Duration::from_secs(10);
const UNSYNCED: Duration = Duration::from_secs(1);
/// Longer than pod events are deduplicated for, so that none can hide in between.
const VALIDATION_DELAY: Duration = Duration::from_secs(15);
/// What was decided about a cluster that has not changed since holds for so long, unless the hour of something is known.
const MEMORY: Duration = Duration::from_secs(60);
/// When nothing could be decided for so long, the log says so.
const ABNORMAL: Duration = Duration::from_secs(15 * 60);
const PACE: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(60));

pub struct Disruption {
    ctx: Ctx,
    taken: Taken,
    /// The version of the cluster about which there was nothing to do, and until when that holds.
    settled: Mutex<Option<(u64, Instant)>>,
    /// Why the budgets of pools cannot be read, as the log has it.
    unreadable: Mutex<BTreeMap<PoolName, String>>,
}

enum Turn {
    Acted,
    Idle,
    Unsynced,
}

impl Disruption {
    pub const NAME: &'static str = "disruption";

    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            taken: Taken::default(),
            settled: Mutex::new(None),
            unreadable: Mutex::default(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        self.ctx.index.until(|view| view.synced).await;
        let (sender, started) = mpsc::unbounded_channel();
        tokio::join!(biased; self.decide(sender), self.carry_out(started));
    }

    /// Commands come to their end independently of each other and of what is decided meanwhile.
    async fn carry_out(&self, mut started: mpsc::UnboundedReceiver<Started>) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                command = started.recv() => match command {
                    Some(command) => running.push(finish::see_through(&self.ctx, &self.taken, command)),
                    None => return,
                },
                Some(()) = running.next() => {}
            }
        }
    }

    async fn decide(&self, queue: mpsc::UnboundedSender<Started>) {
        let mut failures = 0;
        let mut looked = Instant::now();
        loop {
            let turn = self.turn(&queue).await;
            if matches!(turn, Ok(Turn::Acted | Turn::Idle)) {
                looked = Instant::now();
            } else if looked.elapsed() >= ABNORMAL {
                debug!(controller = Self::NAME, time_since = ?looked.elapsed(), "abnormal time between runs");
                looked = Instant::now();
            }
            let wait = match turn {
                Ok(Turn::Acted) => Duration::ZERO,
                Ok(Turn::Idle) => IDLE,
                Ok(Turn::Unsynced) => UNSYNCED,
                Err(failure) => {
                    failures += 1;
                    let wait = if failure.is_expected() {
                        debug!(controller = Self::NAME, error = %chain(&failure), "looking again");
                        after_conflicts(failures)
                    } else {
                        error!(controller = Self::NAME, error = %chain(&failure), "disruption pass failed");
                        PACE.after(failures - 1)
                    };
                    sleep(wait).await;
                    continue;
                }
            };
            failures = 0;
            sleep(wait).await;
        }
    }

    async fn turn(&self, queue: &mpsc::UnboundedSender<Started>) -> Result<Turn, StepError> {
        let view = self.ctx.index.view();
        // Claims without an instance have no size yet: what they will hold cannot be counted.
        if !view.synced || !view.unlaunched.is_empty() {
            return Ok(Turn::Unsynced);
        }
        heal::heal(&self.ctx, &view, &self.taken.nodes()).await?;
        let version = view.snapshot.version;
        if self.holds(version) {
            return Ok(Turn::Idle);
        }
        let pass = self.look(&view);
        if pass.commands.is_empty() {
            let holds = holds_for(&view, &pass, self.ctx.clock.now());
            *self.settled.lock() = Some((version, Instant::now() + holds));
            return Ok(Turn::Idle);
        }
        let (later, at_once): (Vec<_>, Vec<_>) = pass
            .commands
            .into_iter()
            .partition(|command| command.method.is_validated());
        let mut acted = self.start(&view, at_once, queue).await;
        if !later.is_empty() {
            sleep(VALIDATION_DELAY).await;
            let view = self.ctx.index.view();
            let left = self.validated(&view, later);
            acted |= self.start(&view, left, queue).await;
        }
        Ok(if acted { Turn::Acted } else { Turn::Idle })
    }

    /// Whether it is known that there is nothing to do.
    fn holds(&self, version: u64) -> bool {
        self.settled
            .lock()
            .is_some_and(|(known, until)| known == version && Instant::now() < until)
    }

    fn settings(&self) -> Settings {
        Settings {
            solver: self.ctx.knobs.solver.clone(),
            spot_to_spot: self.ctx.knobs.spot_to_spot,
            ..Settings::default()
        }
    }

    /// Decides, and tells what was found on the way.
    fn look(&self, view: &View) -> Pass {
        let started = Instant::now();
        let now = self.ctx.clock.now();
        let pass = decide(&view.snapshot, &self.settings(), &self.taken.nodes(), now);
        let took = started.elapsed();
        let metrics = &self.ctx.metrics.disruption;
        for (reason, consolidation_types, methods) in [
            (DisruptionReason::Empty, &["empty"][..], &[Method::Emptiness][..]),
            (DisruptionReason::Drifted, &[""], &[Method::StaticDrift, Method::Drift]),
            (
                DisruptionReason::Underutilized,
                &["multi", "single"],
                &[Method::Consolidation],
            ),
        ] {
            let eligible = methods.iter().filter_map(|method| pass.eligible.get(method)).sum();
            metrics.eligible(reason, eligible);
            // Upstream times its methods one by one. Here one look decides for all of them, and each has to wait for the
            // whole of it; so each series tells of the whole, and a sum over them counts it several times.
            for consolidation_type in consolidation_types {
                metrics.evaluated(reason, consolidation_type, took);
            }
        }
        notices::found(&self.ctx, view, &pass);
        notices::budgets(&self.ctx, view, &mut self.unreadable.lock(), now);
        notices::protections(&self.ctx, view, now);
        pass
    }

    fn validated(&self, view: &View, proposed: Vec<Command>) -> Vec<Command> {
        let now = self.ctx.clock.now();
        let validated = validate(&view.snapshot, &self.settings(), proposed, &self.taken.nodes(), now);
        for rejection in &validated.rejected {
            let kind = rejection.command.consolidation_type();
            self.ctx
                .metrics
                .disruption
                .failed_validation(kind, rejection.nodes.len());
            debug!(
                command = %rejection.command,
                obstacle = %rejection.obstacle,
                "abandoned a command that did not survive its validation"
            );
            notices::rejected(&self.ctx, view, rejection);
        }
        validated.commands
    }

    /// Says whether anything was begun. What was goes on at once, whatever the others wait for.
    async fn start(&self, view: &View, commands: Vec<Command>, queue: &mpsc::UnboundedSender<Started>) -> bool {
        let begun = commands.into_iter().map(async |command| {
            let started = start::start(&self.ctx, view, &self.taken, command).await;
            // The queue lives as long as we do.
            started.is_some_and(|started| queue.send(started).is_ok())
        });
        join_all(begun).await.contains(&true)
    }
}

/// For how long there will be nothing to do if nothing changes in the cluster.
fn holds_for(view: &View, pass: &Pass, now: Timestamp) -> Duration {
    let waits = pass.stays.iter().any(|stay| waits_for_a_window(view, stay));
    let window = waits.then(|| next_minute(now));
    let ends = pass.stays.iter().filter_map(|stay| stay.why.ends());
    let next = ends.chain(window).min();
    let left = next.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    left.map_or(MEMORY, |left| left.min(MEMORY))
}

/// Windows of budgets open and close on the minute.
fn next_minute(now: Timestamp) -> Timestamp {
    let passed = now.as_second().rem_euclid(60);
    now + SignedDuration::from_secs(60 - passed) - SignedDuration::from_nanos(now.subsec_nanosecond().into())
}

/// Whether a budget keeps the node that counts at some hours only: when the hour comes, nothing in the cluster changes.
fn waits_for_a_window(view: &View, stay: &Stay) -> bool {
    let Why::Budget { pool, .. } = &stay.why else {
        return false;
    };
    let pool = view.snapshot.pools.get(pool);
    let budgets = pool.and_then(|pool| pool.disruption.budgets.as_ref().ok());
    budgets.is_some_and(|budgets| budgets.iter().any(|budget| budget.window.is_some()))
}

#[cfg(test)]
mod tests {
    use super::next_minute;

    #[test]
    fn windows_open_and_close_on_the_minute() {
        let next = |now: &str| next_minute(now.parse().expect("a moment")).to_string();
        assert_eq!(next("2026-01-01T08:59:00.25Z"), "2026-01-01T09:00:00Z");
        assert_eq!(next("2026-01-01T08:59:59.9Z"), "2026-01-01T09:00:00Z");
        assert_eq!(next("2026-01-01T09:00:00Z"), "2026-01-01T09:01:00Z");
    }
}
