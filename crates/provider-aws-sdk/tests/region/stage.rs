//! A cluster in memory whose nodes are instances of a region in memory, and the program between them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::{
    aws::EC2NodeClass,
    crds::Variant,
    v1::{NodeClaim, NodePool},
};
use aws_fake::{
    Fake,
    control::Command,
    iam::{self, Ask},
    join::{self, Instances},
    region::{
        Plan,
        instances::{Instance, State},
    },
    server,
    wire::Call,
};
use clock::{Clock, VirtualClock};
use controllers_aws::assembly::{Ec2, Setup};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Event, Node, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use kube_mem::ApiServer;
use operator::{Engine, settings::Settings};
use parking_lot::Mutex;
use provider_aws::{options::Options, startup::FromKubernetes};
use provider_aws_sdk::{Connection, in_process};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use world::{cluster::Cluster, faults::crash::Gate};

pub const REGION: &str = "us-west-2";
pub const CLUSTER: &str = "demo";

pub struct Stage {
    pub fake: Fake,
    pub client: Client,
    server: ApiServer,
    clock: Arc<dyn Clock>,
    life: Life,
    lives: u64,
    /// The action that never answers; empty for none.
    hanging: Arc<Mutex<String>>,
    needed: Arc<Mutex<BTreeSet<Ask>>>,
    _cluster: Cluster,
    _joining: JoinSet<()>,
}

/// The program from its start to its death.
struct Life {
    gate: Gate,
    task: JoinHandle<()>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.gate.close();
        self.task.abort();
    }
}

pub fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

pub fn class(name: &str) -> Value {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": CLUSTER}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "role": format!("KarpenterNodeRole-{CLUSTER}"), "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    })
}

/// A pool of one type over the class of the same name, so that it does not matter what is cheapest.
pub fn pool(name: &str, instance_types: &[&str]) -> Value {
    let one_of = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            "template": {
                "metadata": {"labels": {"pool": name}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
                    "requirements": [
                        one_of("karpenter.sh/capacity-type", json!(["on-demand"])),
                        one_of("node.kubernetes.io/instance-type", json!(instance_types)),
                    ],
                },
            },
        },
    })
}

impl Stage {
    pub async fn new() -> Self {
        Self::in_a_region(|_| ()).await
    }

    /// In a region that sells few types, so that it is soon known.
    pub async fn among_few(types: &str) -> Self {
        let mut plan = Plan::new(REGION, CLUSTER);
        plan.types = types.to_owned();
        Self::planned(plan, |_| ()).await
    }

    /// A region that has been prepared before the program starts.
    pub async fn in_a_region(prepare: impl FnOnce(&Fake)) -> Self {
        Self::planned(Plan::new(REGION, CLUSTER), prepare).await
    }

