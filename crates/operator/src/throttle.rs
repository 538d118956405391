//! A client that keeps to a request rate, so that a burst of work does not become a burst of requests.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use kube::{Client, Config, client::ClientBuilder};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tower::{Layer, Service};

use crate::{requests::Requests, settings::Settings};

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

/// So many requests per second on average, so many at once. The waits are handed out in the order of arrival.
#[derive(Clone, Debug)]
pub struct Rate {
    every: Duration,
    burst: u32,
    /// When the bucket would be full again.
    full_at: Arc<Mutex<Option<Instant>>>,
}

impl Rate {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            every: Duration::from_secs(1) / per_second.max(1),
            burst: burst.max(1),
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
        // An HTTP request begins when its future is first polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            sleep_until(go).await;
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
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
}
