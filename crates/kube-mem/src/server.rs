//! The server: from HTTP requests to answers, in process or behind a socket.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use clock::{Clock, SystemClock};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::body::Body;
use crate::cluster::Cluster;
use crate::dump::{self, Dump};
use crate::encode::bytes_of;
use crate::failure::Failure;
use crate::registry::builtin_types;
use crate::request::Request;
use crate::verbs::Reply;
use crate::watch::WatchStream;
use crate::{bootstrap, discovery, openapi};

const JSON: &str = "application/json";

/// How many changes a collection remembers for watches that resume and lists that page. The real server keeps minutes;
/// this much keeps a playground small and is far more than a watcher lags.
const DEFAULT_HISTORY: usize = 1_000;

/// The Kubernetes API in memory. Clones are handles to the same server.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub clock: Arc<dyn Clock>,
    pub cluster: Mutex<Cluster>,
}

/// Settings of a new server.
pub struct ApiServerBuilder {
    clock: Arc<dyn Clock>,
    seed: u64,
    history: usize,
    tracks_managers: bool,
    kept: Option<Dump>,
}

impl ApiServerBuilder {
    /// Where timestamps come from; the machine's clock unless told otherwise.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where uids and generated names come from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many changes each collection remembers at least.
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes.max(1);
        self
    }

    /// Leaves `managedFields` out of objects until somebody applies them, as the real server does with objects that it
    /// does not track. For simulations, which spend a fifth of their time on them and never look.
    pub fn without_managers(mut self) -> Self {
        self.tracks_managers = false;
        self
    }

    /// Go on from what another server held, instead of from a new cluster.
    pub fn restore(mut self, dump: Dump) -> Self {
        self.kept = Some(dump);
        self
    }

    pub fn build(self) -> ApiServer {
        let mut cluster = Cluster::new(self.seed, self.history, self.clock.now());
        cluster.tracks_managers = self.tracks_managers;
        match self.kept {
            Some(dump) => dump::restore(&mut cluster, dump),
            None => bootstrap::fill(&mut cluster),
        }
        ApiServer {
            shared: Arc::new(Shared {
                clock: self.clock,
                cluster: Mutex::new(cluster),
            }),
        }
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl ApiServer {
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder {
            clock: Arc::new(SystemClock),
            seed: 0,
            history: DEFAULT_HISTORY,
            tracks_managers: true,
            kept: None,
        }
    }

    /// An ordinary client whose requests never leave the process. Needs a tokio runtime around it.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The server as a tower service, for layers that stand between it and a client.
    pub fn service(&self) -> ApiService {
        ApiService { server: self.clone() }
    }

    /// Everything that the server holds, to be restored later.
    pub fn dump(&self) -> Dump {
        dump::take(&self.shared.cluster.lock())
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.shared.cluster.lock().store.revision()
    }

    /// Answers one request. All of its effects, those that it sets off included, are done when this returns.
    pub fn handle(&self, request: http::Request<Bytes>) -> http::Response<Body> {
        let (parts, body) = request.into_parts();
        match self.answer(&parts, body) {
            Ok(response) => response,
            Err(failure) => refused(&failure),
        }
    }

    fn answer(&self, parts: &Parts, body: Bytes) -> Result<http::Response<Body>, Failure> {
        let path = parts.uri.path();
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match first {
            "livez" | "readyz" | "healthz" => return Ok(plain(200, "text/plain; charset=utf-8", "ok")),
            "version" => return Ok(plain(200, JSON, bytes_of(&version()))),
            "openapi" => return self.openapi(parts),
            "api" | "apis" => {}
            _ => return Ok(not_found_page()),
        }
        let now = self.shared.clock.now();
        let mut cluster = self.shared.cluster.lock();
        let accept = parts
            .headers
            .get(http::header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if let Some(answer) = discovery::answer(&cluster.registry, path, accept) {
            if parts.method != http::Method::GET {
                return Err(Failure::method_not_allowed());
            }
            return Ok(plain(200, answer.content_type, bytes_of(&answer.body)));
        }
        let request = match Request::parse(parts, body, &cluster.registry) {
            Err(failure) if is_built_in(path) => return Err(failure),
            Err(_) => return Ok(not_found_page()),
            Ok(request) => request,
        };
        cluster.now = now;
        let reply = cluster.handle(&request);
        cluster.settle();
        drop(cluster);
        Ok(match reply? {
            Reply::Bytes { code, bytes, warnings } => {
                let mut response = plain(code, JSON, bytes);
                add_warnings(&mut response, &warnings);
                response
            }
            Reply::Watch(options) => {
                let stream = WatchStream::new(self.shared.clone(), *options, now);
                with_type(http::Response::new(Body::watch(stream)), JSON)
            }
        })
    }

    fn openapi(&self, parts: &Parts) -> Result<http::Response<Body>, Failure> {
        let accept = parts
            .headers
            .get(http::header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        // Rendering is slow and the registry is cheap to copy, so other requests need not wait for it.
        let registry = self.shared.cluster.lock().registry.clone();
        match openapi::answer(&registry, parts.uri.path(), accept) {
            Some(answer) => Ok(plain(200, answer.content_type, answer.body)),
            None => Ok(not_found_page()),
        }
    }
}

/// What a built-in group lacks is refused with a status; elsewhere the real server has no page at all.
fn is_built_in(path: &str) -> bool {
    let mut words = path.split('/').filter(|word| !word.is_empty());
    let group = if words.next() == Some("api") {
        ""
    } else {
        words.next().unwrap_or_default()
    };
    builtin_types().iter().any(|ty| ty.group == group)
}

fn refused(failure: &Failure) -> http::Response<Body> {
    let mut response = plain(failure.code, JSON, bytes_of(&failure.to_status()));
    add_warnings(&mut response, &failure.warnings);
    if let Some(seconds) = failure.retry_after_secs() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn add_warnings(response: &mut http::Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

fn not_found_page() -> http::Response<Body> {
    plain(404, "text/plain; charset=utf-8", "404 page not found\n")
}

fn plain(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> http::Response<Body> {
    let mut response = http::Response::new(Body::bytes(body.into()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    with_type(response, content_type)
}

fn with_type(mut response: http::Response<Body>, content_type: &'static str) -> http::Response<Body> {
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The version whose behaviour this server follows.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "35",
        "gitVersion": "v1.35.4",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "memory/any",
    })
}

/// The server as a tower service under the kube client.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
}

impl tower::Service<http::Request<kube::client::Body>> for ApiService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            Ok(match body.collect_bytes().await {
                Ok(body) => server.handle(http::Request::from_parts(parts, body)),
                Err(cause) => refused(&Failure::bad_request(cause.to_string())),
            })
        })
    }
}
