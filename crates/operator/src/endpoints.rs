//! What probes and scrapers see: /healthz and /readyz on one port, /metrics on another.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use controllers::metrics::Page;
use futures::stream;
use tokio::{net::TcpListener, runtime::Handle, sync::mpsc, time::timeout};

/// One thing that has to be true before the program counts as ready.
pub struct Check {
    pub name: &'static str,
    /// `Err` says what is missing.
    pub test: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Writes what scrapers read.
pub type Render = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// How many parts of a page wait for a scraper that reads slowly.
const PARTS_WAITING: usize = 2;
/// A scraper that takes nothing for so long has gone.
const PATIENCE: Duration = Duration::from_secs(30);

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

/// Opens the port of the webhooks.
pub async fn bind_webhooks(host: IpAddr, port: u16) -> Result<TcpListener, PortTaken> {
    bind(SocketAddr::new(host, port), "webhooks", "webhook-port").await
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

/// Serves /metrics, and profiles where they are wanted, until dropped.
pub async fn serve_metrics(listener: TcpListener, render: Render, profiles: Option<Router>) -> std::io::Result<()> {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let metrics = move || async move { ([(header::CONTENT_TYPE, TEXT)], page_of(render)) };
    let app = Router::new().route("/metrics", get(metrics));
    axum::serve(listener, app.merge(profiles.unwrap_or_default())).await
}

/// A page that is written while it is read, so that it is never in memory as a whole.
fn page_of(render: Render) -> Body {
    let (sender, parts) = mpsc::channel::<String>(PARTS_WAITING);
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut page = Page::into_parts(move |part| {
            let taken = handle.block_on(timeout(PATIENCE, sender.send(part)));
            matches!(taken, Ok(Ok(())))
        });
        render(&mut page);
        page.finish();
    });
    let parts = stream::unfold(parts, |mut parts| async {
        let part = parts.recv().await?;
        Some((Ok::<_, Infallible>(part), parts))
    });
    Body::from_stream(parts)
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Ipv4Addr, TcpStream},
    };

    use super::*;

    /// Status and body of an answer.
    /// In the older version of the protocol, in which a body is never sent in chunks.
    async fn get(address: SocketAddr, path: &'static str) -> (u16, String) {
        let asked = move || {
            let mut stream = TcpStream::connect(address).expect("the server listens");
            write!(stream, "GET {path} HTTP/1.0\r\nHost: test\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            (status.expect("an answer has a status"), body.to_owned())
        };
        tokio::task::spawn_blocking(asked).await.expect("the request ends")
    }

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        (listener, address)
    }

    #[tokio::test]
    async fn readiness_names_what_is_missing() {
        let (listener, address) = listener().await;
        let check = |name: &'static str, missing: Option<&'static str>| Check {
            name,
            test: Box::new(move || missing.map_or(Ok(()), |missing| Err(missing.to_owned()))),
        };
        let checks = vec![
            check("readyz", None),
            check("crd", Some("nodepools.karpenter.sh is not installed")),
        ];
        tokio::spawn(serve_health(listener, checks));
        assert_eq!(get(address, "/healthz").await, (200, "ok".to_owned()));
        let (status, report) = get(address, "/readyz").await;
        assert_eq!(status, 503);
        assert_eq!(
            report,
            "[+]readyz ok\n[-]crd failed: nodepools.karpenter.sh is not installed\n"
        );
        assert_eq!(get(address, "/readyz/readyz").await.0, 200);
        assert_eq!(get(address, "/readyz/crd").await.0, 503);
        assert_eq!(get(address, "/readyz/other").await.0, 404);
    }

    #[tokio::test]
    async fn profiles_are_there_only_where_they_are_wanted() {
        let render: Render = Arc::new(|page| page.add("up 1\n"));
        let (plain, plain_address) = listener().await;
        let (profiled, profiled_address) = listener().await;
        tokio::spawn(serve_metrics(plain, render.clone(), None));
        tokio::spawn(serve_metrics(profiled, render, Some(crate::profiling::routes())));
        assert_eq!(get(plain_address, "/metrics").await, (200, "up 1\n".to_owned()));
        assert_eq!(get(plain_address, "/debug/pprof/heap").await.0, 404);
        assert_eq!(get(profiled_address, "/metrics").await.0, 200);
        assert_eq!(get(profiled_address, "/debug/pprof/").await.0, 200);
        assert_eq!(get(profiled_address, "/debug/pprof/heap").await.0, 501);
    }
}
