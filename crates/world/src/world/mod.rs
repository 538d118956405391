//! A world: an API server in memory, a simulated cloud, a simulated cluster and the production controllers, on virtual
//! time and from one seed.
//!
//! ```text
//!                 ┌───────────── checkers, timeline ◄── history ──┐
//!   controller ─► faults ─► API server (memory) ◄── kubelets, scheduler, workload controllers
//!        └──────► faults ─► cloud (simulated) ───► nodes join and leave
//! ```
//!
//! Time is tokio's paused time: it moves to the next timer when nobody has anything to do. Everything runs on one
//! thread, so that one seed is one history.

mod controller;
mod observer;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ::api::v1::{NodeClaim, NodePool};
use clock::{Clock, VirtualClock};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, TypeMeta},
    core::GroupVersionKind,
};
use kube_mem::ApiServer;
use model::ProviderId;
use operator::settings::Settings;
use provider_sim::{Catalog, Faults as CloudFaults, Latency, MachineState, SimCloud, SimProvider};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

pub use self::controller::{Brain, Controller, CrashPlan, Parts, karpenter, karpenter_with};
use self::{controller::Shared, observer::Observer};
use crate::{
    checkers::Violation,
    cluster::{Cluster, Options},
    dice::Dice,
    faults::{ApiFaults, Weather},
    history::History,
    kubelet::Machines,
    mirror::Mirror,
    story::{Condition, Created, Expectation, Fault, Reach},
};

/// How many lines of the timeline a failure shows.
const TAIL: usize = 80;
/// Events of one moment are read once the clock has moved on by this.
const SETTLE: Duration = Duration::from_millis(1);

/// What a world is made of.
pub struct Setup {
    pub seed: u64,
    /// What the cloud sells.
    pub catalog: Catalog,
    pub cloud: CloudFaults,
    pub brain: Brain,
    pub crashes: CrashPlan,
    pub api: ApiFaults,
}

impl Setup {
    pub fn seeded(seed: u64, brain: Brain) -> Self {
        Self {
            seed,
            catalog: Catalog::generic(),
            cloud: fair_weather(),
            brain,
            crashes: CrashPlan::default(),
            api: ApiFaults::default(),
        }
    }
}

/// A cloud that fails nobody and takes its time, as clouds do.
pub fn fair_weather() -> CloudFaults {
    let seconds = |least, most| Latency::between(SignedDuration::from_secs(least), SignedDuration::from_secs(most));
    CloudFaults {
        launch_latency: seconds(8, 20),
        termination_latency: seconds(2, 6),
        ..CloudFaults::default()
    }
}

/// See the module's head.
pub struct World {
    seed: u64,
    clock: Arc<dyn Clock>,
    client: Client,
    server: ApiServer,
    cloud: SimCloud,
    controller: Controller,
    weather: Weather,
    observer: Observer,
    _cluster: Cluster,
    _tasks: JoinSet<()>,
    runtime: Runtime,
}

/// Why a world is not as it should be. Says how to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub what: String,
    pub tail: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        write!(f, "the end of the timeline:\n{}", self.tail)
    }
}

impl std::error::Error for Failure {}

impl World {
    /// A world with the production controllers in which nothing goes wrong.
    pub fn seeded(seed: u64) -> Self {
        Self::new(Setup::seeded(seed, karpenter()))
    }

    /// As [`World::seeded`], with feature gates in the form of the setting: `StaticCapacity=true`.
    ///
    /// # Panics
    ///
    /// When the gates are not of that form.
    pub fn gated(seed: u64, gates: &str) -> Self {
        let settings = Settings {
            feature_gates: gates.parse().expect("gates are written Name=true"),
            ..Settings::default()
        };
        Self::new(Setup::seeded(seed, karpenter_with(settings)))
    }

