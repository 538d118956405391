//! The simulated parts of a cluster, started together.
//!
//! ```no_run
//! # async fn example(client: kube::Client) {
//! use std::sync::Arc;
//! use world::cluster::{Cluster, Options};
//!
//! let cluster = Cluster::start(client, Arc::new(clock::SystemClock), 7, Options::default());
//! cluster.synced().await;
//! // Kubelets, scheduler and workload controllers now work until `cluster` is dropped.
//! # }
//! ```

use std::{sync::Arc, time::Duration};

use clock::Clock;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::Job,
    core::v1::{Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::Client;
use tokio::task::JoinSet;

use crate::{
    binder::{Binder, Ranking},
    component::{self, Component, Ctx},
    dice::Dice,
    kubelet::{AlwaysRunning, Machines, collector::Collector, lifecycle::Lifecycle, pods::Pods, readiness::Readiness},
    mirror::{Listener, Mirror, Mirrored, Tap, informer},
    workloads::{
        budget::Budgets, daemon_set::DaemonSets, deployment::Deployments, job::Jobs, replica_set::ReplicaSets,
        stateful_set::StatefulSets, taint_eviction::TaintEviction,
    },
};

/// What of a cluster is simulated. Everything is, unless said otherwise.
pub struct Options {
    /// Tells the kubelets which machines run.
    pub machines: Arc<dyn Machines>,
    /// How the scheduler chooses among nodes.
    pub ranking: Ranking,
    /// Given everything that the server tells the informers.
    pub tap: Option<Tap>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            machines: Arc::new(AlwaysRunning),
            ranking: Ranking::default(),
            tap: None,
        }
    }
}

/// Running components. They stop when this is dropped.
pub struct Cluster {
    pub mirror: Arc<Mirror>,
    tasks: JoinSet<()>,
    client: Client,
}

impl Cluster {
    /// Starts kubelets, scheduler and workload controllers. Needs a tokio runtime around it.
    pub fn start(client: Client, clock: Arc<dyn Clock>, seed: u64, options: Options) -> Self {
        let dice = Dice::seeded(seed).of("cluster");
        let mut crew = Crew {
            listeners: Vec::new(),
            starters: Vec::new(),
        };
        crew.add(Deployments);
        crew.add(ReplicaSets);
        crew.add(StatefulSets);
        crew.add(DaemonSets);
        crew.add(Jobs);
        crew.add(Budgets);
        crew.add(TaintEviction::default());
        crew.add(Binder::new(options.ranking));
        crew.add(Lifecycle);
        crew.add(Readiness::new(Arc::clone(&options.machines)));
        crew.add(Pods::new(options.machines));
        crew.add(Collector::default());

        let mirror = Arc::new(Mirror::new(crew.listeners, options.tap));
        let mut tasks = JoinSet::new();
        for start in crew.starters {
            let ctx = Ctx {
                client: client.clone(),
                mirror: Arc::clone(&mirror),
                clock: Arc::clone(&clock),
                dice,
            };
            start(ctx, &mut tasks);
        }
        let mut cluster = Self { mirror, tasks, client };
        cluster.follow::<Namespace>();
        cluster.follow::<Node>();
        cluster.follow::<Pod>();
        cluster.follow::<Deployment>();
        cluster.follow::<ReplicaSet>();
        cluster.follow::<StatefulSet>();
        cluster.follow::<DaemonSet>();
        cluster.follow::<Job>();
        cluster.follow::<PodDisruptionBudget>();
        cluster
    }

    /// Lets the mirror have another kind. The components do not need it, but observers may.
    pub fn follow<K: Mirrored>(&mut self) {
        self.tasks
            .spawn(informer::run::<K>(self.client.clone(), Arc::clone(&self.mirror)));
    }

    /// Waits until every kind that the components need has been listed once.
    pub async fn synced(&self) {
        let mirror = &self.mirror;
        while !(mirror.nodes.is_synced()
            && mirror.pods.is_synced()
            && mirror.namespaces.is_synced()
            && mirror.deployments.is_synced()
            && mirror.replica_sets.is_synced()
            && mirror.stateful_sets.is_synced()
            && mirror.daemon_sets.is_synced()
            && mirror.jobs.is_synced()
            && mirror.budgets.is_synced())
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

type Starter = Box<dyn FnOnce(Ctx, &mut JoinSet<()>)>;

/// Components that are about to be started. Their listeners have to exist before the mirror, their tasks come after it.
struct Crew {
    listeners: Vec<Listener>,
    starters: Vec<Starter>,
}

impl Crew {
    fn add<C: Component>(&mut self, component: C) {
        let (queue, listener) = component::listener::<C>();
        self.listeners.push(listener);
        self.starters.push(Box::new(move |ctx, tasks| {
            tasks.spawn(component::run(component, ctx, queue));
        }));
    }
}
