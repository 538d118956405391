//! Who has lost the lease writes nothing any more.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{create, send};
use http::Method;
use kube::Client;
use kube_mem::ApiServer;
use operator::{OperatorError, lease::LeaseError};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/karpenter-leader-election";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

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
    let (written, cut) = (written.clone(), cut.clone());
    common::client(server, move |method, path| {
        let heard = match cut.load(Ordering::Relaxed) {
            true => Err(BoxError::from("the line is cut")),
            false => Ok(()),
        };
        if heard.is_ok() && method != Method::GET {
            written.lock().push(format!("{method} {path}"));
        }
        std::future::ready(heard)
    })
}

impl Bench {
    /// Returns when the program leads and works.
    async fn started() -> Self {
        let (server, clock) = common::server();
        let written = Arc::default();
        let lease_is_cut = Arc::new(AtomicBool::new(false));
        let open = client(&server, &written, &Arc::default());
        let lease_client = client(&server, &Arc::default(), &lease_is_cut);
        let settings = common::settings();
        let program = common::program(clock, open, lease_client, settings, |provided| Box::new(provided));
        let stop = CancellationToken::new();
        let running = program.run(stop.clone());
        let bench = Self {
            server,
            written,
            lease_is_cut,
            program: tokio::spawn(running),
            stop,
        };
        common::install_kinds(&bench.server);
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "default" },
        });
        create(
            &bench.server,
            "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses",
            &class,
        );
        common::create_home(&bench.server);
        bench.give_work("first");
        while bench.written.lock().is_empty() {
            sleep(Duration::from_millis(100)).await;
        }
        bench
    }

    /// A claim that has to be given its finalizer, an instance and a status.
    fn give_work(&self, name: &str) {
        let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
            "spec": { "requirements": [], "nodeClassRef": class },
        });
        create(&self.server, CLAIMS, &claim);
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
    let mut lease = send(&bench.server, Method::GET, LEASE, &Value::Null);
    assert_eq!(lease["spec"]["holderIdentity"], "me");
    lease["spec"]["holderIdentity"] = "somebody else".into();
    send(&bench.server, Method::PUT, LEASE, &lease);
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
        send(&bench.server, Method::GET, LEASE, &Value::Null)["spec"]["holderIdentity"],
        ""
    );
    bench.is_silent().await;
}
