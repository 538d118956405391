//! A cluster whose nodes are instances of an AWS region.

use std::sync::Arc;

use api::{aws::EC2NodeClass, crds::Variant};
use aws_fake::{
    Fake,
    control::Command,
    join,
    region::{
        Plan,
        instances::{Instance, State},
    },
    server::{Served, serve},
};
use clock::{Clock, SystemClock};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::Parts;
use tokio::task::JoinSet;

use crate::{cluster::Cluster, controller::Controller};

/// As the blueprint names it.
pub const CLUSTER: &str = "karpenter-mng";
const REGION: &str = "us-west-2";

pub struct Region {
    /// Goes first, so that its last words are not about a cluster that is gone.
    _controller: Controller,
    pub cluster: Cluster,
    pub fake: Fake,
    _served: Served,
    _tasks: JoinSet<()>,
}

impl Region {
    pub async fn start() -> Self {
        let cluster = Cluster::start_with(Parts::Full, Variant::Aws).await;
        let kubeconfig = cluster.plane.kubeconfig();
        let mut plan = Plan::new(REGION, CLUSTER);
        let client = join::connect(kubeconfig, &mut plan).await.expect("the cluster answers");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let fake = Fake::new(plan, Arc::clone(&clock));
        let mut tasks = join::kubelets(&fake, &client, &clock);
        tasks.spawn(join::run(fake.clone(), client));
        let served = serve(fake.clone(), 0).await.expect("a free port");
        let endpoint = served.endpoint();
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "any"),
            ("CLUSTER_NAME", CLUSTER),
            ("INTERRUPTION_QUEUE", CLUSTER),
        ];
        let mut controller = Controller::for_region(kubeconfig, &environment);
        controller.start();
        Self {
            cluster,
            fake,
            _served: served,
            _tasks: tasks,
            _controller: controller,
        }
    }

    /// An order to the region, as its control page takes them.
    pub fn order(&self, path: &str, body: &Value) -> Value {
        let command = Command::parse(path, body.to_string().as_bytes()).expect("an order");
        let done = self.fake.with(|state, now| command.carry_out(state, now));
        done.expect("it can be carried out")
    }

    /// What a parameter of Systems Manager says.
    pub fn parameter(&self, name: &str) -> String {
        let found = self
            .fake
            .with(|state, _| state.region.images.parameters.get(name).cloned());
        found.unwrap_or_else(|| panic!("there is no parameter {name}"))
    }

    /// The image of Amazon Linux 2023 for an architecture, in its newest release.
    pub fn image(&self, architecture: &str) -> String {
        let version = self.fake.with(|state, _| state.region.plan.version.clone());
        self.parameter(&format!(
            "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/standard/recommended/image_id"
        ))
    }

    /// The instances that are there or coming, oldest first.
    pub fn alive(&self) -> Vec<Instance> {
        let mut alive: Vec<Instance> = self.fake.with(|state, now| {
            let is_alive = |instance: &&Instance| matches!(instance.state(now), State::Pending | State::Running);
            state.region.instances.values().filter(is_alive).cloned().collect()
        });
        alive.sort_by(|one, other| (one.launched, &one.id).cmp(&(other.launched, &other.id)));
        alive
    }

    /// An instance, gone or not.
    pub fn instance(&self, id: &str) -> Instance {
        let found = self.fake.with(|state, _| state.region.instances.get(id).cloned());
        found.expect("the region remembers it")
    }

    /// The role that an instance runs under.
    pub fn role_of(&self, instance: &Instance) -> Option<String> {
        let (arn, _) = instance.profile.as_ref()?;
        self.fake.with(|state, _| {
            let mut profiles = state.region.identity.profiles.values();
            profiles.find(|profile| profile.arn == *arn)?.role.clone()
        })
    }

    pub async fn change_class(&self, spec: &Value) {
        let classes: Api<EC2NodeClass> = Api::all(self.cluster.client.clone());
        let patch = Patch::Merge(json!({ "spec": spec }));
        let changed = classes.patch("default", &PatchParams::default(), &patch).await;
        changed.expect("the class is accepted");
    }

    pub async fn class(&self) -> EC2NodeClass {
        let classes: Api<EC2NodeClass> = Api::all(self.cluster.client.clone());
        classes.get("default").await.expect("the class is there")
    }

    /// The one instance of before is gone, another runs, and all pods with it.
    pub async fn until_replaced(&self, old: &str, pods: usize) -> Instance {
        let what = format!("{old} is replaced");
        let one_other = async || match self.alive().as_slice() {
            [other] if other.id != old => Ok(()),
            alive => Err(format!("{:?}", alive.iter().map(|one| &one.id).collect::<Vec<_>>())),
        };
        self.cluster.eventually(&what, one_other).await;
        self.cluster.until_running(pods).await;
        self.alive().remove(0)
    }
}
