//! The line between the controller and the API server: a tower service that faults can strike.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::{Body as _, Frame};
use kube::{Client, client::Body as Sent};
use kube_mem::ApiServer;
use operator::throttle::Rate;
use serde_json::json;
use tokio::time::{Sleep, sleep};
use tower::{BoxError, Layer, Service};

use super::{
    Roll, Weather, conflict,
    crash::Gate,
    latency, lost_answer, server_error, throttle,
    timeout::{self, Timeout},
    watch_delay, watch_drop,
};
use crate::{
    dice::Dice,
    history::{Deed, History},
};

/// One life's line. A new life of the controller gets a new one.
#[derive(Clone)]
pub struct Line {
    pub server: ApiServer,
    pub weather: Weather,
    pub gate: Gate,
    pub history: History,
    pub dice: Dice,
    /// Numbers the requests, so that each has dice of its own.
    pub count: Arc<AtomicU64>,
    /// How fast the client may ask; as fast as it likes without.
    pub rate: Option<Rate>,
}

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("the connection was reset (simulated)")]
    Reset,
    #[error("the request timed out (simulated)")]
    TimedOut,
}

impl Line {
    pub fn client(self) -> Client {
        match self.rate.clone() {
            Some(rate) => Client::new(rate.layer(self), "default"),
            None => Client::new(self, "default"),
        }
    }

    async fn exchange(self, request: Request<Sent>) -> Result<Response<Body>, BoxError> {
        let (parts, sent) = request.into_parts();
        let body = sent.collect_bytes().await?;
        let dice = self.dice.nth(self.count.fetch_add(1, Ordering::Relaxed));
        let is_watch = parts.uri.query().is_some_and(|query| query.contains("watch="));
        let roll = Roll {
            method: &parts.method,
            path: parts.uri.path(),
            is_watch,
            faults: self.weather.now(),
            dice,
        };
        self.gate.pass().await;
        let latency = latency::of(&roll);
        if !latency.is_zero() {
            sleep(latency).await;
        }
        let refusal = server_error::strikes(&roll)
            .or_else(|| throttle::strikes(&roll))
            .or_else(|| conflict::strikes(&roll))
            .or_else(|| watch_drop::expired(&roll));
        if let Some(answer) = refusal {
            return Ok(answer.into_response());
        }
        let timeout = timeout::strikes(&roll);
        let lost = lost_answer::strikes(&roll);
        if timeout == Some(Timeout::Before) {
            sleep(timeout::PATIENCE).await;
            return Err(LineError::TimedOut.into());
        }
        let response = self.serve(parts, body);
        self.gate.pass().await;
        if timeout == Some(Timeout::After) {
            sleep(timeout::PATIENCE).await;
            return Err(LineError::TimedOut.into());
        }
        if lost {
            return Err(LineError::Reset.into());
        }
        let (weather, gate) = (self.weather, self.gate);
        Ok(response.map(|served| Body {
            kind: if is_watch {
                Kind::Watch(Watch {
                    served,
                    weather,
                    gate,
                    dice,
                    chunk: 0,
                    late: None,
                })
            } else {
                Kind::Served(served)
            },
        }))
    }

    fn serve(&self, parts: Parts, body: Bytes) -> Response<kube_mem::Body> {
        let write = (parts.method != http::Method::GET).then(|| {
            let query = parts.uri.query().unwrap_or_default().to_owned();
            (parts.method.clone(), parts.uri.path().to_owned(), query, body.clone())
        });
        let response = self.server.handle(Request::from_parts(parts, body));
        if let Some((method, path, query, body)) = write {
            let code = response.status().as_u16();
            self.history.deed(Deed::Request {
                method,
                path,
                query,
                body,
                code,
            });
        }
        response
    }
}

impl Service<Request<Sent>> for Line {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}

/// An answer that the API server did not give.
pub struct Answer {
    code: u16,
    reason: &'static str,
    message: &'static str,
    retry_after_secs: Option<u32>,
}

impl Answer {
    pub fn status(code: u16, reason: &'static str, message: &'static str) -> Self {
        Self {
            code,
            reason,
            message,
            retry_after_secs: None,
        }
    }

    pub fn retry_after(self, secs: u32) -> Self {
        Self {
            retry_after_secs: Some(secs),
            ..self
        }
    }

    fn into_response(self) -> Response<Body> {
        let details = self.retry_after_secs.map(|secs| json!({ "retryAfterSeconds": secs }));
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "reason": self.reason,
            "message": self.message,
            "details": details,
            "code": self.code,
        });
        let mut response = Response::builder()
            .status(self.code)
            .header("content-type", "application/json");
        if let Some(secs) = self.retry_after_secs {
            response = response.header("retry-after", secs);
        }
        let body = Body {
            kind: Kind::Made(Some(Bytes::from(status.to_string()))),
        };
        response.body(body).expect("code and headers are valid")
    }
}

/// The body of an answer, as the line lets it through.
pub struct Body {
    kind: Kind,
}

enum Kind {
    Made(Option<Bytes>),
    Served(kube_mem::Body),
    Watch(Watch),
}

/// A watch whose events may be late and that may break.
struct Watch {
    served: kube_mem::Body,
    weather: Weather,
    gate: Gate,
    dice: Dice,
    chunk: u64,
    late: Option<(Pin<Box<Sleep>>, Frame<Bytes>)>,
}

type Next = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl Watch {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Next {
        loop {
            if let Some((delay, _)) = &mut self.late {
                std::task::ready!(delay.as_mut().poll(context));
                let frame = self.late.take().map(|(_, frame)| Ok(frame));
                return if self.gate.is_closed() {
                    Poll::Pending
                } else {
                    Poll::Ready(frame)
                };
            }
            let Some(frame) = std::task::ready!(Pin::new(&mut self.served).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            let Ok(frame) = frame;
            self.chunk += 1;
            let (faults, dice) = (self.weather.now(), self.dice.nth(self.chunk));
            if watch_drop::breaks(faults, dice) {
                return Poll::Ready(None);
            }
            let delay = watch_delay::of(faults, dice);
            if delay.is_zero() && !self.gate.is_closed() {
                return Poll::Ready(Some(Ok(frame)));
            }
            self.late = Some((Box::pin(sleep(delay)), frame));
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
        match &mut self.kind {
            Kind::Made(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Served(body) => Pin::new(body).poll_frame(context).map(|frame| {
                frame.map(|frame| {
                    let Ok(frame) = frame;
                    Ok(frame)
                })
            }),
            Kind::Watch(watch) => watch.poll_frame(context),
        }
    }
}
