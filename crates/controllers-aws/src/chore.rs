//! Work that has no keys: done once the index is synced, and again after a while.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use controllers::{
    error::StepError,
    runtime::{Action, Reconcile},
};
use state::{Event, View};

use crate::AwsCtx;

/// Something to do from time to time.
#[async_trait]
pub trait Chore: Send + Sync + 'static {
    /// As operators know it from logs and metrics.
    const NAME: &'static str;

    /// Does it, and says when it is due again.
    async fn run(&self, aws: &AwsCtx) -> Result<Duration, StepError>;
}

/// A chore as a controller.
pub struct Regularly<C> {
    aws: AwsCtx,
    chore: C,
    /// Whoever subscribes to a synced index may hear of it twice; a chore that starts over is done twice.
    has_begun: AtomicBool,
}

impl<C: Chore> Regularly<C> {
    pub fn new(aws: &AwsCtx, chore: C) -> Self {
        let ctx = aws.ctx.of(C::NAME);
        let aws = AwsCtx { ctx, ..aws.clone() };
        Self {
            aws,
            chore,
            has_begun: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl<C: Chore> Reconcile for Regularly<C> {
    type Key = ();
    type Error = StepError;
    const NAME: &'static str = C::NAME;
    const CONCURRENCY: usize = 1;

    fn keys(&self, event: &Event, _: &View, add: &mut dyn FnMut(())) {
        if matches!(event, Event::Synced) && !self.has_begun.swap(true, Ordering::Relaxed) {
            add(());
        }
    }

    async fn reconcile(&self, (): &()) -> Result<Action, StepError> {
        Ok(Action::After(self.chore.run(&self.aws).await?))
    }
}
