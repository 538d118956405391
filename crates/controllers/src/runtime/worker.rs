//! Works on the keys of one controller, a bounded number at a time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use state::Index;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tracing::{Instrument, debug, error, error_span};

use super::{
    Action, Queue, Reconcile,
    backoff::{Failures, after_conflicts},
};
use crate::{
    error::{Classify, Retry, chain},
    metrics::{Metrics, Outcome},
};

pub struct Worker<R: Reconcile> {
    controller: Arc<R>,
    keys: mpsc::UnboundedReceiver<R::Key>,
    index: Arc<Index>,
    metrics: Arc<Metrics>,
    queue: Queue<R::Key>,
    failures: Failures<R::Key>,
    /// Since when keys that a change has touched wait, for the metrics.
    told: BTreeMap<R::Key, Instant>,
}

type Run<R> = (<R as Reconcile>::Key, Instant, Result<Action, <R as Reconcile>::Error>);

impl<R: Reconcile> Worker<R> {
    pub fn new(
        controller: Arc<R>,
        keys: mpsc::UnboundedReceiver<R::Key>,
        index: Arc<Index>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            controller,
            keys,
            index,
            metrics,
            queue: Queue::default(),
            failures: Failures::default(),
            told: BTreeMap::new(),
        }
    }

    /// Runs until it is dropped, or until nobody can send keys any more.
    ///
    /// Nothing is worked on before the index is synced: to a half-filled index a busy node looks empty.
    pub async fn run(mut self) {
        self.metrics.runtime.announce(R::NAME, R::CONCURRENCY);
        self.index.until(|view| view.synced).await;
        let mut running: FuturesUnordered<BoxFuture<'static, Run<R>>> = FuturesUnordered::new();
        loop {
            while let Ok(key) = self.keys.try_recv() {
                self.add(key);
            }
            self.queue.wake(Instant::now());
            while running.len() < R::CONCURRENCY
                && let Some(key) = self.queue.take()
            {
                running.push(self.start(key));
            }
            self.metrics.runtime.depth(R::NAME, self.queue.depth());

            let wake = self.queue.next_wake();
            tokio::select! {
                biased;
                Some((key, started, result)) = running.next(), if !running.is_empty() => self.finish(&key, started, result),
                key = self.keys.recv() => match key {
                    Some(key) => self.add(key),
                    None => return,
                },
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    fn add(&mut self, key: R::Key) {
        self.metrics.runtime.added(R::NAME);
        self.told.entry(key.clone()).or_insert_with(Instant::now);
        self.queue.add(key);
    }

    fn start(&mut self, key: R::Key) -> BoxFuture<'static, Run<R>> {
        let controller = self.controller.clone();
        let started = Instant::now();
        let told = self.told.remove(&key).unwrap_or(started);
        self.metrics.runtime.started(R::NAME, started - told, started);
        let span = error_span!("reconcile", controller = R::NAME, name = ?key);
        Box::pin(
            async move {
                let result = controller.reconcile(&key).await;
                (key, started, result)
            }
            .instrument(span),
        )
    }

    fn finish(&mut self, key: &R::Key, started: Instant, result: Result<Action, R::Error>) {
        let (outcome, wait) = match &result {
            Ok(Action::AwaitChange) => (Outcome::Success, None),
            Ok(Action::After(wait)) => (Outcome::RequeueAfter, Some(*wait)),
            Err(failure) => match self.wait_after(key, failure) {
                None => (Outcome::TerminalError, None),
                Some(wait) => {
                    self.metrics.runtime.retried(R::NAME);
                    (Outcome::Error, Some(wait))
                }
            },
        };
        if result.is_ok() {
            self.failures.clear(key);
        }
        self.metrics
            .runtime
            .reconciled(R::NAME, outcome, started, started.elapsed());
        self.queue.done(key);
        if let Some(wait) = wait {
            self.queue.add_at(key.clone(), Instant::now() + wait);
        }
    }

    fn wait_after(&mut self, key: &R::Key, failure: &R::Error) -> Option<Duration> {
        let before = self.failures.count(key);
        let wait = match failure.retry() {
            Retry::Never => None,
            Retry::AtOnce => Some(after_conflicts(before + 1)),
            Retry::WithBackoff => Some(R::PACE.after(before)),
            Retry::After(wait) => Some(wait),
        };
        if failure.is_expected() {
            debug!(controller = R::NAME, name = ?key, error = %chain(failure), "reconciling again");
        } else {
            error!(controller = R::NAME, name = ?key, error = %chain(failure), "reconcile failed");
        }
        wait
    }
}
