//! The program on an API server in memory, with a simulated cloud that asks for nothing.

use std::{net::Ipv4Addr, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, VirtualClock};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, client::Body};
use kube_mem::ApiServer;
use operator::{Duties, Operator, Provide, Provided, settings::Settings};
use provider_sim::{Catalog, SimCloud, SimProvider};
use serde::Serialize;
use serde_json::{Value, json};
use tower::BoxError;

/// The namespace that the program runs in.
const HOME: &str = "karpenter";

struct Nothing;

#[async_trait]
impl Duties for Nothing {
    async fn take_over(&self) {}

    async fn beside(&self) {
        std::future::pending::<()>().await;
    }
}

/// An API server without any controllers.
pub fn server() -> (ApiServer, Arc<dyn Clock>) {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let builder = ApiServer::builder().clock(clock.clone()).seed(1);
    (builder.without_managers().build(), clock)
}

/// A client whose requests are told to somebody first, who may hold them up or refuse them.
pub fn client<F>(server: &ApiServer, hear: impl Fn(Method, String) -> F + Clone + Send + 'static) -> Client
where
    F: Future<Output = Result<(), BoxError>> + Send,
{
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, hear) = (server.clone(), hear.clone());
        async move {
            let (parts, body) = request.into_parts();
            hear(parts.method.clone(), parts.uri.path().to_owned()).await?;
            let body = body.collect_bytes().await?;
            Ok::<_, BoxError>(server.handle(Request::from_parts(parts, body)))
        }
    });
    Client::new(service, "default")
}

/// On ports of this machine that nobody asks.
pub fn settings() -> Settings {
    Settings {
        bind_address: Ipv4Addr::LOCALHOST.into(),
        metrics_port: 0,
        health_probe_port: 0,
        ..Settings::default()
    }
}

/// The program, with what comes of its provider.
pub fn program(
    clock: Arc<dyn Clock>,
    client: Client,
    lease_client: Client,
    settings: Settings,
    provide: impl FnOnce(Provided) -> Box<dyn Provide>,
) -> Operator {
    let simulated = SimCloud::new(1, clock.clone());
    let classes = Arc::new(Api::all(client.clone()));
    Operator {
        client,
        clock,
        settings: Arc::new(settings),
        seed: 1,
        provide: provide(Provided {
            cloud: Arc::new(SimProvider::new(simulated, Arc::new(Catalog::generic()), classes)),
            duties: Arc::new(Nothing),
        }),
        lease_client,
        namespace: HOME.to_owned(),
        identity: "me".to_owned(),
        version: "test",
        commit: "test",
        requests: operator::requests::Requests::default(),
    }
}

/// What the API server answers.
pub fn send(server: &ApiServer, method: Method, path: &str, body: &impl Serialize) -> Value {
    let body = serde_json::to_value(body).expect("plain data");
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body)
        .expect("a request");
    let answer = server.handle(request);
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let mut body = answer.into_body();
    let frame = std::pin::Pin::new(&mut body);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match http_body::Body::poll_frame(frame, &mut context) {
        std::task::Poll::Ready(Some(Ok(frame))) => {
            serde_json::from_slice(&frame.into_data().unwrap_or_default()).unwrap_or_default()
        }
        _ => Value::Null,
    }
}

pub fn create(server: &ApiServer, path: &str, object: &impl Serialize) {
    send(server, Method::POST, path, object);
}

/// The kinds that every cluster of ours has.
pub fn install_kinds(server: &ApiServer) {
    install(server, &api::crds::all(api::crds::Variant::Kwok));
}

pub fn install(server: &ApiServer, kinds: &[CustomResourceDefinition]) {
    for kind in kinds {
        create(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind);
    }
}

/// The namespace that the program runs in, and its lease.
pub fn create_home(server: &ApiServer) {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": HOME } });
    create(server, "/api/v1/namespaces", &namespace);
}
