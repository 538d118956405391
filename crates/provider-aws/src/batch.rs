//! Several callers, one request.
//!
//! A wave of claims asks for the same thing many times within milliseconds, and EC2's request buckets are small. A batcher
//! gathers requests of one kind for a moment, sends each distinct one once, and hands the answer's parts out.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::Instant,
};

/// How long to gather.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Closes when nothing has come for so long.
    pub idle: Duration,
    /// Closes at the latest after so long.
    pub max: Duration,
    /// Closes when so many have come.
    pub items: usize,
}

/// The claims of a large wave come at the rate at which the API server takes their objects, with gaps. A tenth of a second
/// bridges them; a machine takes half a minute to boot.
pub const CREATE_FLEET: Window = Window {
    idle: Duration::from_millis(100),
    max: Duration::from_secs(1),
    items: 1000,
};

pub const DESCRIBE_INSTANCES: Window = Window {
    idle: Duration::from_millis(100),
    max: Duration::from_secs(1),
    items: 500,
};

pub const TERMINATE_INSTANCES: Window = DESCRIBE_INSTANCES;

/// Requests that are sent at once, at most.
const WORKERS: usize = 100;

/// A closed window, for whoever measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    pub requests: usize,
    pub took: Duration,
}

struct Item<R, A> {
    bucket: String,
    request: R,
    reply: oneshot::Sender<A>,
}

/// Gathers requests and lets `send` answer each bucket as a whole: one answer per request, in their order.
pub struct Batcher<R, A> {
    window: Window,
    queue: mpsc::UnboundedSender<Item<R, A>>,
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Item<R, A>>>>,
}

impl<R: Send + 'static, A: Send + 'static> Batcher<R, A> {
    pub fn new(window: Window) -> Self {
        let (queue, inbox) = mpsc::unbounded_channel();
        Self {
            window,
            queue,
            inbox: Mutex::new(Some(inbox)),
        }
    }

    /// The answer to one request. Requests with equal buckets go out together. `None` when the batcher does not run.
    pub async fn ask(&self, bucket: String, request: R) -> Option<A> {
        let (reply, answer) = oneshot::channel();
        let item = Item { bucket, request, reply };
        self.queue.send(item).ok()?;
        answer.await.ok()
    }

    /// Gathers and sends until it is dropped. Runs once; a second call returns at once.
    pub async fn run<S, F>(&self, send: S, observe: impl Fn(Gathered))
    where
        S: Fn(Vec<R>) -> F + Send + Sync + 'static,
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let Some(mut inbox) = self.inbox.lock().take() else {
            return;
        };
        let send = Arc::new(send);
        let workers = Arc::new(Semaphore::new(WORKERS));
        while let Some(first) = inbox.recv().await {
            let (items, took) = gather(first, &mut inbox, self.window).await;
            observe(Gathered {
                requests: items.len(),
                took,
            });
            let mut buckets: BTreeMap<String, Vec<Item<R, A>>> = BTreeMap::new();
            for item in items {
                buckets.entry(item.bucket.clone()).or_default().push(item);
            }
            for bucket in buckets.into_values() {
                let (send, workers) = (send.clone(), workers.clone());
                tokio::spawn(async move {
                    let _worker = workers.acquire().await;
                    let (requests, replies): (Vec<R>, Vec<_>) =
                        bucket.into_iter().map(|item| (item.request, item.reply)).unzip();
                    for (reply, answer) in replies.into_iter().zip(send(requests).await) {
                        // A caller that has gone away needs no answer.
                        let _ = reply.send(answer);
                    }
                });
            }
        }
    }
}

/// What comes until the window closes.
async fn gather<T>(first: T, inbox: &mut mpsc::UnboundedReceiver<T>, window: Window) -> (Vec<T>, Duration) {
    let opened = Instant::now();
    let latest = opened + window.max;
    let mut items = vec![first];
    while items.len() < window.items {
        let until = latest.min(Instant::now() + window.idle);
        match tokio::time::timeout_at(until, inbox.recv()).await {
            Ok(Some(item)) => items.push(item),
            Ok(None) | Err(_) => break,
        }
    }
    (items, opened.elapsed())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A batcher that answers after five seconds with the size of the bucket and the request.
    struct Running {
        batcher: Arc<Batcher<u32, (usize, u32)>>,
        calls: Arc<AtomicUsize>,
        seen: Arc<Mutex<Vec<Gathered>>>,
    }

    fn running(window: Window) -> Running {
        let running = Running {
            batcher: Arc::new(Batcher::new(window)),
            calls: Arc::default(),
            seen: Arc::default(),
        };
        let (runner, counted, noted) = (running.batcher.clone(), running.calls.clone(), running.seen.clone());
        tokio::spawn(async move {
            let send = move |requests: Vec<u32>| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    let size = requests.len();
                    requests.into_iter().map(|request| (size, request)).collect()
                }
            };
            runner.run(send, move |gathered| noted.lock().push(gathered)).await;
        });
        running
    }

    /// AW24.13.1, AW24.13.3
    #[tokio::test(start_paused = true)]
    async fn equal_requests_go_out_together_and_others_beside_them() {
        let Running { batcher, calls, seen } = running(CREATE_FLEET);
        let started = Instant::now();
        let asked = (0..300).map(|number| {
            let batcher = batcher.clone();
            async move { batcher.ask(format!("bucket-{}", number % 3), number).await.unwrap() }
        });
        let answers = futures::future::join_all(asked).await;
        assert!(
            answers.iter().zip(0..).all(|(answer, number)| *answer == (100, number)),
            "everybody gets their own"
        );
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        assert!(
            started.elapsed() < Duration::from_secs(6),
            "buckets do not wait for one another"
        );
        assert_eq!(seen.lock()[0].requests, 300);
    }

    /// AW24.13.3
    #[tokio::test(start_paused = true)]
    async fn a_window_closes_when_it_is_idle_full_or_old() {
        let window = Window {
            idle: Duration::from_millis(100),
            max: Duration::from_millis(250),
            items: 4,
        };
        let Running { batcher, seen, .. } = running(window);
        let ask = |number| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.ask(String::new(), number).await })
        };
        let full: Vec<_> = (0..4).map(ask).collect();
        for one in full {
            one.await.unwrap();
        }
        assert_eq!(seen.lock().last().unwrap().requests, 4);
        let slow: Vec<_> = futures::future::join_all((0..4).map(|index| {
            let batcher = batcher.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(90 * index)).await;
                batcher.ask(String::new(), 0).await
            }
        }))
        .await;
        assert_eq!(slow.len(), 4);
        let sizes: Vec<usize> = seen.lock().iter().map(|gathered| gathered.requests).collect();
        assert_eq!(sizes, [4, 3, 1], "the fourth came after the window's end");
    }
}
