//! What it costs not to have Provisioners: one question at the start.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, VirtualClock};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, client::Body};
use kube_mem::ApiServer;
use operator::{
    Duties, Operator, Provided,
    settings::{LegacyApis, Settings},
};
use parking_lot::Mutex;
use provider_sim::{Catalog, SimCloud, SimProvider};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

struct Nothing;

#[async_trait]
impl Duties for Nothing {
    async fn take_over(&self) {}

    async fn beside(&self) {
        std::future::pending::<()>().await;
    }
}

type Asked = Arc<Mutex<Vec<String>>>;

/// A client whose requests are noted down.
fn client(server: &ApiServer, asked: &Asked) -> Client {
    let (server, asked) = (server.clone(), asked.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, asked) = (server.clone(), asked.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            asked.lock().push(format!("{} {}", parts.method, parts.uri.path()));
            Ok::<_, BoxError>(server.handle(Request::from_parts(parts, body)))
        }
    });
    Client::new(service, "default")
}

fn post(server: &ApiServer, path: &str, body: &impl serde::Serialize) {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(serde_json::to_vec(body).expect("plain data")));
    let answer = server.handle(request.expect("a request"));
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// What the program has asked about kinds of the time of Provisioners after a minute.
async fn asked(choice: LegacyApis, installed: Vec<CustomResourceDefinition>) -> Vec<String> {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let builder = ApiServer::builder().clock(clock.clone()).seed(1);
    let server = builder.without_managers().build();
    let crds = api::crds::all(api::crds::Variant::Kwok);
    for crd in crds.into_iter().chain(installed) {
        post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "karpenter" } });
    post(&server, "/api/v1/namespaces", &namespace);
    let asked = Asked::default();
    let client = client(&server, &asked);
    let settings = Settings {
        bind_address: Ipv4Addr::LOCALHOST.into(),
        metrics_port: 0,
        health_probe_port: 0,
        legacy_apis: choice,
        ..Settings::default()
    };
    let cloud = SimCloud::new(1, clock.clone());
    let classes = Arc::new(Api::all(client.clone()));
    let program = Operator {
        client: client.clone(),
        clock,
        settings: Arc::new(settings),
        seed: 1,
        provide: Box::new(Provided {
            cloud: Arc::new(SimProvider::new(cloud, Arc::new(Catalog::generic()), classes)),
            duties: Arc::new(Nothing),
        }),
        lease_client: client,
        namespace: "karpenter".to_owned(),
        identity: "me".to_owned(),
        version: "test",
        commit: "test",
        requests: operator::requests::Requests::default(),
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(program.run(stop.clone()));
    sleep(Duration::from_secs(60)).await;
    stop.cancel();
    running.await.expect("no panic").expect("it stops when told to");
    let old = ["v1alpha5", "karpenter.k8s.aws", "configmaps"];
    let mut asked = asked.lock().clone();
    asked.retain(|request| old.iter().any(|word| request.contains(word)));
    asked.dedup();
    asked
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_provisioners_is_asked_once_and_watched_never() {
    let none = Vec::new();
    assert_eq!(
        asked(LegacyApis::Auto, none.clone()).await,
        ["GET /apis/karpenter.sh/v1alpha5"]
    );
    assert_eq!(asked(LegacyApis::Off, none).await, Vec::<String>::new());
    assert_eq!(asked(LegacyApis::Off, api::crds::legacy()).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_provisioners_is_watched() {
    let requests = asked(LegacyApis::Auto, api::crds::legacy()).await;
    for path in [
        "/apis/karpenter.sh/v1alpha5/provisioners",
        "/apis/karpenter.sh/v1alpha5/machines",
        "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates",
        "/api/v1/namespaces/karpenter/configmaps",
    ] {
        assert!(requests.contains(&format!("GET {path}")), "{path} in {requests:#?}");
    }
}
