//! The fake on a port of this machine.

use std::net::SocketAddr;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State as Shared,
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
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
    match Call::parse(&method, &uri, &headers, &body) {
        Ok(call) => response(fake.call(&call).await),
        Err(refusal) => strange(&refusal),
    }
}

fn response(answer: Answer) -> Response<Body> {
    let mut builder = Response::builder()
        .status(answer.status)
        .header(header::CONTENT_TYPE, answer.content_type);
    for (name, value) in answer.headers {
        builder = builder.header(name, value);
    }
    builder
        .body(Body::from(answer.body))
        .unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
}

/// What is no call of any service here.
fn strange(refusal: &Refusal) -> Response<Body> {
    let body = serde_json::json!({"__type": refusal.code, "message": refusal.message});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = refusal.status;
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
