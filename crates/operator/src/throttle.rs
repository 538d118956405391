//! A client that keeps to a request rate, and to a number of requests under way, so that a burst of work becomes neither a
//! burst of requests nor one of connections.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use kube::{Client, Config, client::ClientBuilder};
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use tower::{Layer, Service};

use crate::{requests::Requests, settings::Settings};

/// How many requests wait for their answer at a time. Each of them has a connection to itself; with so many of them the
/// server answers far more in a second than the rate allows, unless it is in trouble.
const AT_ONCE: usize = 64;

/// A client under the settings' rate, with our name as its user agent.
pub fn client(
    mut config: Config,
    settings: &Settings,
    version: &str,
    requests: &Requests,
) -> Result<Client, kube::Error> {
    let agent = format!("karpenter/{version}");
    if let Ok(agent) = http::HeaderValue::try_from(agent) {
        config.headers.push((http::header::USER_AGENT, agent));
    }
    let rate = Rate::new(settings.kube_client_qps, settings.kube_client_burst);
    // Inside the rate, so that waiting for it does not count as the server's time.
    let builder = ClientBuilder::try_from(config)?.with_layer(requests);
    Ok(builder.with_layer(&rate).build())
}

/// So many requests per second on average, so many without a wait. The waits are handed out in the order of arrival.
#[derive(Clone, Debug)]
pub struct Rate {
    every: Duration,
    burst: u32,
    under_way: Arc<Semaphore>,
    /// When the bucket would be full again.
    full_at: Arc<Mutex<Option<Instant>>>,
}

impl Rate {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            every: Duration::from_secs(1) / per_second.max(1),
            burst: burst.max(1),
            under_way: Arc::new(Semaphore::new(AT_ONCE)),
            full_at: Arc::default(),
        }
    }

    /// When the next request may go.
    fn next(&self, now: Instant) -> Instant {
        let mut full_at = self.full_at.lock();
        let taken = full_at.map_or(now, |at| at.max(now)) + self.every;
        *full_at = Some(taken);
        let spare = self.every * self.burst;
        taken.checked_sub(spare).map_or(now, |at| at.max(now))
    }
}

impl<S> Layer<S> for Rate {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled {
            inner,
            rate: self.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Throttled<S> {
    inner: S,
    rate: Rate,
}

impl<S, R> Service<R> for Throttled<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let go = self.rate.next(Instant::now());
        let under_way = self.rate.under_way.clone();
        // An HTTP request begins when its future is first polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            sleep_until(go).await;
            // Given back with the head of the answer, so that a watch does not hold it for as long as it lasts.
            let _permit = under_way.acquire_owned().await;
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let rate = Rate::new(10, 3);
        let now = Instant::now();
        let waits: Vec<_> = (0..6).map(|_| (rate.next(now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(10);
        assert_eq!(rate.next(later), later, "an idle while fills the bucket again");
    }
    /// Sixty-four answers that do not come hold back all others; the first that comes lets one of them go.
    #[tokio::test(start_paused = true)]
    async fn so_many_requests_are_under_way_at_a_time() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = begun.clone();
        let server = tower::service_fn(move |(): ()| {
            let counter = counter.clone();
            async move {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok::<_, Infallible>(())
            }
        });
        let mut client = Rate::new(10_000, 1_000).layer(server);
        let mut answers = JoinSet::new();
        for _ in 0..AT_ONCE + 10 {
            answers.spawn(client.call(()));
        }
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(begun.load(Ordering::Relaxed), AT_ONCE);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(begun.load(Ordering::Relaxed), AT_ONCE + 10);
        answers.join_all().await;
    }
}
