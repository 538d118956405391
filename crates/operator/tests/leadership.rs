//! Who has lost the lease writes nothing any more.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, VirtualClock};
use http::{Method, Request};
use kube::{Api, Client, client::Body};
use kube_mem::ApiServer;
use operator::{Duties, Operator, OperatorError, Provided, lease::LeaseError, settings::Settings};
use parking_lot::Mutex;
use provider_sim::{Catalog, SimCloud, SimProvider};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/karpenter-leader-election";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

struct Nothing;

#[async_trait]
impl Duties for Nothing {
    async fn take_over(&self) {}

    async fn beside(&self) {
        std::future::pending::<()>().await;
    }
}

/// A program on an API server, with a line that is listened to and that can be cut.
struct Bench {
    server: ApiServer,
    /// What it wrote, but for the lease.
    written: Arc<Mutex<Vec<String>>>,
    lease_is_cut: Arc<AtomicBool>,
    program: JoinHandle<Result<(), OperatorError>>,
    stop: CancellationToken,
}

fn client(server: &ApiServer, written: &Arc<Mutex<Vec<String>>>, cut: &Arc<AtomicBool>) -> Client {
    let (server, written, cut) = (server.clone(), written.clone(), cut.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, written, cut) = (server.clone(), written.clone(), cut.clone());
        async move {
            if cut.load(Ordering::Relaxed) {
                return Err(BoxError::from("the line is cut"));
            }
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            if parts.method != Method::GET {
                written.lock().push(format!("{} {}", parts.method, parts.uri.path()));
            }
            Ok(server.handle(Request::from_parts(parts, body)))
        }
    });
    Client::new(service, "default")
}

impl Bench {
    /// Returns when the program leads and works.
    async fn started() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let server = ApiServer::builder()
            .clock(clock.clone())
            .seed(1)
            .without_managers()
            .build();
        let written = Arc::default();
        let lease_is_cut = Arc::new(AtomicBool::new(false));
        let open = client(&server, &written, &Arc::default());
        let settings = Settings {
            bind_address: Ipv4Addr::LOCALHOST.into(),
            metrics_port: 0,
            health_probe_port: 0,
            ..Settings::default()
        };
        let cloud = SimCloud::new(1, clock.clone());
        let classes = Arc::new(Api::all(open.clone()));
        let program = Operator {
            client: open,
            clock,
            settings: Arc::new(settings),
            seed: 1,
            provide: Box::new(Provided {
                cloud: Arc::new(SimProvider::new(cloud, Arc::new(Catalog::generic()), classes)),
                duties: Arc::new(Nothing),
            }),
            lease_client: client(&server, &Arc::default(), &lease_is_cut),
            namespace: "karpenter".to_owned(),
            identity: "me".to_owned(),
            version: "test",
            commit: "test",
            requests: operator::requests::Requests::default(),
        };
        let stop = CancellationToken::new();
        let running = program.run(stop.clone());
        let bench = Self {
            server,
            written,
            lease_is_cut,
            program: tokio::spawn(running),
            stop,
        };
        for crd in api::crds::all(api::crds::Variant::Kwok) {
            let crd = serde_json::to_value(crd).expect("definitions are plain data");
            bench.send(
                Method::POST,
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &crd,
            );
        }
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "default" },
        });
        bench.send(Method::POST, "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", &class);
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "karpenter" } });
        bench.send(Method::POST, "/api/v1/namespaces", &namespace);
        bench.give_work("first");
        while bench.written.lock().is_empty() {
            sleep(Duration::from_millis(100)).await;
        }
        bench
    }

    fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Bytes::from(body))
            .expect("a request");
        let answer = self.server.handle(request);
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

    /// A claim that has to be given its finalizer, an instance and a status.
    fn give_work(&self, name: &str) {
        let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
            "spec": { "requirements": [], "nodeClassRef": class },
        });
        self.send(Method::POST, CLAIMS, &claim);
    }

    /// Waits for the end of the program, with work for it every second, and says how long it took.
    async fn end(&mut self) -> (Result<(), OperatorError>, Duration) {
        let begun = Instant::now();
        let mut number = 0;
        let outcome = loop {
            self.give_work(&format!("while-waiting-{number}"));
            number += 1;
            tokio::select! {
                biased;
                outcome = &mut self.program => break outcome.expect("the program does not panic"),
                () = sleep(Duration::from_secs(1)) => {}
            }
        };
        (outcome, begun.elapsed())
    }

    /// Nothing is written from now on, whatever there would be to do.
    async fn is_silent(&self) {
        let before = self.written.lock().len();
        for number in 0..60 {
            self.give_work(&format!("too-late-{number}"));
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(self.written.lock()[before..], Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_once_somebody_else_has_the_lease() {
    let mut bench = Bench::started().await;
    let mut lease = bench.send(Method::GET, LEASE, &Value::Null);
    assert_eq!(lease["spec"]["holderIdentity"], "me");
    lease["spec"]["holderIdentity"] = "somebody else".into();
    bench.send(Method::PUT, LEASE, &lease);
    let (outcome, took) = bench.end().await;
    assert!(
        matches!(&outcome, Err(OperatorError::Lease(LeaseError::Taken { holder, .. })) if holder == "somebody else"),
        "{outcome:?}"
    );
    assert!(
        took <= Duration::from_secs(3),
        "the lease is looked at every two seconds: {took:?}"
    );
    bench.is_silent().await;
}

/// The lease lasts fifteen seconds after its last renewal; by then the holder has stopped, so that two never work at
/// once.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_once_the_lease_could_not_be_renewed() {
    let mut bench = Bench::started().await;
    bench.lease_is_cut.store(true, Ordering::Relaxed);
    let (outcome, took) = bench.end().await;
    assert!(
        matches!(&outcome, Err(OperatorError::Lease(LeaseError::NotRenewed { .. }))),
        "{outcome:?}"
    );
    assert!(took < Duration::from_secs(15), "{took:?}");
    bench.is_silent().await;
}

/// A clean stop gives the lease back, and a standby need not wait for it to run out.
#[tokio::test(start_paused = true)]
async fn a_stop_gives_the_lease_back_at_once() {
    let mut bench = Bench::started().await;
    bench.stop.cancel();
    let (outcome, took) = bench.end().await;
    outcome.expect("a stop is no failure");
    assert!(took <= Duration::from_secs(1), "{took:?}");
    assert_eq!(
        bench.send(Method::GET, LEASE, &Value::Null)["spec"]["holderIdentity"],
        ""
    );
    bench.is_silent().await;
}
