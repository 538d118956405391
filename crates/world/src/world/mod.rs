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
mod foundation;
mod observer;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use ::api::v1::NodePool;
use bytes::Bytes;
use clock::Clock;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, TypeMeta},
    core::GroupVersionKind,
};
use kube_mem::ApiServer;
use operator::{settings::Settings, throttle::Rate};
use provider::RegistrationHook;
use provider_sim::{Catalog, Faults as CloudFaults, Latency, Market, SimCloud};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

pub use self::controller::{Brain, Controller, CrashPlan, Parts, Window, karpenter, karpenter_with};
pub use self::foundation::CloudMachines;
use self::{
    foundation::{Foundation, create},
    observer::Observer,
};
use crate::{
    binder::Ranking,
    checkers::Violation,
    cluster::Cluster,
    faults::{ApiFaults, Weather},
    kubelet::Hung,
    mirror::Mirror,
    story::{Condition, Created, Expectation, Fault, Reach},
    tally::Tally,
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
    /// How fast the controller may ask the API server; as fast as it likes without.
    pub rate: Option<Rate>,
    /// What the cloud does to a node before it is registered.
    pub hooks: Vec<Arc<dyn RegistrationHook>>,
    /// How the cluster's scheduler chooses among nodes.
    pub ranking: Ranking,
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
            rate: None,
            hooks: Vec::new(),
            ranking: Ranking::default(),
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
    hung: Hung,
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
            hung,
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
            hung,
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
        const CLUSTER_WIDE: [&str; 8] = [
            "NodePool",
            "NodeClaim",
            "NodeOverlay",
            "Node",
            "KWOKNodeClass",
            "Provisioner",
            "AWSNodeTemplate",
            "Machine",
        ];
        if CLUSTER_WIDE.contains(&kind) {
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

    /// Sends a request as a user would; patches are merge patches. Says with which code it was answered.
    #[track_caller]
    pub fn send(&mut self, method: Method, path: &str, body: &Value) -> u16 {
        let _inside = self.runtime.enter();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/merge-patch+json")
            .body(Bytes::from(body));
        let answer = self.server.handle(request.expect("the path is a path"));
        answer.status().as_u16()
    }

    /// Deletes what is at a path, as a user would.
    #[track_caller]
    pub fn delete_at(&mut self, path: &str) {
        let code = self.send(Method::DELETE, path, &Value::Null);
        assert!((200..300).contains(&code), "{path} could not be deleted: {code}");
    }

    /// Changes what is at a path by a merge patch, as a user would.
    #[track_caller]
    pub fn patch_at(&mut self, path: &str, patch: &Value) {
        let code = self.send(Method::PATCH, path, patch);
        assert!((200..300).contains(&code), "{path} could not be changed: {code}");
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

    /// A finding of one's own, told as broken rules are.
    pub fn failure(&self, what: String) -> Failure {
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
            weather: &self.weather,
            hung: &self.hung,
            history,
        });
        self.observer.record.begin_anew();
    }

    /// From here on the cloud does what it is asked; other trouble goes on.
    pub fn calm_cloud(&mut self) {
        let _inside = self.runtime.enter();
        self.cloud.change_faults(|faults| *faults = fair_weather());
        self.observer.history.note("world", "the cloud behaves");
    }

    /// From here on nothing goes wrong any more, and prices stay as they are.
    pub fn calm(&mut self) {
        let _inside = self.runtime.enter();
        self.weather.calm();
        self.controller.plan(CrashPlan::default());
        let now = self.clock.now();
        self.cloud.change_faults(|faults| {
            let market = faults.market.map(|market| Market {
                until: Some(now),
                ..market
            });
            *faults = CloudFaults {
                market,
                ..fair_weather()
            };
        });
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

    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The sum of a counter over all of its labels that contain the given text.
    pub fn counted(&self, name: &str, labels: &str) -> f64 {
        let _inside = self.runtime.enter();
        let text = self.controller.window().metrics(self.clock.now());
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let of_it = lines.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels));
        of_it
            .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// What the controller has written so far.
    pub fn writes(&self) -> &Tally {
        &self.observer.tally
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
        let told = self.told(reason).into_iter();
        told.filter_map(|event| event.message).collect()
    }

    /// The names of those whom events with this reason are about.
    pub fn told_about(&self, reason: &str) -> BTreeSet<String> {
        self.told_that(reason, "")
    }

    /// The names of those whom events with this reason and this text are about.
    pub fn told_that(&self, reason: &str, text: &str) -> BTreeSet<String> {
        let told = self.told(reason).into_iter();
        let said = told.filter(|event| event.message.as_ref().is_some_and(|message| message.contains(text)));
        said.filter_map(|event| event.involved_object.name).collect()
    }

    fn told(&self, reason: &str) -> Vec<Event> {
        let api: Api<Event> = Api::all(self.client.clone());
        let events = self.runtime.block_on(api.list(&ListParams::default()));
        let events = events.unwrap_or_else(|error| panic!("events could not be listed: {error}"));
        let told = events
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason));
        told.collect()
    }

    pub fn now(&self) -> Timestamp {
        let _inside = self.runtime.enter();
        self.clock.now()
    }
}