    async fn planned(plan: Plan, prepare: impl FnOnce(&Fake)) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let fake = Fake::new(plan, Arc::clone(&clock));
        prepare(&fake);
        let server = ApiServer::builder().clock(Arc::clone(&clock)).seed(7).build();
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in api::crds::all(Variant::Aws) {
            crds.create(&PostParams::default(), &crd).await.expect("a definition");
        }
        let options = world::cluster::Options {
            machines: Arc::new(Instances(fake.clone())),
            ..world::cluster::Options::default()
        };
        let cluster = Cluster::start(client.clone(), Arc::clone(&clock), 7, options);
        let mut joining = JoinSet::new();
        joining.spawn(join::run(fake.clone(), client.clone()));
        let life = Life {
            gate: Gate::default(),
            task: tokio::spawn(std::future::ready(())),
        };
        let mut stage = Self {
            fake,
            client,
            server,
            clock,
            life,
            lives: 0,
            hanging: Arc::default(),
            needed: Arc::default(),
            _cluster: cluster,
            _joining: joining,
        };
        stage.restart();
        stage
    }

    /// A new program, whatever became of the one before.
    pub fn restart(&mut self) {
        self.lives += 1;
        let gate = Gate::default();
        let birth = Birth {
            fake: self.fake.clone(),
            server: self.server.clone(),
            clock: self.clock.clone(),
            gate: gate.clone(),
            seed: self.lives,
            hanging: self.hanging.clone(),
            needed: self.needed.clone(),
        };
        let task = tokio::spawn(program(birth));
        self.life = Life { gate, task };
    }

    pub fn is_dead(&self) -> bool {
        self.life.gate.is_closed()
    }

    /// How many steps outwards and back the living program has taken.
    pub fn steps(&self) -> u64 {
        self.life.gate.steps()
    }

    /// The living program dies at this step.
    pub fn die_at(&self, step: u64) {
        self.life.gate.burn_out_after(step);
    }

    pub fn order(&self, path: &str, body: &Value) -> Value {
        let command = Command::parse(path, body.to_string().as_bytes()).expect("an order");
        let done = self.fake.with(|state, now| command.carry_out(state, now));
        done.expect("it can be carried out")
    }

    /// From now on calls of this action get no answer.
    pub fn hang(&self, action: &str) {
        action.clone_into(&mut self.hanging.lock());
    }

    pub async fn apply(&self, object: Value) {
        match object["kind"].as_str() {
            Some("EC2NodeClass") => self.apply_as::<EC2NodeClass>(&object).await,
            Some("NodePool") => self.apply_as::<NodePool>(&object).await,
            kind => panic!("no test applies {kind:?}"),
        }
    }

    async fn apply_as<K>(&self, object: &Value)
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let name = object["metadata"]["name"].as_str().expect("a name");
        let params = PatchParams::apply("test").force();
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied.expect("it is admitted");
    }

    /// Pods of one cpu and a half for a pool, as a deployment of its name.
    pub async fn scale(&self, pool: &str, replicas: u32) {
        let labels = json!({"app": pool});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": pool},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "nodeSelector": {"pool": pool}, "containers": [{
                    "name": "pause", "image": "pause", "resources": {"requests": {"cpu": "1500m"}},
                }]},
            }},
        });
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let params = PatchParams::apply("test").force();
        let applied = api.patch(pool, &params, &Patch::Apply(&deployment)).await;
        applied.expect("it is admitted");
    }

    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        api.list(&ListParams::default()).await.expect("a list").items
    }

    pub async fn class(&self, name: &str) -> EC2NodeClass {
        Api::all(self.client.clone())
            .get(name)
            .await
            .expect("the class is there")
    }

    /// How many pods of a pool run.
    pub async fn running(&self, pool: &str) -> usize {
        let runs = |pod: &&Pod| {
            let app = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app"));
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            app.is_some_and(|app| app == pool) && phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
        };
        self.list::<Pod>().await.iter().filter(runs).count()
    }

    /// All that the program had to be allowed so far.
    pub fn needed(&self) -> BTreeSet<Ask> {
        self.needed.lock().clone()
    }

    pub async fn delete_class(&self, name: &str) {
        let api: Api<EC2NodeClass> = Api::all(self.client.clone());
        let deleted = api.delete(name, &DeleteParams::default()).await;
        deleted.expect("the class is there");
    }

    pub fn alive(&self) -> Vec<Instance> {
        self.fake.with(|state, now| {
            let is_alive = |instance: &&Instance| matches!(instance.state(now), State::Pending | State::Running);
            state.region.instances.values().filter(is_alive).cloned().collect()
        })
    }

    /// Every instance that there ever was.
    pub fn launched(&self) -> usize {
        self.fake.with(|state, _| state.region.instances.len())
    }

    /// How often an action was called, and how many of these calls were refused for their rate.
    pub fn calls(&self, action: &str) -> (usize, usize) {
        self.fake.with(|state, _| {
            let calls = || state.record.calls().filter(|call| call.action == action);
            let throttled = |error: &str| error == "RequestLimitExceeded";
            let throttled = calls().filter(|call| call.error.as_deref().is_some_and(throttled));
            (calls().count(), throttled.count())
        })
    }

    /// The messages of all events about objects of a kind, or about one of them.
    pub async fn told(&self, kind: &str, name: Option<&str>) -> Vec<String> {
        let about = |event: &Event| {
            let object = &event.involved_object;
            object.kind.as_deref() == Some(kind) && (name.is_none() || object.name.as_deref() == name)
        };
        let events = self.list::<Event>().await.into_iter().filter(about);
        events.filter_map(|event| event.message).collect()
    }

    /// Lets time pass until it holds, a second at a time. A program that dies on the way is started again.
    #[track_caller]
    pub fn until<'a>(
        &'a mut self,
        what: &'a str,
        longest: Duration,
        holds: impl AsyncFn(&Stage) -> Result<(), String> + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let begun = tokio::time::Instant::now();
            loop {
                if self.is_dead() {
                    self.restart();
                }
                let seen = match holds(self).await {
                    Ok(()) => return,
                    Err(seen) => seen,
                };
                assert!(begun.elapsed() < longest, "{place}: not {what}; seen: {seen}");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// So many pods of a pool run.
    #[track_caller]
    pub fn until_running<'a>(
        &'a mut self,
        pool: &'a str,
        count: usize,
        longest: Duration,
    ) -> impl Future<Output = ()> + 'a {
        self.until("running pods", longest, async move |stage: &Stage| {
            let running = stage.running(pool).await;
            if running == count {
                return Ok(());
            }
            let claims: Vec<String> = stage.list::<NodeClaim>().await.iter().map(conditions).collect();
            let told = stage.told("Pod", None).await;
            Err(format!("{running} of {count}; claims {claims:#?}; pods {told:#?}"))
        })
    }

    /// Waits until a class can be used.
    #[track_caller]
    pub fn until_ready<'a>(&'a mut self, class: &'a str, longest: Duration) -> impl Future<Output = ()> + 'a {
        self.until("the class to be ready", longest, async move |stage: &Stage| {
            let class = stage.class(class).await;
            if condition_of(&class, "Ready")["status"] == "True" {
                Ok(())
            } else {
                Err(conditions(&class))
            }
        })
    }

    pub async fn nodes(&self) -> usize {
        self.list::<Node>().await.len()
    }
}

