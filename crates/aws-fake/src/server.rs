//! The fake on a port of this machine, or without one for callers in this process.

use std::net::SocketAddr;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State as Shared,
    http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header},
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    control,
    fake::Fake,
    refusal::Refusal,
    wire::{Answer, Call},
};

#[derive(Debug, thiserror::Error)]
#[error("could not listen on {address}")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    cause: std::io::Error,
}

/// A fake that is being served. It stops when it is dropped.
#[derive(Debug)]
pub struct Served {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves on a port of loopback; port 0 takes a free one. There are no credentials: whoever reaches it may do everything.
pub async fn serve(fake: Fake, port: u16) -> Result<Served, ListenError> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let failed = |cause| ListenError { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let app = Router::new().fallback(answer).with_state(fake);
    let task = tokio::spawn(async move {
        if let Err(cause) = axum::serve(listener, app).await {
            tracing::error!(%cause, "the server ended");
        }
    });
    Ok(Served { address, task })
}

async fn answer(
    Shared(fake): Shared<Fake>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if let Some(path) = uri.path().strip_prefix("/_fake/") {
        return control::answer(&fake, &method, path, uri.query().unwrap_or_default(), &body);
    }
    called(&fake, &method, &uri, &headers, &body).await.map(Body::from)
}

/// Answers a request of a caller in this process, as the port would. Without a socket nothing waits on real time, so that
/// a simulated clock can run.
pub async fn respond(fake: &Fake, request: &Request<Vec<u8>>) -> Response<String> {
    called(fake, request.method(), request.uri(), request.headers(), request.body()).await
}

async fn called(fake: &Fake, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response<String> {
    match Call::parse(method, uri, headers, body) {
        Ok(call) => response(fake.call(&call).await),
        Err(refusal) => strange(&refusal),
    }
}

fn response(answer: Answer) -> Response<String> {
    let mut builder = Response::builder()
        .status(answer.status)
        .header(header::CONTENT_TYPE, answer.content_type);
    for (name, value) in answer.headers {
        builder = builder.header(name, value);
    }
    builder
        .body(answer.body)
        .unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
}

/// What is no call of any service here.
fn strange(refusal: &Refusal) -> Response<String> {
    let body = serde_json::json!({"__type": refusal.code, "message": refusal.message});
    let mut response = Response::new(body.to_string());
    *response.status_mut() = refusal.status;
    response
}

fn empty(status: StatusCode) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    response
}
