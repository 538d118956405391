//! A start in a cluster that is not complete: it waits, says for what, goes on by itself, and ends when told to.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, VirtualClock};
use http::{Method, Request};
use kube::{Api, Client, client::Body};
use kube_mem::ApiServer;
use operator::{Duties, NotProvided, Operator, OperatorError, Provide, Provided, settings::Settings};
use parking_lot::Mutex;
use provider_sim::{Catalog, SimCloud, SimProvider};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// What somebody does who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Answers,
    Fails,
    Hangs,
    /// Only for the cloud: there will never be one.
    GivesUp,
}

type Moody = Arc<Mutex<Mood>>;

fn moody(mood: Mood) -> Moody {
    Arc::new(Mutex::new(mood))
}

struct Nothing;

#[async_trait]
impl Duties for Nothing {
    async fn take_over(&self) {}

    async fn beside(&self) {
        std::future::pending::<()>().await;
    }
}

struct Cloud {
    mood: Moody,
    asked: Arc<AtomicUsize>,
    provided: Provided,
}

#[async_trait]
impl Provide for Cloud {
    async fn provide(&self) -> Result<Provided, NotProvided> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mood = *self.mood.lock();
        match mood {
            Mood::Answers => Ok(self.provided.clone()),
            Mood::Fails => Err(NotProvided::Yet(
                "nobody knows cluster demo; hint: --cluster-name".into(),
            )),
            Mood::Hangs => std::future::pending().await,
            Mood::GivesUp => Err(NotProvided::Ever("there is no certificate".into())),
        }
    }
}

/// A program whose surroundings come one by one.
struct Start {
    server: ApiServer,
    api_server: Moody,
    leases: Moody,
    cloud: Moody,
    asked: Arc<AtomicUsize>,
    health: SocketAddr,
    stop: CancellationToken,
    program: JoinHandle<Result<(), OperatorError>>,
}

fn client(server: &ApiServer, mood: &Moody) -> Client {
    let (server, mood) = (server.clone(), mood.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, mood) = (server.clone(), *mood.lock());
        async move {
            match mood {
                Mood::Answers => {}
                Mood::Fails | Mood::GivesUp => return Err(BoxError::from("connection refused")),
                Mood::Hangs => std::future::pending().await,
            }
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            Ok(server.handle(Request::from_parts(parts, body)))
        }
    });
    Client::new(service, "default")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