/// One condition of an object, whole.
pub fn condition_of<K: serde::Serialize>(object: &K, type_: &str) -> Value {
    let object = serde_json::to_value(object).expect("an API object is plain data");
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned();
    let found = conditions
        .unwrap_or_default()
        .into_iter()
        .find(|condition| condition["type"] == type_);
    found.unwrap_or_default()
}

/// All conditions of an object, for people.
pub fn conditions<K: serde::Serialize>(object: &K) -> String {
    let object = serde_json::to_value(object).expect("an API object is plain data");
    object
        .pointer("/status/conditions")
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// What a life begins with.
struct Birth {
    fake: Fake,
    server: ApiServer,
    clock: Arc<dyn Clock>,
    gate: Gate,
    /// No two lives may give claims the same names.
    seed: u64,
    hanging: Arc<Mutex<String>>,
    needed: Arc<Mutex<BTreeSet<Ask>>>,
}

/// One life: everything that reaches outside passes the gate.
async fn program(birth: Birth) {
    let Birth {
        fake,
        server,
        clock,
        gate,
        seed,
        hanging,
        needed,
    } = birth;
    let own = (fake, gate.clone(), hanging, needed);
    let connected = in_process(REGION, &Connection::default(), move |request| {
        let (fake, gate, hanging, needed) = own.clone();
        async move {
            let action = action(request.body());
            if !action.is_empty() && *hanging.lock() == action {
                std::future::pending::<()>().await;
            }
            let changes = is_change(&action);
            passed(&gate, changes).await;
            needed.lock().extend(needs(&fake, &request));
            let answer = server::respond(&fake, &request).await;
            passed(&gate, changes).await;
            answer
        }
    });
    let connected = connected.expect("a region and a good version");
    let client = gated(&server, &gate);
    let settings = Settings::default();
    let options = Options {
        interruption_queue: Some(CLUSTER.to_owned()),
        zonal_shift: true,
        ..Options::for_cluster(CLUSTER)
    };
    let setup = Setup {
        aws: connected.aws,
        region: connected.region,
        options: Arc::new(options),
        kubernetes: FromKubernetes {
            version: "1.35".to_owned(),
            dns: None,
            ca_certificate: Some(b"certificate".to_vec()),
        },
        clock: clock.clone(),
        reserved_capacity: settings.feature_gates.reserved_capacity,
        strict_min_values: true,
        node_overlay: false,
    };
    let ec2 = Ec2::assemble(setup).await.expect("the region answers");
    let engine = Engine {
        client: client.clone(),
        cloud: Arc::new(ec2.provider()),
        clock,
        settings: Arc::new(settings),
        seed,
    };
    let running = engine.start_with(|fleet| ec2.join(fleet, Arc::new(client)));
    let stop = CancellationToken::new();
    tokio::select! {
        biased;
        ended = running.until(&stop) => ended.expect("no controller breaks down"),
        () = ec2.beside() => {}
    }
}

/// The action of a call in the query protocol. Queue, parameters and price list name theirs in a header; of those only reads
/// matter to a launch.
fn action(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let action = text.split('&').find_map(|field| field.strip_prefix("Action="));
    action.unwrap_or_default().to_owned()
}

/// What the caller must be allowed for this request.
fn needs(fake: &Fake, request: &http::Request<Vec<u8>>) -> Vec<Ask> {
    let call = Call::parse(request.method(), request.uri(), request.headers(), request.body());
    let call = call.expect("the SDK makes calls that the region knows");
    fake.with(|state, _| iam::needs(&state.region, &call))
}

fn is_change(action: &str) -> bool {
    let reads = ["Describe", "Get", "List"];
    !action.is_empty() && !reads.iter().any(|read| action.starts_with(read))
}

async fn passed(gate: &Gate, changes: bool) {
    if changes {
        gate.pass().await;
    } else if gate.is_closed() {
        std::future::pending::<()>().await;
    }
}

/// A client for one life: dying before and after each write covers dying anywhere between them.
fn gated(server: &ApiServer, gate: &Gate) -> Client {
    let (server, gate) = (server.clone(), gate.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (server, gate) = (server.clone(), gate.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let writes = parts.method != http::Method::GET;
            passed(&gate, writes).await;
            let response = server.handle(http::Request::from_parts(parts, body));
            passed(&gate, writes).await;
            Ok::<_, BoxError>(response)
        }
    });
    Client::new(service, "default")
}
