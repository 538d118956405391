//! The program below the command line.
//!
//! ```text
//!  listeners ─► (lease won) ─► feeds ─► index synced ─► controllers … until stopped, or the lease is lost
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::v1::{NodeClaim, NodePool};
use clock::Clock;
use controllers::{Ctx, Knobs, fleet, metrics::Metrics, outbox::Outbox, writer::Writer};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Namespace, Node, PersistentVolumeClaim, Pod},
    policy::v1::PodDisruptionBudget,
    storage::v1::VolumeAttachment,
};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use provider::CloudProvider;
use state::{Feed, FeedPace, Index, Indexed, Served};
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    endpoints::{self, Check, PortTaken},
    lease::{Election, LeaseError},
    process::Process,
    settings::Settings,
};

/// How long giving the lease back may take. After that it expires by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the server is asked for our kinds until it has them.
const CRD_POLL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error("this process no longer leads")]
    LeaseLost(#[source] LeaseError),
    #[error("task {name} ended although it should not")]
    TaskEnded { name: &'static str },
    #[error("a task broke down")]
    TaskFailed(#[source] JoinError),
}

/// Where probes and scrapers are answered.
pub struct Listeners {
    health: TcpListener,
    metrics: TcpListener,
}

impl Listeners {
    pub async fn bind(settings: &Settings) -> Result<Self, PortTaken> {
        Ok(Self {
            health: endpoints::bind_health(settings.bind_address, settings.health_probe_port).await?,
            metrics: endpoints::bind_metrics(settings.bind_address, settings.metrics_port).await?,
        })
    }
}

/// The controllers, and all they run on.
pub struct Operator {
    pub client: Client,
    pub provider: Arc<dyn CloudProvider>,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    /// Where names of claims and this process's identity come from. Two processes on one cluster need two seeds.
    pub seed: u64,
}

impl Operator {
    /// Runs without a socket until it is stopped.
    ///
    /// Dropping the future is a crash: everything under way is gone, nothing is given back. Whatever moment that
    /// happens at, another run takes over from what the cluster and the cloud say.
    pub async fn run(self, stop: CancellationToken) -> Result<(), OperatorError> {
        self.go(None, stop).await
    }

    /// As [`Operator::run`], answering probes and scrapers.
    pub async fn serve(self, listeners: Listeners, stop: CancellationToken) -> Result<(), OperatorError> {
        self.go(Some(listeners), stop).await
    }

    async fn go(self, listeners: Option<Listeners>, stop: CancellationToken) -> Result<(), OperatorError> {
        let classes = self.provider.node_classes().iter();
        let served = Served::new(classes.map(|class| (class.group.to_owned(), class.kind.to_owned())));
        let index = Arc::new(Index::new(self.provider.vocabulary(), served));
        let metrics = Arc::new(Metrics::default());
        let mut tasks = Tasks::default();
        if let Some(listeners) = listeners {
            self.answer(&mut tasks, listeners, &index, &metrics);
        }
        // A standby that is to take over quickly watches from the beginning.
        if self.settings.warm_up {
            self.feed(&mut tasks, &index);
        }
        let mut election = self.settings.leader_election.then(|| self.election());
        if let Some(election) = &mut election {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                failure = tasks.next_end() => return Err(failure),
                () = election.win() => {}
            }
        }
        if !self.settings.warm_up {
            self.feed(&mut tasks, &index);
        }
        self.control(&mut tasks, &index, &metrics);

        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            lost = hold(election.as_mut()) => Err(OperatorError::LeaseLost(lost)),
            failure = tasks.next_end() => Err(failure),
        };
        // Nothing may act any more when the lease is given to somebody else.
        tasks.shutdown().await;
        if let (Ok(()), Some(election)) = (&outcome, &mut election) {
            let _ = timeout(RELEASE_TIMEOUT, election.release()).await;
        }
        outcome
    }

    fn election(&self) -> Election {
        let settings = &self.settings;
        let namespace = Some(settings.leader_election_namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| self.client.default_namespace()).to_owned();
        let identity = format!("{}_{:016x}", settings.host_name, self.seed);
        Election::new(
            self.client.clone(),
            &namespace,
            &settings.leader_election_name,
            identity,
            self.clock.clone(),
        )
    }

    fn feed(&self, tasks: &mut Tasks, index: &Arc<Index>) {
        self.feed_kind::<NodePool>(tasks, index, "nodepools");
        self.feed_kind::<NodeClaim>(tasks, index, "nodeclaims");
        self.feed_kind::<Node>(tasks, index, "nodes");
        self.feed_kind::<Pod>(tasks, index, "pods");
        self.feed_kind::<DaemonSet>(tasks, index, "daemonsets");
        self.feed_kind::<PodDisruptionBudget>(tasks, index, "poddisruptionbudgets");
        self.feed_kind::<Namespace>(tasks, index, "namespaces");
        self.feed_kind::<VolumeAttachment>(tasks, index, "volumeattachments");
        self.feed_kind::<PersistentVolumeClaim>(tasks, index, "persistentvolumeclaims");
        for class in self.provider.node_classes() {
            let resource = ApiResource {
                group: class.group.to_owned(),
                version: class.version.to_owned(),
                api_version: format!("{}/{}", class.group, class.version),
                kind: class.kind.to_owned(),
                plural: class.plural.to_owned(),
            };
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let feed = Feed::new(api, resource, index.clone(), FeedPace::default());
            tasks.spawn(class.plural, feed.run());
        }
    }

    fn feed_kind<K: Indexed<DynamicType = ()>>(&self, tasks: &mut Tasks, index: &Arc<Index>, name: &'static str) {
        let feed = Feed::<K>::new(Api::all(self.client.clone()), (), index.clone(), FeedPace::default());
        tasks.spawn(name, feed.run());
    }

    fn control(&self, tasks: &mut Tasks, index: &Arc<Index>, metrics: &Arc<Metrics>) {
        let writer = Writer::new(self.client.clone(), index.clone());
        let (outbox, postman) = Outbox::new(writer.clone(), self.clock.clone());
        let ctx = Ctx {
            index: index.clone(),
            writer,
            cloud: self.provider.clone(),
            clock: self.clock.clone(),
            outbox,
            metrics: metrics.clone(),
            knobs: Arc::new(self.knobs()),
            health: Arc::default(),
            random: Ctx::seeded(self.seed),
        };
        tasks.spawn("events", postman.run());
        for task in fleet::all(&ctx) {
            tasks.spawn(task.name, task.run);
        }
    }

    fn knobs(&self) -> Knobs {
        let settings = &self.settings;
        Knobs {
            batch_idle: settings.batch_idle,
            batch_max: settings.batch_max,
            solver: scheduler::Options {
                preference_policy: settings.preference_policy,
                min_values_policy: settings.min_values_policy,
                ..scheduler::Options::default()
            },
            observe_cluster: settings.observe_cluster_state,
            ..Knobs::default()
        }
    }

    fn answer(&self, tasks: &mut Tasks, listeners: Listeners, index: &Arc<Index>, metrics: &Arc<Metrics>) {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        registry.register_collector(Box::new(Process::starting_at(self.clock.now())));
        let render = move || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("writing to a string succeeds");
            text
        };
        tasks.spawn(
            "metrics endpoint",
            answered(endpoints::serve_metrics(listeners.metrics, Arc::new(render))),
        );

        let crds = Arc::new(AtomicBool::new(false));
        tasks.spawn("crds", watch_for_crds(self.client.clone(), crds.clone()));
        let index = index.clone();
        let checks = vec![
            check("manager", move || index.view().synced, "the index is not synced yet"),
            check(
                "crd",
                move || crds.load(Ordering::Relaxed),
                "the server does not know NodePool and NodeClaim at v1",
            ),
            check("readyz", || true, ""),
        ];
        tasks.spawn(
            "health endpoint",
            answered(endpoints::serve_health(listeners.health, checks)),
        );
    }
}

