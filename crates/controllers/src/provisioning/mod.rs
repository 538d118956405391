//! Turns pods without a place into node claims.
//!
//! ```text
//!  pods, nodes ─► batch ─► everything launched? ─► round: solve ─► claims created, machines nominated, refusals told
//!                                                    ▲                                             │
//!                                                    └────────── 10 s later, if pods are left ─────┘
//! ```
//!
//! One round at a time, and none before everything that earlier rounds created is in the index with its instance: a
//! round that does not know what is on its way would order it twice.

mod act;
mod batch;
pub(crate) mod claim_object;
pub(crate) mod creation;
mod decide;
mod names;
mod notices;
mod observe;
pub mod promises;
pub mod unreadable;

use std::time::Duration;

pub(crate) use self::act::{create, tell_placed};
use model::PodKey;
use scheduler::Refusal;
use state::Changes;
use tokio::time::Instant;
use tracing::{debug, info};

use self::{
    batch::Batch,
    observe::{Asked, observe},
};
use crate::{capacity_buffer, context::Ctx};

/// Pods that are still waiting are looked at again after this time, whatever happens.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

pub struct Provisioner {
    ctx: Ctx,
    changes: Changes,
}

impl Provisioner {
    pub const NAME: &'static str = "provisioner";

    pub fn new(ctx: &Ctx) -> Self {
        Self {
            ctx: ctx.of(Self::NAME),
            changes: ctx.index.subscribe(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let has_buffers = self.ctx.knobs.features.capacity_buffer;
        // Which machines hold room is known after the first round, so that one does not wait for a pod.
        let mut look_again = has_buffers.then(Instant::now);
        loop {
            let batch = Batch::new(self.ctx.knobs.batch_idle, self.ctx.knobs.batch_max);
            if batch.collect(&mut self.changes, look_again).await.is_closed() {
                return;
            }
            // Claims without an instance have no size yet: what they will hold cannot be counted.
            self.ctx
                .index
                .until(|view| view.synced && view.unlaunched.is_empty() && view.unresolved_buffers.is_empty())
                .await;
            let pods_left = self.round().await;
            look_again = pods_left.then(|| Instant::now() + LOOK_AGAIN);
        }
    }

    /// Says whether pods are left that will need another look: placed ones until they are bound, refused ones until
    /// something changes, those of nodes that are going until they are gone, those of buffers until their machines are
    /// known.
    async fn round(&self) -> bool {
        let view = self.ctx.index.view();
        let Asked { round, ignored } = observe(&view.snapshot, &self.ctx);
        let rounds = &self.ctx.metrics.rounds;
        rounds.ignored(ignored.len());
        let now = self.ctx.clock.now();
        for pod in &ignored {
            debug!(Pod = %pod, "ignoring pod");
            self.ctx.metrics.pods.decided(pod, false, now);
        }
        let has_buffers = self.ctx.knobs.features.capacity_buffer;
        if round.pods.is_empty() {
            if has_buffers {
                capacity_buffer::report(&self.ctx, &view, &[]).await;
            }
            // Pods of a node on its way out may be held there now and free to move by the passing of time alone.
            return view.snapshot.nodes.values().any(|machine| machine.is_leaving());
        }
        if view.snapshot.pools.values().all(|pool| pool.is_static()) {
            info!("no dynamic nodepools found");
        }
        // The number of the snapshot tells rounds apart: two rounds on one snapshot would come to the same.
        let id = format!("{:016x}", view.snapshot.version);
        let under_way = rounds.begin(Self::NAME, id, round.pods.len());
        let decision = decide::decide(&view.snapshot, &round);
        drop(under_way);
        let is_real = |key: &PodKey| view.snapshot.pods.get(key).is_none_or(|pod| !pod.is_virtual());
        let refused = decision.refused.keys().filter(|pod| is_real(pod)).count();
        rounds.unschedulable(Self::NAME, refused);
        rounds.zones(Self::NAME, &decision.zones);
        let audited = |refusal: &&Refusal| matches!(refusal, Refusal::Audited(_));
        rounds.dropped(Self::NAME, decision.refused.values().filter(audited).count());
        for pod in round.pods.iter().filter(|pod| is_real(pod)) {
            self.ctx
                .metrics
                .pods
                .decided(pod, !decision.refused.contains_key(pod), now);
        }
        if has_buffers {
            capacity_buffer::report(&self.ctx, &view, &decision.placements).await;
        }
        // Which machines hold room is told by placements. Until a round has placed a buffer's pods on the machines that
        // are launched for them, those machines look empty.
        let launched = decision.launches.iter().flat_map(|launch| &launch.pods);
        let room_to_tell = launched.into_iter().any(|pod| !is_real(pod));
        act::act(&self.ctx, &view, decision).await;
        room_to_tell || round.pods.iter().any(is_real)
    }
}
