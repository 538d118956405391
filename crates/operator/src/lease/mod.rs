//! Leader election on one Lease: at most one process acts at a time.
//!
//! ```text
//! standby ──lease free or expired──► leader ──cannot renew for 10 s, or someone else holds it──► lost: the process ends
//!    ▲                                 │
//!    └────────── look every second ────┴── clean stop: the lease is given back, a standby takes it at once
//! ```
//!
//! Name, namespace and figures are upstream's, so that an old and a new controller exclude each other. Whether the
//! holder is alive is judged by when *we* last saw the lease change, never by comparing its timestamps with our
//! clock: clocks of two machines differ.

mod decide;
mod trouble;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use clock::Clock;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use parking_lot::RwLock;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use decide::{Move, Sighting, decide};
use trouble::trouble;

/// How long a lease is good for after its last renewal.
pub const DURATION: Duration = Duration::from_secs(15);
/// A leader that could not renew for this long stops acting: well before a standby may take over.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How long one attempt to renew may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How often the holder renews the lease.
pub const RETRY: Duration = Duration::from_secs(2);
/// How often a standby looks at the lease. One that was given back is found within this time, so that a rolling update
/// hands over in a second.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("lease {name} was taken by {holder}")]
    Taken { name: String, holder: String },
    #[error("lease {name} could not be renewed for {RENEW_DEADLINE:?}")]
    NotRenewed { name: String },
}

/// How this process stands in the election, as scrapers are told.
#[derive(Debug, Default)]
pub struct Standing {
    leads: AtomicBool,
    slow_renewals: AtomicU64,
    trouble: RwLock<Option<String>>,
}

impl Standing {
    /// `Err` says why the lease can be neither seen nor taken.
    pub fn trouble(&self) -> Result<(), String> {
        self.trouble.read().clone().map_or(Ok(()), Err)
    }

    /// The lease is looked at every second; what is wrong with it is said once.
    fn tell(&self, trouble: Option<String>) {
        let mut known = self.trouble.write();
        if *known != trouble
            && let Some(trouble) = &trouble
        {
            error!(error = trouble, "cannot lead");
        }
        *known = trouble;
    }

    pub fn metrics(&self, name: &str) -> String {
        let leads = u8::from(self.leads.load(Ordering::Relaxed));
        let slow = self.slow_renewals.load(Ordering::Relaxed);
        format!(
            "# HELP leader_election_master_status Whether this process leads\n\
             # TYPE leader_election_master_status gauge\nleader_election_master_status{{name=\"{name}\"}} {leads}\n\
             # HELP leader_election_slowpath_total Renewals that had to read the lease anew\n\
             # TYPE leader_election_slowpath_total counter\nleader_election_slowpath_total{{name=\"{name}\"}} {slow}\n"
        )
    }
}

/// This process's part in the election.
pub struct Election {
    leases: Api<Lease>,
    name: String,
    identity: String,
    clock: Arc<dyn Clock>,
    standing: Arc<Standing>,
    sighting: Option<Sighting>,
}

