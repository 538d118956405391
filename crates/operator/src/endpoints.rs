//! What probes and scrapers see: /healthz and /readyz on one port, /metrics on another.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
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
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::mpsc,
    time::{Instant, timeout_at},
};

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
/// How long the whole page may take to be read: longer than scrapers wait. Until then it keeps a thread and a view of the
/// cluster.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be opened for {purpose}: choose another port with --{flag}")]
pub struct PortTaken {
    address: SocketAddr,
    purpose: &'static str,
    flag: &'static str,
    #[source]
    cause: io::Error,
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
pub async fn serve_health(listener: TcpListener, checks: Vec<Check>) -> io::Result<()> {
    let app = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/readyz/{check}", get(readyz_one))
        .with_state(Arc::new(checks));
    axum::serve(listener, app).await
}

/// Serves /metrics, and profiles where they are wanted, until dropped.
pub async fn serve_metrics(listener: TcpListener, render: Render, profiles: Option<Router>) -> io::Result<()> {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let metrics = move || async move { ([(header::CONTENT_TYPE, TEXT)], page_of(render)) };
    let app = Router::new().route("/metrics", get(metrics));
    axum::serve(listener, app.merge(profiles.unwrap_or_default())).await
}

/// A page that is written while it is read, so that it is never in memory as a whole. One that does not get to its end
/// breaks off the connection, so that nobody takes a part of it for the whole.
fn page_of(render: Render) -> Body {
    let (sender, parts) = mpsc::channel::<String>(PARTS_WAITING);
    let deadline = Instant::now() + PATIENCE;
    let handle = Handle::current();
    let written = tokio::task::spawn_blocking(move || {
        let is_whole = Arc::new(AtomicBool::new(true));
        let all_taken = is_whole.clone();
        let mut page = Page::into_parts(move |part| {
            // A part that there is room for is taken at once, even when it is too late.
            let in_time = Instant::now() < deadline;
            let taken = in_time && handle.block_on(timeout_at(deadline, sender.send(part))) == Ok(Ok(()));
            all_taken.fetch_and(taken, Ordering::Relaxed);
            taken
        });
        render(&mut page);
        page.finish();
        is_whole.load(Ordering::Relaxed)
    });
    let parts = stream::try_unfold((parts, written), |(mut parts, written)| async {
        if let Some(part) = parts.recv().await {
            return Ok(Some((part, (parts, written))));
        }
        match written.await {
            Ok(true) => Ok(None),
            Ok(false) => Err(io::Error::other("the page was not read in time")),
            Err(panicked) => Err(io::Error::other(panicked)),
        }
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

    use axum::body::to_bytes;
    use futures::StreamExt as _;

    use super::*;

    /// A whole answer, until the server closes the connection.
    async fn ask(address: SocketAddr, request: String) -> String {
        let asked = move || {
            let mut stream = TcpStream::connect(address).expect("the server listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        };
        tokio::task::spawn_blocking(asked).await.expect("the request ends")
    }

    /// Status and body of an answer.
    /// In the older version of the protocol, in which a body is never sent in chunks.
    async fn get(address: SocketAddr, path: &str) -> (u16, String) {
        let answer = ask(address, format!("GET {path} HTTP/1.0\r\nHost: test\r\n\r\n")).await;
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.expect("an answer has a status"), body.to_owned())
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

    /// The last chunk is the empty one that says that this was all.
    async fn is_told_to_be_whole(render: Render) -> bool {
        let (listener, address) = listener().await;
        tokio::spawn(serve_metrics(listener, render, None));
        let request = "GET /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        let answer = ask(address, request.to_owned()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.ends_with("\r\n0\r\n\r\n")
    }

    #[tokio::test]
    async fn a_page_that_could_not_be_written_is_not_taken_for_the_whole() {
        assert!(is_told_to_be_whole(Arc::new(|page| page.add("up 1\n"))).await);
        let broken: Render = Arc::new(|page| {
            large(page);
            panic!("something is wrong with what comes next");
        });
        assert!(!is_told_to_be_whole(broken).await);
    }

    /// Ten parts and more, which are more than wait for a reader.
    fn large(page: &mut Page) {
        for _ in 0..1000 {
            page.add(&"up 1\n".repeat(200));
            page.pass_on();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_read_within_a_minute_or_breaks_off() {
        let page = || page_of(Arc::new(large));
        let read = to_bytes(page(), usize::MAX).await.expect("it is whole");
        assert_eq!(read.len(), 1_000_000);

        let mut parts = page().into_data_stream();
        let mut taken = 0;
        while let Some(part) = parts.next().await {
            if part.is_err() {
                break;
            }
            taken += 1;
            tokio::time::advance(Duration::from_secs(29)).await;
        }
        assert!(taken <= 6, "a part every 29 s made {taken}");
        assert!(parts.next().await.is_none());
    }
}
