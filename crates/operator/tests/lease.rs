//! The leader lease between two processes, on virtual time.

use std::{sync::Arc, time::Duration};

use clock::{Clock, VirtualClock};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kube_mem::ApiServer;
use operator::lease::{DURATION, Election, LeaseError};
use serde_json::json;
use tokio::time::{Instant, timeout};

fn server() -> (ApiServer, Arc<dyn Clock>) {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    (ApiServer::builder().clock(clock.clone()).build(), clock)
}

fn election(server: &ApiServer, clock: &Arc<dyn Clock>, identity: &str) -> Election {
    let name = "karpenter-leader-election";
    Election::new(server.client(), "kube-system", name, identity.to_owned(), clock.clone())
}

/// A rolling update: the old process gives the lease back, the new one has it within a second.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_within_a_second() {
    let (server, clock) = server();
    let (mut old, mut new) = (election(&server, &clock, "old"), election(&server, &clock, "new"));
    old.win().await;
    let standby = tokio::spawn(async move {
        new.win().await;
        Instant::now()
    });
    tokio::time::sleep(Duration::from_millis(4_300)).await;
    assert!(!standby.is_finished(), "the holder is alive");
    let given_back = Instant::now();
    old.release().await;
    let taken = standby.await.expect("the standby lives");
    assert!(taken - given_back <= Duration::from_secs(1), "{:?}", taken - given_back);
}

/// A holder that has died is waited for until its lease has run out.
#[tokio::test(start_paused = true)]
async fn a_lease_of_the_dead_runs_out() {
    let (server, clock) = server();
    let (mut old, mut new) = (election(&server, &clock, "old"), election(&server, &clock, "new"));
    old.win().await;
    let begun = Instant::now();
    new.win().await;
    let waited = begun.elapsed();
    assert!(
        (DURATION..DURATION + Duration::from_secs(2)).contains(&waited),
        "{waited:?}"
    );
    let lost = timeout(Duration::from_secs(30), old.hold()).await.expect("it notices");
    assert!(matches!(lost, LeaseError::Taken { holder, .. } if holder == "new"));
}

/// A holder asks the API server once for each renewal, and reads the lease only when somebody else has written to it.
#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request() {
    let (server, clock) = server();
    let mut holder = election(&server, &clock, "holder");
    let standing = holder.standing();
    let slow = move |count: u32| {
        let line = format!("leader_election_slowpath_total{{name=\"n\"}} {count}\n");
        standing.metrics("n").contains(&line)
    };
    holder.win().await;
    timeout(DURATION, holder.hold()).await.expect_err("it holds");
    assert!(slow(0));
    let leases: Api<Lease> = Api::namespaced(server.client(), "kube-system");
    let note = Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
    let params = PatchParams::default();
    leases
        .patch("karpenter-leader-election", &params, &note)
        .await
        .expect("it is there");
    timeout(DURATION, holder.hold()).await.expect_err("it still holds");
    assert!(slow(1));
}