impl Election {
    /// `identity` has to differ between processes: host name, `_`, something unique.
    pub fn new(client: Client, namespace: &str, name: &str, identity: String, clock: Arc<dyn Clock>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity,
            clock,
            standing: Arc::default(),
            sighting: None,
        }
    }

    pub fn standing(&self) -> Arc<Standing> {
        self.standing.clone()
    }

    /// Waits until this process leads.
    pub async fn win(&mut self) {
        info!(lease = %self.name, identity = %self.identity, "attempting to acquire leader lease");
        while !self.try_once().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.standing.leads.store(true, Ordering::Relaxed);
        info!(lease = %self.name, identity = %self.identity, "successfully acquired lease");
    }

    /// Keeps the lease; returns only when it is lost.
    pub async fn hold(&mut self) -> LeaseError {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RETRY).await;
            // A request may hang longer than the deadline that it is to keep, and the next one need not.
            let left = RENEW_DEADLINE.saturating_sub(renewed.elapsed());
            if tokio::time::timeout(left.min(ATTEMPT), self.renew()).await == Ok(true) {
                renewed = Instant::now();
                continue;
            }
            if let Some(holder) = self.other_holder() {
                return LeaseError::Taken {
                    name: self.name.clone(),
                    holder,
                };
            }
            if renewed.elapsed() >= RENEW_DEADLINE {
                return LeaseError::NotRenewed {
                    name: self.name.clone(),
                };
            }
        }
    }

    /// Gives the lease back, so that a standby need not wait for it to expire.
    pub async fn release(&mut self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.name).await else {
            return;
        };
        let Some(spec) = lease
            .spec
            .as_mut()
            .filter(|spec| spec.holder_identity.as_ref() == Some(&self.identity))
        else {
            return;
        };
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(self.clock.now()));
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(_) => info!(lease = %self.name, "released leader lease"),
            Err(error) => warn!(lease = %self.name, %error, "could not release the leader lease; it will expire"),
        }
    }

    /// The holder writes over what it wrote last, and reads the lease only when that does not do. Says whether we lead
    /// still.
    async fn renew(&mut self) -> bool {
        let held = self.sighting.as_ref().and_then(|sighting| sighting.lease.as_ref());
        let lease = self.lease(held);
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(lease) => {
                self.standing.tell(None);
                self.saw(Some(lease));
                true
            }
            Err(error) => {
                debug!(lease = %self.name, %error, "the lease has to be read before it is renewed");
                self.standing.slow_renewals.fetch_add(1, Ordering::Relaxed);
                self.try_once().await
            }
        }
    }

    fn saw(&mut self, lease: Option<Lease>) {
        self.sighting = Some(Sighting::of(lease, self.sighting.take(), Instant::now()));
    }

    fn next_move(&self) -> Move {
        let sighting = self.sighting.as_ref();
        sighting.map_or(Move::Wait, |sighting| decide(sighting, &self.identity, Instant::now()))
    }

    /// One look at the lease, and one write where that is called for. Says whether we lead now.
    async fn try_once(&mut self) -> bool {
        let found = match self.leases.get_opt(&self.name).await {
            Ok(found) => found,
            Err(error) => {
                self.tell("read", &error);
                return false;
            }
        };
        let lease = self.lease(found.as_ref());
        self.saw(found);
        let params = PostParams::default();
        let written = match self.next_move() {
            Move::Wait => {
                self.standing.tell(None);
                return false;
            }
            Move::Create => self.leases.create(&params, &lease).await,
            Move::Take | Move::Renew => self.leases.replace(&self.name, &params, &lease).await,
        };
        match written {
            Ok(lease) => {
                self.standing.tell(None);
                self.saw(Some(lease));
                true
            }
            Err(error) => {
                // After a conflict somebody else was faster, which is no trouble.
                if !matches!(&error, kube::Error::Api(status) if status.code == 409) {
                    self.tell("written", &error);
                }
                false
            }
        }
    }

    fn tell(&self, what: &str, error: &kube::Error) {
        self.standing.tell(Some(trouble(&self.name, what, error)));
    }

    fn other_holder(&self) -> Option<String> {
        let holder = self.sighting.as_ref()?.holder()?;
        (holder != self.identity).then(|| holder.to_owned())
    }

    /// The lease as it looks while we hold it. The resource version of what we saw goes along, so that two processes
    /// cannot both take it.
    fn lease(&self, seen: Option<&Lease>) -> Lease {
        let now = MicroTime(self.clock.now());
        let old = seen.and_then(|lease| lease.spec.as_ref());
        let ours = old.is_some_and(|spec| spec.holder_identity.as_ref() == Some(&self.identity));
        let transitions = old.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        let metadata = seen.map_or_else(
            || ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            |lease| lease.metadata.clone(),
        );
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: Some(DURATION.as_secs().try_into().unwrap_or(i32::MAX)),
                acquire_time: old
                    .filter(|_| ours)
                    .and_then(|spec| spec.acquire_time.clone())
                    .or(Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(if seen.is_some() && !ours {
                    transitions + 1
                } else {
                    transitions
                }),
                ..LeaseSpec::default()
            }),
        }
    }
}