    pub fn new(setup: Setup) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O can always be built");
        let world = runtime.block_on(async { Foundation::lay(setup).await });
        let Foundation {
            seed,
            clock,
            client,
            server,
            cloud,
            controller,
            weather,
            observer,
            cluster,
            tasks,
        } = world;
        Self {
            seed,
            clock,
            client,
            server,
            cloud,
            controller,
            weather,
            observer,
            _cluster: cluster,
            _tasks: tasks,
            runtime,
        }
    }

    /// Puts a pool into the world.
    #[track_caller]
    pub fn pool(mut self, pool: impl Created) -> Self {
        self.create(pool);
        self
    }

    /// Puts a workload into the world.
    #[track_caller]
    pub fn workload(mut self, workload: impl Created) -> Self {
        self.create(workload);
        self
    }

    #[track_caller]
    pub fn create(&mut self, created: impl Created) {
        for object in created.objects() {
            let outcome = self.runtime.block_on(create(&self.client, &object));
            outcome.unwrap_or_else(|error| panic!("{object} was not accepted: {error}"));
        }
    }

    /// Sets the size of a deployment or stateful set.
    #[track_caller]
    pub fn scale(&mut self, kind: &str, name: &str, replicas: u32) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "default", &kind);
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let outcome = self.runtime.block_on(api.patch(name, &PatchParams::default(), &patch));
        outcome.unwrap_or_else(|error| panic!("{name} could not be scaled: {error}"));
    }

    /// Sets the size of a static pool through its scale subresource, as an autoscaler would.
    #[track_caller]
    pub fn scale_pool(&mut self, name: &str, replicas: u32) {
        let api: Api<NodePool> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let outcome = self
            .runtime
            .block_on(api.patch_scale(name, &PatchParams::default(), &patch));
        outcome.unwrap_or_else(|error| panic!("pool {name} could not be scaled: {error}"));
    }

    /// An object of the API, read from the server: `None` when there is none.
    #[track_caller]
    pub fn object(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let api = self.dynamic(api_version, kind);
        let found = self.runtime.block_on(api.get_opt(name));
        let found = found.unwrap_or_else(|error| panic!("{kind} {name} could not be read: {error}"));
        found.map(|object| serde_json::to_value(object).expect("objects are plain data"))
    }

    /// Asks for the end of an object, as a user would.
    #[track_caller]
    pub fn delete(&mut self, api_version: &str, kind: &str, name: &str) {
        let api = self.dynamic(api_version, kind);
        let outcome = self.runtime.block_on(api.delete(name, &DeleteParams::default()));
        outcome.unwrap_or_else(|error| panic!("{kind} {name} could not be deleted: {error}"));
    }

    /// Changes an object by a merge patch, as a user would.
    #[track_caller]
    pub fn patch(&mut self, api_version: &str, kind: &str, name: &str, patch: Value) {
        let api = self.dynamic(api_version, kind);
        let params = PatchParams::default();
        let outcome = self.runtime.block_on(api.patch(name, &params, &Patch::Merge(patch)));
        outcome.unwrap_or_else(|error| panic!("{kind} {name} could not be changed: {error}"));
    }

    /// Objects of one kind, those of namespaced kinds in the default namespace.
    fn dynamic(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let types = TypeMeta {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let gvk = GroupVersionKind::try_from(types).expect("a group and a version");
        let resource = ApiResource::from_gvk(&gvk);
        if matches!(kind, "NodePool" | "NodeClaim" | "NodeOverlay" | "Node") {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), "default", &resource)
        }
    }

    /// Changes a pool by a merge patch, as a user would.
    #[track_caller]
    pub fn patch_pool(&mut self, name: &str, patch: Value) {
        let api: Api<NodePool> = Api::all(self.client.clone());
        let outcome = self
            .runtime
            .block_on(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)));
        outcome.unwrap_or_else(|error| panic!("pool {name} could not be changed: {error}"));
    }

    /// Runs until the condition holds.
    ///
    /// # Panics
    ///
    /// When it does not hold within the limit, or when a rule is broken on the way.
    #[track_caller]
    pub fn run_until(&mut self, condition: Condition, limit: Duration) {
        if let Err(failure) = self.try_run_until(&condition, limit) {
            panic!("{failure}");
        }
    }

    /// # Panics
    ///
    /// When a rule is broken on the way.
    #[track_caller]
    pub fn run_for(&mut self, time: Duration) {
        if let Err(failure) = self.try_run_for(time) {
            panic!("{failure}");
        }
    }

    pub fn try_run_until(&mut self, condition: &Condition, limit: Duration) -> Result<(), Failure> {
        let reached = self.run(limit, |observer, now| condition.check(&observer.moment(now)).is_ok());
        self.verdict()?;
        if reached {
            Ok(())
        } else {
            // Outside the runtime the clock would tell the machine's time.
            let _inside = self.runtime.enter();
            let missing = condition
                .check(&self.observer.moment(self.now()))
                .err()
                .unwrap_or_default();
            Err(self.failure(format!("not within {limit:?}: {}: {missing}", condition.what)))
        }
    }

    pub fn try_run_for(&mut self, time: Duration) -> Result<(), Failure> {
        self.run(time, |_, _| false);
        self.verdict()
    }

    /// Looks at every rule that must hold at rest.
    pub fn try_rest(&mut self) -> Result<(), Failure> {
        let _inside = self.runtime.enter();
        self.observer.rest(self.clock.now());
        self.verdict()
    }

    /// Runs until the question is answered with yes, a rule is broken, or the time is over. Says whether it was a yes.
    fn run(&mut self, limit: Duration, stop: impl Fn(&Observer, Timestamp) -> bool) -> bool {
        let (observer, clock) = (&mut self.observer, &self.clock);
        self.runtime.block_on(async {
            let deadline = Instant::now() + limit;
            loop {
                observer.catch_up(clock.now());
                if !observer.jury.violations.is_empty() {
                    return false;
                }
                if stop(observer, clock.now()) {
                    return true;
                }
                if Instant::now() >= deadline {
                    return false;
                }
                tokio::select! {
                    biased;
                    () = observer.history.news() => sleep(SETTLE).await,
                    () = sleep_until(deadline) => {}
                }
            }
        })
    }

    fn verdict(&self) -> Result<(), Failure> {
        match self.observer.jury.violations.first() {
            None => Ok(()),
            Some(Violation { checker, what, .. }) => Err(self.failure(format!("rule {checker:?} is broken: {what}"))),
        }
    }

    fn failure(&self, what: String) -> Failure {
        Failure {
            seed: self.seed,
            what,
            tail: self.observer.timeline.tail(TAIL),
        }
    }

    pub fn inject(&mut self, fault: impl Fault) {
        let _inside = self.runtime.enter();
        let history = &self.observer.history;
        fault.strike(&Reach {
            cloud: &self.cloud,
            controller: &self.controller,
            history,
        });
        self.observer.record.begin_anew();
    }

    /// From here on nothing goes wrong any more.
    pub fn calm(&mut self) {
        let _inside = self.runtime.enter();
        self.weather.calm();
        self.controller.plan(CrashPlan::default());
        self.cloud.change_faults(|faults| *faults = fair_weather());
        self.observer.history.note("world", "faults stop");
    }

    #[track_caller]
    pub fn expect(&self, expectation: impl Into<Expectation>) {
        let _inside = self.runtime.enter();
        let moment = self.observer.moment(self.clock.now());
        if let Err(what) = expectation.into().check(&moment, &self.observer.record) {
            panic!("{}", self.failure(format!("expected: {what}")));
        }
    }

    pub fn timeline(&self) -> String {
        self.observer.timeline.to_string()
    }

    /// The cluster as it was when it was looked at last.
    pub fn scene(&self) -> &Mirror {
        &self.observer.scene
    }

    pub fn cloud(&self) -> &SimCloud {
        &self.cloud
    }

    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The messages of all events with this reason, in the order of their names.
    pub fn events(&self, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::all(self.client.clone());
        let events = self.runtime.block_on(api.list(&ListParams::default()));
        let events = events.unwrap_or_else(|error| panic!("events could not be listed: {error}"));
        let told = events
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason));
        told.filter_map(|event| event.message).collect()
    }

    pub fn now(&self) -> Timestamp {
        let _inside = self.runtime.enter();
        self.clock.now()
    }
}