impl Start {
    fn of(api_server: Mood, cloud: Mood) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let builder = ApiServer::builder().clock(clock.clone()).seed(1);
        let server = builder.without_managers().build();
        let (api_server, leases, cloud) = (moody(api_server), moody(Mood::Answers), moody(cloud));
        let open = client(&server, &api_server);
        let settings = Settings {
            bind_address: Ipv4Addr::LOCALHOST.into(),
            metrics_port: 0,
            health_probe_port: free_port(),
            ..Settings::default()
        };
        let health = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.health_probe_port));
        let simulated = SimCloud::new(1, clock.clone());
        let classes = Arc::new(Api::all(open.clone()));
        let asked = Arc::new(AtomicUsize::new(0));
        let program = Operator {
            client: open,
            clock,
            settings: Arc::new(settings),
            seed: 1,
            provide: Box::new(Cloud {
                mood: cloud.clone(),
                asked: asked.clone(),
                provided: Provided {
                    cloud: Arc::new(SimProvider::new(simulated, Arc::new(Catalog::generic()), classes)),
                    duties: Arc::new(Nothing),
                },
            }),
            lease_client: client(&server, &leases),
            namespace: "karpenter".to_owned(),
            identity: "me".to_owned(),
            version: "test",
            commit: "test",
            requests: operator::requests::Requests::default(),
        };
        let stop = CancellationToken::new();
        Self {
            server,
            api_server,
            leases,
            cloud,
            asked,
            health,
            program: tokio::spawn(program.run(stop.clone())),
            stop,
        }
    }

    fn install_kinds(&self) {
        for crd in api::crds::all(api::crds::Variant::Kwok) {
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
        }
    }

    fn create(&self, path: &str, object: &impl serde::Serialize) {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header("content-type", "application/json")
            .body(Bytes::from(serde_json::to_vec(object).expect("plain data")));
        let answer = self.server.handle(request.expect("a request"));
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }

    /// What the readiness probe is told.
    async fn readiness(&self) -> Option<String> {
        let mut stream = TcpStream::connect(self.health).await.ok()?;
        let request = "GET /readyz?verbose HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    /// Looks every second until the probe is told all of this.
    #[track_caller]
    fn until(&self, wanted: &[&str]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let mut last = None;
            for _ in 0..120 {
                last = self.readiness().await.or(last);
                let is_told = |line: &&str| last.as_ref().is_some_and(|told| told.contains(*line));
                if wanted.iter().all(is_told) {
                    return;
                }
                sleep(Duration::from_secs(1)).await;
            }
            panic!("{place}: {wanted:?} is not in {last:?}");
        }
    }

    async fn end(self) -> Result<(), OperatorError> {
        let begun = Instant::now();
        self.stop.cancel();
        let outcome = self.program.await.expect("the program does not panic");
        assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_what_is_missing_and_goes_on_when_it_is_there() {
    let start = Start::of(Mood::Fails, Mood::Fails);
    start
        .until(&[
            "503 ",
            "[-]api-server failed: the API server does not answer: ",
            "connection refused",
        ])
        .await;
    *start.api_server.lock() = Mood::Hangs;
    start
        .until(&["[-]api-server failed: the API server has not answered within 30s"])
        .await;
    *start.leases.lock() = Mood::Fails;
    *start.api_server.lock() = Mood::Answers;
    // All that is missing is told at once.
    start
        .until(&[
            "[+]api-server ok",
            "[-]crd failed: nodepools.karpenter.sh is not installed; hint: ",
            "[-]cloud failed: nobody knows cluster demo; hint: --cluster-name",
        ])
        .await;
    start.install_kinds();
    start.until(&["[+]crd ok", "[-]cloud failed"]).await;
    *start.cloud.lock() = Mood::Answers;
    start
        .until(&[
            "[+]cloud ok",
            "[-]lease failed: lease karpenter-leader-election cannot be read: ",
        ])
        .await;
    *start.leases.lock() = Mood::Answers;
    start
        .until(&[
            "[-]lease failed: lease karpenter-leader-election cannot be written: namespaces \"karpenter\" not found; hint: create",
        ])
        .await;
    start.create("/api/v1/namespaces", &json!({"metadata": {"name": "karpenter"}}));
    start.until(&["200 OK", "[+]lease ok", "[+]manager ok"]).await;
    start.end().await.expect("a stop is no failure");
}

/// What has passed is not told any more: a leader that holds its lease is ready.
#[tokio::test(start_paused = true)]
async fn a_leader_is_ready_again_once_it_can_renew_its_lease() {
    let start = Start::of(Mood::Answers, Mood::Answers);
    start.install_kinds();
    start.create("/api/v1/namespaces", &json!({"metadata": {"name": "karpenter"}}));
    start.until(&["200 OK", "[+]lease ok", "[+]manager ok"]).await;
    *start.leases.lock() = Mood::Fails;
    start
        .until(&[
            "503 ",
            "[-]lease failed: lease karpenter-leader-election cannot be read: ",
            "connection refused\n",
        ])
        .await;
    *start.leases.lock() = Mood::Answers;
    start.until(&["200 OK", "[+]lease ok"]).await;
    start.end().await.expect("it has led all the time");
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_heard_whatever_is_waited_for() {
    for (api_server, cloud, step) in [
        (Mood::Fails, Mood::Answers, "[-]api-server failed"),
        (Mood::Hangs, Mood::Answers, "[-]api-server failed: not looked yet"),
        (Mood::Answers, Mood::Answers, "[-]crd failed: nodepools"),
        (Mood::Answers, Mood::Fails, "[-]cloud failed: nobody"),
        (Mood::Answers, Mood::Hangs, "[-]cloud failed: not looked yet"),
    ] {
        let start = Start::of(api_server, cloud);
        start.until(&[step]).await;
        let outcome = start.end().await;
        assert!(outcome.is_ok(), "{step}: {outcome:?}");
    }
    let start = Start::of(Mood::Answers, Mood::Answers);
    *start.leases.lock() = Mood::Hangs;
    start.install_kinds();
    start.until(&["[+]cloud ok", "[+]crd ok"]).await;
    start.end().await.expect("a stop is no failure");
}

/// Whoever is asked in vain is asked ever more rarely, but never forgotten.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_is_asked_every_half_minute() {
    let start = Start::of(Mood::Answers, Mood::Fails);
    sleep(Duration::from_secs(600)).await;
    let asked = start.asked.load(Ordering::Relaxed);
    assert!((20..=26).contains(&asked), "{asked} times in ten minutes");
    start.end().await.expect("a stop is no failure");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_else_can_mend_ends_the_program() {
    let start = Start::of(Mood::Answers, Mood::GivesUp);
    start.install_kinds();
    let outcome = start.program.await.expect("the program does not panic");
    assert!(
        matches!(&outcome, Err(OperatorError::Cloud(NotProvided::Ever(why))) if why.to_string() == "there is no certificate"),
        "{outcome:?}"
    );
}
