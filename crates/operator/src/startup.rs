//! What has to be there before anything can be done, and what is said while it is not.
//!
//! ```text
//! API server answers ──► cloud answers          ──► lease ──► controllers
//!                   └──► custom resources served ─┘
//! ```
//!
//! A start that finds something missing waits for it: whoever installs a cluster brings its parts in any order, and a
//! process that ends is started again ever more rarely. What can only be mended by starting anew ends the process.

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use async_trait::async_trait;
use controllers::{error::chain, fleet::Fleet};
use kube::Client;
use parking_lot::RwLock;
use provider::CloudProvider;
use tokio::time::{sleep, timeout};
use tracing::{error, info};

const API_SERVER: &str = "api-server";
const CLOUD: &str = "cloud";
/// Upstream's name for it.
const KINDS: &str = "crd";
/// The readiness checks that a start passes.
pub const STEPS: [&str; 3] = [API_SERVER, CLOUD, KINDS];

/// Kinds that have to be served before anything can be done.
const NEEDED: [&str; 2] = ["nodepools", "nodeclaims"];
const NEEDED_IN: &str = "karpenter.sh/v1";
/// Short, because most of what is missing at a start is there a moment later.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// So that a start is never later than this after what it waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An address where nobody answers would otherwise be waited for until the system gives up, for minutes.
const ANSWER: Duration = Duration::from_secs(30);

/// What a provider has to do in the leader's process besides answering calls.
#[async_trait]
pub trait Duties: Send + Sync {
    /// Done by each new leader before its controllers act.
    async fn take_over(&self);

    /// Done beside the controllers for as long as they run. Never returns.
    async fn beside(&self);

    /// Adds the controllers that only this provider has.
    fn join(&self, _: &mut Fleet) {}

    /// The name by which the cloud knows the cluster.
    fn cluster_name(&self) -> Option<String> {
        None
    }

    /// What only this provider counts, as a registry encodes it.
    fn metrics(&self) -> String {
        String::new()
    }
}

/// A provider, and what it has to do besides answering.
#[derive(Clone)]
pub struct Provided {
    pub cloud: Arc<dyn CloudProvider>,
    pub duties: Arc<dyn Duties>,
}

/// Where a provider comes from. It may have to ask its cloud for much before it can serve.
#[async_trait]
pub trait Provide: Send + Sync {
    /// One attempt; it leaves nothing behind that hinders the next.
    async fn provide(&self) -> Result<Provided, NotProvided>;
}

/// A provider that needs nothing from outside.
#[async_trait]
impl Provide for Provided {
    async fn provide(&self) -> Result<Provided, NotProvided> {
        Ok(self.clone())
    }
}

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum NotProvided {
    /// Time will mend it, or somebody elsewhere.
    #[error("the cloud cannot be used yet")]
    Yet(#[source] Box<dyn Error + Send + Sync>),
    /// This process will never have one.
    #[error("the cloud cannot be used")]
    Ever(#[source] Box<dyn Error + Send + Sync>),
}

/// What is waited for, by the name of its readiness check.
#[derive(Debug)]
pub struct Waits(RwLock<BTreeMap<&'static str, String>>);

/// Nobody has looked.
impl Default for Waits {
    fn default() -> Self {
        let unseen = STEPS.map(|step| (step, "not looked yet".to_owned()));
        Self(RwLock::new(unseen.into()))
    }
}

impl Waits {
    /// `Err` says what is missing.
    pub fn check(&self, step: &str) -> Result<(), String> {
        self.0.read().get(step).cloned().map_or(Ok(()), Err)
    }

    /// Tries until there is an answer, good or final, and tells log and probes why it waits.
    async fn until<T, A>(&self, step: &'static str, mut attempt: impl FnMut() -> A) -> T
    where
        A: Future<Output = Attempt<T>>,
    {
        let mut pause = FIRST_PAUSE;
        let mut tries: u32 = 0;
        loop {
            tries += 1;
            let missing = match attempt().await {
                Attempt::Done(done) => {
                    self.0.write().remove(step);
                    if tries > 1 {
                        info!(step, tries, "start-up goes on");
                    }
                    return done;
                }
                Attempt::Missing(missing) => missing,
            };
            // An error, so that it is found by whoever looks for errors only: nothing works until it is there.
            error!(step, error = missing, again_in = ?pause, "start-up waits");
            self.0.write().insert(step, missing);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

enum Attempt<T> {
    Done(T),
    Missing(String),
}

/// Waits for everything that the controllers need and gives the provider.
pub async fn prepare(client: &Client, provide: &dyn Provide, waits: &Waits) -> Result<Provided, NotProvided> {
    waits.until(API_SERVER, || answers(client)).await;
    let kinds = waits.until(KINDS, || are_kinds_served(client));
    let cloud = waits.until(CLOUD, || provided(provide));
    // Both at once, so that the first look at a start that waits shows all that is missing.
    let ((), cloud) = tokio::join!(kinds, cloud);
    cloud
}

/// What went wrong, as people want to read it: the library shows a refusal with all of its fields.
pub fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => chain(error).to_string(),
    }
}

async fn answers(client: &Client) -> Attempt<()> {
    match timeout(ANSWER, client.apiserver_version()).await {
        Ok(Ok(_)) => Attempt::Done(()),
        Ok(Err(error)) => Attempt::Missing(format!("the API server does not answer: {}", told(&error))),
        Err(_) => Attempt::Missing(format!("the API server has not answered within {ANSWER:?}")),
    }
}

/// Asks what the API server serves rather than for the definitions: everybody may ask the first, few may read the second.
async fn are_kinds_served(client: &Client) -> Attempt<()> {
    let served = match timeout(ANSWER, client.list_api_group_resources(NEEDED_IN)).await {
        Ok(Ok(list)) => list.resources,
        // A group of which nothing is served does not exist.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Vec::new(),
        Ok(Err(error)) => return Attempt::Missing(format!("{NEEDED_IN} cannot be looked up: {}", told(&error))),
        Err(_) => return Attempt::Missing(format!("{NEEDED_IN} has not been told within {ANSWER:?}")),
    };
    let is_missing = |kind: &&&str| !served.iter().any(|resource| resource.name == **kind);
    match NEEDED.iter().find(is_missing) {
        None => Attempt::Done(()),
        Some(kind) => Attempt::Missing(format!(
            "{kind}.karpenter.sh is not installed; hint: install the chart karpenter-crd, or karpenter crds | kubectl apply \
             --server-side -f -"
        )),
    }
}

async fn provided(provide: &dyn Provide) -> Attempt<Result<Provided, NotProvided>> {
    match provide.provide().await {
        Ok(provided) => Attempt::Done(Ok(provided)),
        Err(NotProvided::Yet(why)) => Attempt::Missing(chain(&*why).to_string()),
        Err(never @ NotProvided::Ever(_)) => Attempt::Done(Err(never)),
    }
}
