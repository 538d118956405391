//! Requests to the API server, counted under the names of the client library that upstream uses.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, Uri};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;
use tower::{Layer, Service};

/// Seconds: a millisecond to some seconds, half as much again each.
fn durations() -> Histogram {
    Histogram::new((0..20).map(|n| 0.001 * 1.5_f64.powi(n)))
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    code: String,
    method: String,
}

/// What a request was about.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asked {
    verb: &'static str,
    group: String,
    version: String,
    kind: String,
    subresource: String,
}

/// Counts what goes through the clients that it was laid around.
#[derive(Clone)]
pub struct Requests {
    counts: Arc<Counts>,
}

struct Counts {
    total: Family<Answered, Counter>,
    durations: Family<Asked, Histogram, fn() -> Histogram>,
    registry: Registry,
}

impl Default for Requests {
    fn default() -> Self {
        let total = Family::<Answered, Counter>::default();
        let times = Family::<Asked, Histogram, fn() -> Histogram>::new_with_constructor(durations);
        let mut registry = Registry::default();
        registry.register("client_go_request", "Requests to the API server", total.clone());
        registry.register(
            "client_go_request_duration_seconds",
            "How long requests to the API server take",
            times.clone(),
        );
        Self {
            counts: Arc::new(Counts {
                total,
                durations: times,
                registry,
            }),
        }
    }
}

impl Requests {
    /// The families, as a registry encodes them.
    pub fn encoded(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.counts.registry).expect("writing to a string succeeds");
        text
    }

    fn answered(&self, method: &Method, asked: &Asked, code: Option<u16>, begun: Instant) {
        let answered = Answered {
            code: code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
            method: method.to_string(),
        };
        self.counts.total.get_or_create(&answered).inc();
        self.counts
            .durations
            .get_or_create(asked)
            .observe(begun.elapsed().as_secs_f64());
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            requests: self.clone(),
        }
    }
}

#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().clone();
        let asked = asked(&method, request.uri());
        let requests = self.requests.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let begun = Instant::now();
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            requests.answered(&method, &asked, code, begun);
            answer
        })
    }
}

/// Reads a request off its path: `/api/v1/namespaces/<ns>/<kind>/<name>/<subresource>`, or `/apis/<group>/…` for all but
/// the core group.
fn asked(method: &Method, uri: &Uri) -> Asked {
    let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
    let group = match parts.next() {
        Some("apis") => parts.next().unwrap_or_default(),
        _ => "",
    };
    let version = parts.next().unwrap_or_default();
    let mut rest: Vec<&str> = parts.collect();
    // A namespace is a step on the way, unless it is what the request is about.
    if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest.drain(..2);
    }
    let is_watch = uri.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"))
    });
    let named = rest.len() > 1;
    let verb = match (method.as_str(), named) {
        ("GET", _) if is_watch => "WATCH",
        ("GET", true) => "GET",
        ("GET", false) => "LIST",
        ("POST", _) => "CREATE",
        ("PUT", _) => "UPDATE",
        ("PATCH", _) => "PATCH",
        ("DELETE", true) => "DELETE",
        ("DELETE", false) => "DELETECOLLECTION",
        _ => "",
    };
    let part = |place: usize| rest.get(place).copied().unwrap_or_default().to_owned();
    Asked {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: part(0),
        subresource: part(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, uri: &str, expected: &str) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let Asked {
            verb,
            group,
            version,
            kind,
            subresource,
        } = asked(&method, &uri.parse().expect("a path"));
        assert_eq!(format!("{verb} {group}/{version} {kind} {subresource}"), expected);
    }

    #[test]
    fn a_path_tells_what_is_asked() {
        check("GET", "/api/v1/pods?limit=500", "LIST /v1 pods ");
        check("GET", "/api/v1/nodes?watch=true&resourceVersion=1", "WATCH /v1 nodes ");
        check(
            "POST",
            "/api/v1/namespaces/a/pods/web/eviction",
            "CREATE /v1 pods eviction",
        );
        check("GET", "/api/v1/namespaces/kube-system", "GET /v1 namespaces ");
        check(
            "PATCH",
            "/apis/karpenter.sh/v1/nodeclaims/a/status",
            "PATCH karpenter.sh/v1 nodeclaims status",
        );
        check(
            "DELETE",
            "/apis/karpenter.sh/v1/nodeclaims/a",
            "DELETE karpenter.sh/v1 nodeclaims ",
        );
        check(
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter",
            "UPDATE coordination.k8s.io/v1 leases ",
        );
    }
}
