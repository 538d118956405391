//! The controller dies: at any step towards the outside or back from it, or when the story says so.
//!
//! Between two such steps nothing that it does can be seen from outside, so dying at each of them covers dying at every
//! await point in between.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Stands between one life of the controller and everything outside it. Once that life is over nothing passes any more,
/// not even from a task that it left behind. Clones are handles to the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<State>);

#[derive(Default)]
struct State {
    dead: AtomicBool,
    steps: AtomicU64,
    /// The step at which life ends; zero for never.
    fuse: AtomicU64,
    death: Notify,
}

impl Gate {
    /// Life ends at this step, counted from the first.
    pub fn burn_out_after(&self, steps: u64) {
        self.0.fuse.store(steps, Ordering::Relaxed);
    }

    /// A step towards the outside or back from it. Never returns once life is over.
    pub async fn pass(&self) {
        let step = self.0.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if step == self.0.fuse.load(Ordering::Relaxed) {
            self.close();
        }
        if self.is_closed() {
            std::future::pending::<()>().await;
        }
    }

    /// How many steps were taken so far.
    pub fn steps(&self) -> u64 {
        self.0.steps.load(Ordering::Relaxed)
    }

    pub fn close(&self) {
        self.0.dead.store(true, Ordering::Relaxed);
        self.0.death.notify_one();
    }

    pub fn is_closed(&self) -> bool {
        self.0.dead.load(Ordering::Relaxed)
    }

    /// Waits for the end.
    pub async fn closed(&self) {
        while !self.is_closed() {
            self.0.death.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_after_the_fuse_has_burnt_down() {
        let gate = Gate::default();
        gate.burn_out_after(2);
        gate.pass().await;
        assert!(tokio::time::timeout(Duration::from_secs(1), gate.pass()).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(1), gate.pass()).await.is_err());
        gate.closed().await;
    }
}