struct Foundation {
    seed: u64,
    clock: Arc<dyn Clock>,
    client: Client,
    server: ApiServer,
    cloud: SimCloud,
    controller: Controller,
    weather: Weather,
    observer: Observer,
    cluster: Cluster,
    tasks: JoinSet<()>,
}

impl Foundation {
    async fn lay(setup: Setup) -> Self {
        let Setup {
            seed,
            catalog,
            cloud: cloud_faults,
            brain,
            crashes,
            api,
        } = setup;
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let server = ApiServer::builder()
            .clock(Arc::clone(&clock))
            .seed(seed)
            .without_managers()
            .build();
        let client = server.client();
        let cloud = SimCloud::new(seed, Arc::clone(&clock)).with_faults(cloud_faults);
        let history = History::new(Arc::clone(&clock), server.clone());
        let observer = Observer::new(history.clone(), cloud.clone(), &*clock);
        for object in prelude() {
            create(&client, object)
                .await
                .unwrap_or_else(|error| panic!("{object} was not accepted: {error}"));
        }
        let options = Options {
            machines: Arc::new(CloudMachines(cloud.clone())),
            tap: Some(history.tap()),
        };
        let mut cluster = Cluster::start(client.clone(), Arc::clone(&clock), seed, options);
        cluster.follow::<NodePool>();
        cluster.follow::<NodeClaim>();
        cluster.synced().await;

        let weather = Weather::default();
        weather.set(api);
        let classes = Api::all(client.clone());
        let provider = SimProvider::new(cloud.clone(), Arc::new(catalog), Arc::new(classes));
        let controller = Controller::new(Shared {
            brain,
            server: server.clone(),
            cloud: Arc::new(provider),
            clock: Arc::clone(&clock),
            weather: weather.clone(),
            history,
            dice: Dice::seeded(seed).of("controller"),
            gate: Default::default(),
            plan: Default::default(),
        });
        controller.plan(crashes);
        let mut tasks = JoinSet::new();
        tasks.spawn(provider_sim::join::run(cloud.clone(), client.clone()));
        tasks.spawn(Controller::run(controller.shared()));
        Self {
            seed,
            clock,
            client,
            server,
            cloud,
            controller,
            weather,
            observer,
            cluster,
            tasks,
        }
    }
}

