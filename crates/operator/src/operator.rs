//! The engine as a program: behind a leader lease, with probes and metrics, until it is told to stop.

use std::sync::Arc;

use async_trait::async_trait;
use controllers::{
    fleet::Fleet,
    metrics::{Exposition, Scene},
};
use controllers_legacy::Place;
use kube::Client;
use parking_lot::RwLock;
use state::Index;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    endpoints::{self, Check, PortTaken, Render},
    engine::{Broken, Engine, Running},
    lease::{Election, LeaseError, Standing},
    legacy::{self, Legacy},
    process, profiling,
    requests::Requests,
    webhooks::{Address, Webhooks},
};

/// Kinds that have to be served before anything can be done.
const NEEDED: [&str; 2] = ["nodepools", "nodeclaims"];
const NEEDED_IN: &str = "karpenter.sh/v1";
/// How often a missing kind is looked for again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(transparent)]
    Port(#[from] PortTaken),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("the API server does not answer")]
    Unreachable(#[source] kube::Error),
}

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

/// The program around an engine.
pub struct Operator {
    pub engine: Engine,
    pub duties: Arc<dyn Duties>,
    /// A client of its own for the lease, so that no other traffic can cost us the leadership. Webhooks use it, too: a
    /// request of the controllers may wait for a conversion, which must not wait for that request.
    pub lease_client: Client,
    /// Where the lease lives when the settings do not say.
    pub namespace: String,
    /// Differs between any two processes: host name, `_`, something unique.
    pub identity: String,
    pub version: &'static str,
    pub commit: &'static str,
    /// What the engine's client asks the API server.
    pub requests: Requests,
}

/// What probes and scrapers look at, filled in as the program gets there.
#[derive(Default)]
struct Windows {
    index: RwLock<Option<Arc<Index>>>,
    exposition: RwLock<Option<Arc<Exposition>>>,
    missing_kinds: RwLock<Option<String>>,
    standing: RwLock<Arc<Standing>>,
}

impl Operator {
    /// Runs until told to stop. Gives the lease back on the way out.
    pub async fn run(self, stop: CancellationToken) -> Result<(), OperatorError> {
        let settings = self.engine.settings.clone();
        let windows = Arc::new(Windows::default());
        *windows.missing_kinds.write() = Some("not looked yet".to_owned());
        let health = endpoints::bind_health(settings.bind_address, settings.health_probe_port).await?;
        let metrics = endpoints::bind_metrics(settings.bind_address, settings.metrics_port).await?;
        let mut servers = JoinSet::new();
        let webhooks = self.webhooks(&mut servers).await?;
        let checks = checks(&windows, webhooks.as_ref());
        servers.spawn(async move {
            if let Err(error) = endpoints::serve_health(health, checks).await {
                error!(%error, "health probes are no longer served");
            }
        });
        let render = self.render(&windows);
        let profiles = settings.enable_profiling.then(profiling::routes);
        servers.spawn(async move {
            if let Err(error) = endpoints::serve_metrics(metrics, render, profiles).await {
                error!(%error, "metrics are no longer served");
            }
        });

        self.engine
            .client
            .apiserver_version()
            .await
            .map_err(OperatorError::Unreachable)?;
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = self.until_kinds_are_served(&windows) => {}
        }
        let webhooks = webhooks.as_deref();
        if settings.leader_election {
            self.lead(&windows, webhooks, &stop).await
        } else {
            self.work(&windows, webhooks, &stop).await
        }
    }

    /// Serves webhooks where they are wanted. Every replica does: the API server asks any of them.
    async fn webhooks(&self, servers: &mut JoinSet<()>) -> Result<Option<Arc<Webhooks>>, OperatorError> {
        let settings = &self.engine.settings;
        if !settings.legacy_webhooks {
            return Ok(None);
        }
        let listener = endpoints::bind_webhooks(settings.bind_address, settings.webhook_port).await?;
        let address = Address {
            namespace: self.namespace.clone(),
            service: settings.karpenter_service.clone(),
            host: settings.bind_address,
        };
        let rules = legacy::rules(&*self.engine.cloud, self.duties.cluster_name());
        let webhooks = Webhooks::new(self.lease_client.clone(), self.engine.clock.clone(), address, rules);
        let webhooks = Arc::new(webhooks);
        let (serving, following) = (webhooks.clone(), webhooks.clone());
        servers.spawn(async move {
            if let Err(error) = serving.serve(listener).await {
                error!(%error, "webhooks are not served");
            }
        });
        servers.spawn(async move { following.follow().await });
        Ok(Some(webhooks))
    }

    async fn lead(
        &self,
        windows: &Windows,
        webhooks: Option<&Webhooks>,
        stop: &CancellationToken,
    ) -> Result<(), OperatorError> {
        let settings = &self.engine.settings;
        let namespace = Some(settings.leader_election_namespace.as_str()).filter(|name| !name.is_empty());
        let mut election = Election::new(
            self.lease_client.clone(),
            namespace.unwrap_or(&self.namespace),
            &settings.leader_election_name,
            self.identity.clone(),
            self.engine.clock.clone(),
        );
        *windows.standing.write() = election.standing();
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = election.win() => {}
        }
        let outcome = tokio::select! {
            biased;
            outcome = self.work(windows, webhooks, stop) => outcome,
            lost = election.hold() => return Err(lost.into()),
        };
        election.release().await;
        outcome
    }

    /// Webhooks are looked after from the first moment: objects may have to be converted before they can be read.
    async fn work(
        &self,
        windows: &Windows,
        webhooks: Option<&Webhooks>,
        stop: &CancellationToken,
    ) -> Result<(), OperatorError> {
        let kept = async {
            match webhooks {
                Some(webhooks) => webhooks.keep().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = self.control(windows, stop) => outcome,
            () = kept => Ok(()),
        }
    }

    async fn control(&self, windows: &Windows, stop: &CancellationToken) -> Result<(), OperatorError> {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = self.duties.take_over() => {}
        }
        let legacy = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            wanted = legacy::is_wanted(&self.engine.client, self.engine.settings.legacy_apis) => wanted,
        };
        let legacy = legacy.then(|| Legacy {
            place: Place {
                cluster_name: self.duties.cluster_name(),
            },
            namespace: self.namespace.clone(),
        });
        let running = self.engine.start_beside(legacy, |fleet| self.duties.join(fleet));
        self.open(windows, &running);
        info!(version = self.version, "started controllers");
        tokio::select! {
            biased;
            outcome = running.until(stop) => outcome?,
            () = self.duties.beside() => {}
        }
        info!("stopped controllers");
        Ok(())
    }

    fn open(&self, windows: &Windows, running: &Running) {
        running.metrics.built_from(self.version, self.commit);
        *windows.exposition.write() = Some(Arc::new(Exposition::of(&running.metrics)));
        *windows.index.write() = Some(running.index.clone());
    }

    fn render(&self, windows: &Arc<Windows>) -> Render {
        let windows = windows.clone();
        let Engine {
            clock, cloud, settings, ..
        } = self.engine.clone();
        let (requests, duties) = (self.requests.clone(), self.duties.clone());
        Arc::new(move |page| {
            page.add(&process::metrics());
            page.add(&windows.standing.read().metrics(&settings.leader_election_name));
            page.take_over(&requests.encoded());
            page.take_over(&duties.metrics());
            // Out of its lock: a slow reader must not keep a new leader from opening another window.
            let exposition = windows.exposition.read().clone();
            if let Some(exposition) = exposition {
                let view = windows.index.read().as_ref().map(|index| index.view());
                let now = clock.now();
                let scene = view.as_ref().map(|view| Scene {
                    view,
                    now,
                    classes: cloud.node_classes(),
                    only_classes: !settings.observe_cluster_state,
                });
                exposition.write(page, scene.as_ref(), now);
            }
        })
    }

    async fn until_kinds_are_served(&self, windows: &Windows) {
        loop {
            let missing = missing_kinds(&self.engine.client).await;
            let done = missing.is_none();
            if let Some(missing) = &missing {
                warn!(%missing, "waiting for custom resources; hint: install the chart karpenter-crd, or karpenter crds | kubectl apply -f -");
            }
            *windows.missing_kinds.write() = missing;
            if done {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Asks what the API server serves rather than for the definitions: everybody may ask the first, few may read the second.
async fn missing_kinds(client: &Client) -> Option<String> {
    let served = match client.list_api_group_resources(NEEDED_IN).await {
        Ok(list) => list.resources,
        // A group of which nothing is served does not exist.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Some(format!("{NEEDED_IN} cannot be looked up: {error}")),
    };
    let missing = NEEDED
        .iter()
        .find(|kind| !served.iter().any(|resource| resource.name == **kind));
    missing.map(|kind| format!("{kind}.karpenter.sh is not installed"))
}

fn checks(windows: &Arc<Windows>, webhooks: Option<&Arc<Webhooks>>) -> Vec<Check> {
    let (for_kinds, for_index) = (windows.clone(), windows.clone());
    let mut checks = vec![
        Check {
            name: "readyz",
            test: Box::new(|| Ok(())),
        },
        Check {
            name: "crd",
            test: Box::new(move || for_kinds.missing_kinds.read().clone().map_or(Ok(()), Err)),
        },
        Check {
            name: "manager",
            // A standby is ready, too: it watches nothing before it leads.
            test: Box::new(move || match for_index.index.read().as_ref() {
                Some(index) if !index.view().synced => Err("the first lists have not arrived".to_owned()),
                _ => Ok(()),
            }),
        },
    ];
    if let Some(webhooks) = webhooks.cloned() {
        checks.push(Check {
            name: "webhooks",
            test: Box::new(move || match webhooks.is_ready() {
                true => Ok(()),
                false => Err("there is no certificate yet".to_owned()),
            }),
        });
    }
    checks
}
