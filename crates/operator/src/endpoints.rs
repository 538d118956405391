//! What probes and scrapers see: /healthz and /readyz on one port, /metrics on another.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

/// One thing that has to be true before the program counts as ready.
pub struct Check {
    pub name: &'static str,
    /// `Err` says what is missing.
    pub test: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The text that scrapers read.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be opened for {purpose}: choose another port with --{flag}")]
pub struct PortTaken {
    address: SocketAddr,
    purpose: &'static str,
    flag: &'static str,
    #[source]
    cause: std::io::Error,
}

/// Opens the port of the health probes.
pub async fn bind_health(host: IpAddr, port: u16) -> Result<TcpListener, PortTaken> {
    bind(SocketAddr::new(host, port), "health probes", "health-probe-port").await
}

/// Opens the port of the metrics.
pub async fn bind_metrics(host: IpAddr, port: u16) -> Result<TcpListener, PortTaken> {
    bind(SocketAddr::new(host, port), "metrics", "metrics-port").await
}

async fn bind(address: SocketAddr, purpose: &'static str, flag: &'static str) -> Result<TcpListener, PortTaken> {
    TcpListener::bind(address).await.map_err(|cause| PortTaken {
        address,
        purpose,
        flag,
        cause,
    })
}

/// Serves /healthz, /livez and /readyz until dropped.
pub async fn serve_health(listener: TcpListener, checks: Vec<Check>) -> std::io::Result<()> {
    let app = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/readyz/{check}", get(readyz_one))
        .with_state(Arc::new(checks));
    axum::serve(listener, app).await
}

/// Serves /metrics until dropped.
pub async fn serve_metrics(listener: TcpListener, render: Render) -> std::io::Result<()> {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let metrics = move || async move { ([(header::CONTENT_TYPE, TEXT)], render()) };
    axum::serve(listener, Router::new().route("/metrics", get(metrics))).await
}

async fn readyz(State(checks): State<Arc<Vec<Check>>>, RawQuery(query): RawQuery) -> Response {
    let verbose = query.is_some_and(|query| query.split('&').any(|part| part.split('=').next() == Some("verbose")));
    let mut report = String::new();
    let mut ready = true;
    for check in checks.iter() {
        match (check.test)() {
            Ok(()) => report.push_str(&format!("[+]{} ok\n", check.name)),
            Err(missing) => {
                ready = false;
                report.push_str(&format!("[-]{} failed: {missing}\n", check.name));
            }
        }
    }
    match (ready, verbose) {
        (true, false) => "ok".into_response(),
        (true, true) => report.into_response(),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, report).into_response(),
    }
}

async fn readyz_one(State(checks): State<Arc<Vec<Check>>>, Path(name): Path<String>) -> Response {
    match checks
        .iter()
        .find(|check| check.name == name)
        .map(|check| (check.test)())
    {
        Some(Ok(())) => "ok".into_response(),
        Some(Err(missing)) => (StatusCode::SERVICE_UNAVAILABLE, missing).into_response(),
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}\n")).into_response(),
    }
}
