//! One playground from start to end: what runs in it and how it is put together.
//!
//! ```text
//! kubectl ──HTTPS──► API server ◄── kubelets, scheduler, workload controllers (crate world)
//!                        ▲      ◄── nodes that join
//!                        └───────── the production controllers (crate operator) ──► a cloud (cloud.rs)
//! ```

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Context as _;
use clock::{Clock, VirtualClock};
use jiff::Timestamp;
use kube::Client;
use kube_mem::{ApiServer, https::HttpsListener};
use operator::{Broken, Engine, Provided, settings::Settings};
use tempfile::TempDir;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use world::cluster::{Cluster, Options};

use super::{
    cloud::{Ledger, Order, Site},
    faults,
    keep::Keep,
    objects,
    story::Story,
    summary,
    teller::Teller,
};
use crate::{exit::Failure, signals};

/// What a playground is made from.
pub struct Setup {
    pub cloud: Order,
    pub api_faults: bool,
    pub seed: u64,
    pub port: u16,
    pub kubeconfig: Option<PathBuf>,
    pub data: Option<PathBuf>,
}

/// A running playground.
pub struct Session {
    server: ApiServer,
    client: Client,
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn Ledger>,
    endpoint: Option<String>,
    listener: HttpsListener,
    kubeconfig: Kubeconfig,
    keep: Option<Keep>,
    stop: CancellationToken,
    controllers: JoinHandle<Result<(), Broken>>,
    _cluster: Cluster,
    _tasks: JoinSet<()>,
}

impl Session {
    pub async fn start(setup: Setup) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(Timestamp::now()));
        let keep = setup
            .data
            .as_deref()
            .map(Keep::open)
            .transpose()
            .map_err(Failure::Input)?;
        let mut builder = ApiServer::builder().clock(clock.clone()).seed(setup.seed);
        let kept = keep
            .as_ref()
            .map(Keep::load)
            .transpose()
            .map_err(Failure::Input)?
            .flatten();
        let is_new = kept.is_none();
        if let Some(kept) = kept {
            builder = builder.restore(kept);
        }
        let server = builder.build();
        let client = server.client();
        objects::install_crds(&client, setup.cloud.variant())
            .await
            .map_err(Failure::No)?;
        if is_new {
            objects::create_defaults(&client, setup.cloud.defaults())
                .await
                .map_err(Failure::No)?;
        }

        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, setup.port));
        let listener = HttpsListener::bind(server.clone(), address)
            .await
            .context("--port")
            .map_err(Failure::Input)?;
        let kubeconfig = Kubeconfig::write(setup.kubeconfig, &listener.kubeconfig("karpenter-playground"))?;

        let site = Site {
            client: &client,
            clock: &clock,
            seed: setup.seed,
        };
        let cloud = setup.cloud.start(site).await?;
        let Provided {
            cloud: provider,
            duties,
        } = cloud.provided;
        duties.take_over().await;

        let simulated = Options {
            machines: cloud.machines,
            ..Options::default()
        };
        let cluster = Cluster::start(client.clone(), clock.clone(), setup.seed, simulated);
        let mut tasks = cloud.tasks;
        let stop = CancellationToken::new();
        let engine = Engine {
            client: if setup.api_faults {
                faults::rough_line(&server, &clock, setup.seed)
            } else {
                client.clone()
            },
            cloud: provider,
            clock: clock.clone(),
            settings: Arc::new(Settings::default()),
            seed: setup.seed,
        };
        let told = stop.clone();
        let running = engine.start_with(|fleet| duties.join(fleet));
        let controllers = tokio::spawn(async move {
            tokio::select! {
                biased;
                outcome = running.until(&told) => outcome,
                () = duties.beside() => Ok(()),
            }
        });
        if let Some(keep) = &keep {
            tasks.spawn(keep.clone().save_now_and_then(server.clone()));
        }
        Ok(Self {
            server,
            client,
            clock,
            ledger: cloud.ledger,
            endpoint: cloud.endpoint,
            listener,
            kubeconfig,
            keep,
            stop,
            controllers,
            _cluster: cluster,
            _tasks: tasks,
        })
    }

    /// Tells a newcomer what to do next.
    pub fn welcome(&self) {
        let kubeconfig = self.kubeconfig.path.display();
        println!("API server   https://{}", self.listener.address());
        println!("kubeconfig   {kubeconfig}");
        if let Some(endpoint) = &self.endpoint {
            println!("AWS          {endpoint}");
        }
        println!();
        println!("try");
        println!("  kubectl --kubeconfig {kubeconfig} scale deployment inflate --replicas 20");
        println!("  kubectl --kubeconfig {kubeconfig} get nodes,nodeclaims,nodepools");
        println!("  kubectl --kubeconfig {kubeconfig} get events --watch");
        println!();
        println!("end with Ctrl-C");
    }

    /// Plays a story and prints what came of it.
    pub async fn tell(&self, story: &Story) -> anyhow::Result<()> {
        let teller = Teller::new(self.client.clone(), self.clock.clone());
        let waits = teller.tell(story).await?;
        summary::print(&story.name, &waits, &self.ledger.bill());
        Ok(())
    }

    /// Waits until the user has had enough.
    pub async fn until_interrupted(&self) -> Result<(), Failure> {
        let told = signals::stop()
            .context("signals cannot be received")
            .map_err(Failure::No)?;
        told.cancelled().await;
        Ok(())
    }

    /// Ends the controllers in order and keeps the cluster where that was asked for.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        let ended = self
            .controllers
            .await
            .context("the controllers broke down")
            .map_err(Failure::No)?;
        if let Some(keep) = &self.keep {
            keep.save(&self.server).map_err(Failure::No)?;
        }
        ended.context("the controllers failed").map_err(Failure::No)
    }
}

/// The file that leads kubectl here.
struct Kubeconfig {
    path: PathBuf,
    /// Holds the file when the user did not choose a place for it.
    _folder: Option<TempDir>,
}

impl Kubeconfig {
    fn write(chosen: Option<PathBuf>, text: &str) -> Result<Self, Failure> {
        let (path, folder) = match chosen {
            Some(path) => (path, None),
            None => {
                let folder = tempfile::Builder::new().prefix("karpenter-playground.").tempdir();
                let folder = folder.context("no folder for the kubeconfig").map_err(Failure::No)?;
                (folder.path().join("kubeconfig"), Some(folder))
            }
        };
        let written = std::fs::write(&path, text);
        written
            .with_context(|| format!("--kubeconfig-out {}: cannot be written", path.display()))
            .map_err(Failure::Input)?;
        Ok(Self { path, _folder: folder })
    }
}
