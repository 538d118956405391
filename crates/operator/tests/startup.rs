//! A start in a cluster that is not complete: it waits, says for what, goes on by itself, and ends when told to.

mod common;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kube::Client;
use kube_mem::ApiServer;
use operator::{NotProvided, OperatorError, Provide, Provided, settings::Settings};
use parking_lot::Mutex;
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
    let mood = mood.clone();
    common::client(server, move |_, _| {
        let mood = *mood.lock();
        async move {
            match mood {
                Mood::Answers => Ok(()),
                Mood::Fails | Mood::GivesUp => Err(BoxError::from("connection refused")),
                Mood::Hangs => std::future::pending().await,
            }
        }
    })
}

impl Start {
    fn of(api_server: Mood, cloud: Mood) -> Self {
        let (server, clock) = common::server();
        let (api_server, leases, cloud) = (moody(api_server), moody(Mood::Answers), moody(cloud));
        let settings = Settings {
            health_probe_port: testkit::free_port(),
            ..common::settings()
        };
        let health = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.health_probe_port));
        let asked = Arc::new(AtomicUsize::new(0));
        let (open, lease_client) = (client(&server, &api_server), client(&server, &leases));
        let program = common::program(clock, open, lease_client, settings, |provided| {
            let (mood, asked) = (cloud.clone(), asked.clone());
            Box::new(Cloud { mood, asked, provided })
        });
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
    common::install_kinds(&start.server);
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
    common::create_home(&start.server);
    start.until(&["200 OK", "[+]lease ok", "[+]manager ok"]).await;
    start.end().await.expect("a stop is no failure");
}

/// What has passed is not told any more: a leader that holds its lease is ready.
#[tokio::test(start_paused = true)]
async fn a_leader_is_ready_again_once_it_can_renew_its_lease() {
    let start = Start::of(Mood::Answers, Mood::Answers);
    common::install_kinds(&start.server);
    common::create_home(&start.server);
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
    common::install_kinds(&start.server);
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
    common::install_kinds(&start.server);
    let outcome = start.program.await.expect("the program does not panic");
    assert!(
        matches!(&outcome, Err(OperatorError::Cloud(NotProvided::Ever(why))) if why.to_string() == "there is no certificate"),
        "{outcome:?}"
    );
}