fn check(name: &'static str, holds: impl Fn() -> bool + Send + Sync + 'static, missing: &'static str) -> Check {
    let test = move || if holds() { Ok(()) } else { Err(missing.to_owned()) };
    Check {
        name,
        test: Box::new(test),
    }
}

async fn answered(server: impl Future<Output = std::io::Result<()>>) {
    if let Err(cause) = server.await {
        tracing::error!(error = %cause, "endpoint failed");
    }
}

/// Kinds do not go away again; once seen is enough.
async fn watch_for_crds(client: Client, found: Arc<AtomicBool>) {
    loop {
        let known = client
            .list_api_group_resources("karpenter.sh/v1")
            .await
            .is_ok_and(|list| {
                ["nodepools", "nodeclaims"]
                    .iter()
                    .all(|name| list.resources.iter().any(|resource| resource.name == *name))
            });
        if known {
            found.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        sleep(CRD_POLL).await;
    }
}

async fn hold(election: Option<&mut Election>) -> LeaseError {
    match election {
        Some(election) => election.hold().await,
        None => std::future::pending().await,
    }
}

/// Everything that runs beside the one who started it, and ends with them.
#[derive(Default)]
struct Tasks(JoinSet<&'static str>);

impl Tasks {
    fn spawn(&mut self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(async move {
            run.await;
            name
        });
    }

    /// No task ends by itself; the first that does takes the program with it.
    async fn next_end(&mut self) -> OperatorError {
        match self.0.join_next().await {
            Some(Ok(name)) => OperatorError::TaskEnded { name },
            Some(Err(cause)) => OperatorError::TaskFailed(cause),
            None => std::future::pending().await,
        }
    }

    async fn shutdown(&mut self) {
        self.0.shutdown().await;
    }
}
