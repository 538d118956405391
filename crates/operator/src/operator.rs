//! The engine as a program: behind a leader lease, with probes and metrics, until it is told to stop.

use std::sync::{Arc, OnceLock};

use clock::Clock;
use controllers::metrics::{Exposition, Scene};
use controllers_legacy::Place;
use kube::Client;
use parking_lot::RwLock;
use state::Index;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{
    endpoints::{self, Check, PortTaken, Render},
    engine::{Broken, Engine, Running},
    lease::{Election, LeaseError, Standing},
    legacy::{self, Legacy},
    process, profiling,
    requests::Requests,
    settings::Settings,
    startup::{self, Duties, NotProvided, Provide, Provided, Waits},
    webhooks::{Address, Webhooks},
};

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(transparent)]
    Port(#[from] PortTaken),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Cloud(#[from] NotProvided),
}

/// The program around an engine.
pub struct Operator {
    pub client: Client,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    /// As [`Engine::seed`].
    pub seed: u64,
    pub provide: Box<dyn Provide>,
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
    waits: Waits,
    provided: OnceLock<Provided>,
    webhooks: OnceLock<Arc<Webhooks>>,
    standing: RwLock<Arc<Standing>>,
    index: RwLock<Option<Arc<Index>>>,
    exposition: RwLock<Option<Arc<Exposition>>>,
}

/// The program once there is a provider.
struct Ready {
    operator: Operator,
    engine: Engine,
    duties: Arc<dyn Duties>,
    windows: Arc<Windows>,
}

impl Operator {
    /// Runs until told to stop. Gives the lease back on the way out.
    pub async fn run(self, stop: CancellationToken) -> Result<(), OperatorError> {
        let settings = self.settings.clone();
        let windows = Arc::new(Windows::default());
        let health = endpoints::bind_health(settings.bind_address, settings.health_probe_port).await?;
        let metrics = endpoints::bind_metrics(settings.bind_address, settings.metrics_port).await?;
        let webhooks = match settings.legacy_webhooks {
            true => Some(endpoints::bind_webhooks(settings.bind_address, settings.webhook_port).await?),
            false => None,
        };
        let mut servers = JoinSet::new();
        let checks = checks(&windows, settings.legacy_webhooks);
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

        let provided = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            provided = startup::prepare(&self.client, &*self.provide, &windows.waits) => provided?,
        };
        let ready = self.with(provided, windows);
        if let Some(listener) = webhooks {
            ready.serve_webhooks(listener, &mut servers);
        }
        if settings.leader_election {
            ready.lead(&stop).await
        } else {
            ready.work(&stop).await
        }
    }

    fn with(self, provided: Provided, windows: Arc<Windows>) -> Ready {
        let Provided { cloud, duties } = windows.provided.get_or_init(|| provided).clone();
        let engine = Engine {
            client: self.client.clone(),
            cloud,
            clock: self.clock.clone(),
            settings: self.settings.clone(),
            seed: self.seed,
        };
        Ready {
            operator: self,
            engine,
            duties,
            windows,
        }
    }

    fn render(&self, windows: &Arc<Windows>) -> Render {
        let windows = windows.clone();
        let (clock, settings, requests) = (self.clock.clone(), self.settings.clone(), self.requests.clone());
        Arc::new(move |page| {
            page.add(&process::metrics());
            page.add(&windows.standing.read().metrics(&settings.leader_election_name));
            page.take_over(&requests.encoded());
            let Some(Provided { cloud, duties }) = windows.provided.get() else {
                return;
            };
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
}

impl Ready {
    /// Serves webhooks. Every replica does: the API server asks any of them.
    fn serve_webhooks(&self, listener: TcpListener, servers: &mut JoinSet<()>) {
        let settings = &self.engine.settings;
        let address = Address {
            namespace: self.operator.namespace.clone(),
            service: settings.karpenter_service.clone(),
            host: settings.bind_address,
        };
        let rules = legacy::rules(&*self.engine.cloud, self.duties.cluster_name());
        let client = self.operator.lease_client.clone();
        let webhooks = Arc::new(Webhooks::new(client, self.engine.clock.clone(), address, rules));
        let webhooks = self.windows.webhooks.get_or_init(|| webhooks);
        let (serving, following) = (webhooks.clone(), webhooks.clone());
        servers.spawn(async move {
            if let Err(error) = serving.serve(listener).await {
                error!(%error, "webhooks are not served");
            }
        });
        servers.spawn(async move { following.follow().await });
    }

    async fn lead(&self, stop: &CancellationToken) -> Result<(), OperatorError> {
        let settings = &self.engine.settings;
        let namespace = Some(settings.leader_election_namespace.as_str()).filter(|name| !name.is_empty());
        let mut election = Election::new(
            self.operator.lease_client.clone(),
            namespace.unwrap_or(&self.operator.namespace),
            &settings.leader_election_name,
            self.operator.identity.clone(),
            self.engine.clock.clone(),
        );
        *self.windows.standing.write() = election.standing();
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = election.win() => {}
        }
        let outcome = tokio::select! {
            biased;
            outcome = self.work(stop) => outcome,
            lost = election.hold() => return Err(lost.into()),
        };
        election.release().await;
        outcome
    }

    /// Webhooks are looked after from the first moment: objects may have to be converted before they can be read.
    async fn work(&self, stop: &CancellationToken) -> Result<(), OperatorError> {
        let kept = async {
            match self.windows.webhooks.get() {
                Some(webhooks) => webhooks.keep().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = self.control(stop) => outcome,
            () = kept => Ok(()),
        }
    }

    async fn control(&self, stop: &CancellationToken) -> Result<(), OperatorError> {
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
            namespace: self.operator.namespace.clone(),
        });
        let running = self.engine.start_beside(legacy, |fleet| self.duties.join(fleet));
        self.open(&running);
        info!(version = self.operator.version, "started controllers");
        tokio::select! {
            biased;
            outcome = running.until(stop) => outcome?,
            () = self.duties.beside() => {}
        }
        info!("stopped controllers");
        Ok(())
    }

    fn open(&self, running: &Running) {
        let Operator { version, commit, .. } = &self.operator;
        running.metrics.built_from(version, commit);
        *self.windows.exposition.write() = Some(Arc::new(Exposition::of(&running.metrics)));
        *self.windows.index.write() = Some(running.index.clone());
    }
}

fn checks(windows: &Arc<Windows>, with_webhooks: bool) -> Vec<Check> {
    fn check(
        windows: &Arc<Windows>,
        name: &'static str,
        test: impl Fn(&Windows) -> Result<(), String> + Send + Sync + 'static,
    ) -> Check {
        let windows = windows.clone();
        Check {
            name,
            test: Box::new(move || test(&windows)),
        }
    }
    let mut checks = vec![check(windows, "readyz", |_| Ok(()))];
    checks.extend(startup::STEPS.map(|step| check(windows, step, move |windows| windows.waits.check(step))));
    // A standby is ready, too: it watches nothing before it leads. Whoever cannot see the lease will never lead.
    checks.push(check(windows, "lease", |windows| windows.standing.read().trouble()));
    checks.push(check(windows, "manager", |windows| {
        match windows.index.read().as_ref() {
            Some(index) if !index.view().synced => Err("the first lists have not arrived".to_owned()),
            _ => Ok(()),
        }
    }));
    if with_webhooks {
        let test = |windows: &Windows| match windows.webhooks.get().is_some_and(|webhooks| webhooks.is_ready()) {
            true => Ok(()),
            false => Err("there is no certificate yet".to_owned()),
        };
        checks.push(check(windows, "webhooks", test));
    }
    checks
}