/// What is there before anything else: the custom resources and the default node class. Put together once, because a
/// storm of worlds would spend much of its time on it.
fn prelude() -> &'static [Value] {
    static PRELUDE: OnceLock<Vec<Value>> = OnceLock::new();
    PRELUDE.get_or_init(|| {
        let crds = ::api::crds::all(::api::crds::Variant::Kwok);
        let crds = crds
            .into_iter()
            .map(|crd| serde_json::to_value(crd).expect("definitions are plain data"));
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "default" },
        });
        crds.chain([class]).collect()
    })
}

/// Creates an object of any kind.
async fn create(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let types = object.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(types).expect("objects of a story name their kind");
    let kind = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    api.create(&PostParams::default(), &object).await.map(|_| ())
}

/// Kubelets run where the cloud has a machine that runs.
pub struct CloudMachines(pub SimCloud);

impl Machines for CloudMachines {
    fn is_running(&self, node: &Node) -> bool {
        let id = node
            .spec
            .as_ref()
            .and_then(|spec| spec.provider_id.as_deref())
            .unwrap_or_default();
        let machine = self.0.machine(&ProviderId::from(id));
        machine.is_some_and(|machine| {
            matches!(
                machine.state(self.0.now()),
                MachineState::Running | MachineState::Terminating
            )
        })
    }
}
