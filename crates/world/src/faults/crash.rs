//! The controller dies: at any request, before or after it, at any poll, or when the story says so.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
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

/// A future that dies at its n-th poll: between any two of its await points.
pub struct Mortal<F> {
    life: Pin<Box<F>>,
    polls_left: u64,
}

impl<F: Future> Mortal<F> {
    /// Zero polls mean that it lives as long as it likes.
    pub fn new(life: F, polls: u64) -> Self {
        Self {
            life: Box::pin(life),
            polls_left: if polls == 0 { u64::MAX } else { polls },
        }
    }
}

impl<F: Future> Future for Mortal<F> {
    /// Nothing when it died.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(None);
        }
        self.polls_left -= 1;
        self.life.as_mut().poll(context).map(Some)
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

    #[tokio::test(start_paused = true)]
    async fn a_mortal_dies_between_two_awaits() {
        let life = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(Mortal::new(life, 3).await, None);
        assert_eq!(Mortal::new(async { 1 }, 0).await, Some(1));
    }
}
