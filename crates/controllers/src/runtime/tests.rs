//! A worker with a controller that does as it is told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use state::{Event, Index, Served, View};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{Action, Pace, Reconcile, Worker};
use crate::{
    error::{Classify, Reason, Retry},
    metrics::Metrics,
};

#[derive(Debug, thiserror::Error)]
#[error("as told")]
struct Told(Retry);

impl Classify for Told {
    fn reason(&self) -> Reason {
        Reason::Conflict
    }

    fn retry(&self) -> Retry {
        self.0
    }
}

/// Notes when each key was worked on, takes a second for it, and ends as the script says.
#[derive(Default)]
struct Scripted {
    script: Mutex<BTreeMap<&'static str, Vec<Result<Action, Retry>>>>,
    runs: Mutex<Vec<(&'static str, f64)>>,
    begun: Mutex<Option<Instant>>,
}

#[async_trait]
impl Reconcile for Scripted {
    type Key = &'static str;
    type Error = Told;
    const NAME: &'static str = "scripted";
    const CONCURRENCY: usize = 2;
    const PACE: Pace = Pace::new(Duration::from_secs(10), Duration::from_secs(15));

    fn keys(&self, _: &Event, _: &View, _: &mut dyn FnMut(&'static str)) {}

    async fn reconcile(&self, key: &&'static str) -> Result<Action, Told> {
        let begun = *self.begun.lock().get_or_insert_with(Instant::now);
        self.runs.lock().push((key, begun.elapsed().as_secs_f64()));
        sleep(Duration::from_secs(1)).await;
        let next = self
            .script
            .lock()
            .get_mut(key)
            .and_then(|steps| (!steps.is_empty()).then(|| steps.remove(0)));
        next.unwrap_or(Ok(Action::AwaitChange)).map_err(Told)
    }
}

struct Bench {
    controller: Arc<Scripted>,
    keys: mpsc::UnboundedSender<&'static str>,
    _tasks: JoinSet<()>,
}

fn bench(script: impl IntoIterator<Item = (&'static str, Vec<Result<Action, Retry>>)>) -> Bench {
    let controller = Arc::new(Scripted::default());
    *controller.script.lock() = script.into_iter().collect();
    let (keys, inbox) = mpsc::unbounded_channel();
    let index = Arc::new(Index::new(Arc::default(), Served::default()));
    let worker = Worker::new(controller.clone(), inbox, index, Arc::new(Metrics::default()));
    let mut tasks = JoinSet::new();
    tasks.spawn(worker.run());
    Bench {
        controller,
        keys,
        _tasks: tasks,
    }
}

impl Bench {
    fn add(&self, keys: &[&'static str]) {
        for key in keys {
            self.keys.send(key).expect("the worker lives");
        }
    }

    async fn runs_within(&self, secs: u64) -> Vec<(&'static str, f64)> {
        sleep(Duration::from_secs(secs)).await;
        self.controller.runs.lock().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn keys_run_in_order_two_at_a_time_and_each_alone() {
    let bench = bench([]);
    bench.add(&["a", "b", "c", "a"]);
    sleep(Duration::from_millis(500)).await;
    bench.add(&["a", "a"]);
    assert_eq!(
        bench.runs_within(10).await,
        [("a", 0.0), ("b", 0.0), ("c", 1.0), ("a", 1.0)]
    );
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_each_time_and_success_forgets_them() {
    let again = || Err(Retry::WithBackoff);
    let bench = bench([(
        "a",
        vec![
            again(),
            again(),
            again(),
            Ok(Action::After(Duration::from_secs(5))),
            again(),
        ],
    )]);
    bench.add(&["a"]);
    let at: Vec<_> = bench.runs_within(100).await.into_iter().map(|(_, at)| at).collect();
    assert_eq!(at, [0.0, 11.0, 27.0, 43.0, 49.0, 60.0]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_met_at_once_and_then_with_patience() {
    let again = || Err(Retry::AtOnce);
    let bench = bench([("a", vec![again(), again(), again(), Err(Retry::Never)])]);
    bench.add(&["a"]);
    let at: Vec<_> = bench.runs_within(100).await.into_iter().map(|(_, at)| at).collect();
    assert_eq!(at, [0.0, 1.0, 2.05, 3.15]);
}
