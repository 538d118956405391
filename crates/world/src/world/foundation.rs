//! How a world comes to be: its server, its cloud, its cluster and its controller, in this order.

use std::sync::{Arc, OnceLock};

use ::api::v1::{NodeClaim, NodePool};
use clock::{Clock, VirtualClock};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use kube_mem::ApiServer;
use model::ProviderId;
use provider_sim::{MachineState, SimCloud, SimProvider, machine::NodeObject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Setup,
    controller::{Controller, Shared},
    observer::Observer,
};
use crate::{
    cluster::{Cluster, Options},
    dice::Dice,
    faults::Weather,
    history::History,
    kubelet::{Hung, Kubelets, Machines},
};

/// Everything of a world but the runtime that it lives in.
pub(super) struct Foundation {
    pub seed: u64,
    pub clock: Arc<dyn Clock>,
    pub client: Client,
    pub server: ApiServer,
    pub cloud: SimCloud,
    pub controller: Controller,
    pub weather: Weather,
    pub hung: Hung,
    pub observer: Observer,
    pub cluster: Cluster,
    pub tasks: JoinSet<()>,
}

impl Foundation {
    pub async fn lay(setup: Setup) -> Self {
        let Setup {
            seed,
            catalog,
            cloud: cloud_faults,
            brain,
            crashes,
            api,
            rate,
            hooks,
            ranking,
        } = setup;
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let server = ApiServer::builder()
            .clock(Arc::clone(&clock))
            .seed(seed)
            .without_managers()
            .build();
        let client = server.client();
        let cloud = SimCloud::new(seed, Arc::clone(&clock)).with_faults(cloud_faults);
        let catalog = Arc::new(catalog);
        let history = History::new(Arc::clone(&clock), server.clone());
        let observer = Observer::new(history.clone(), cloud.clone(), Arc::clone(&catalog), &*clock);
        for object in prelude() {
            create(&client, object)
                .await
                .unwrap_or_else(|error| panic!("{object} was not accepted: {error}"));
        }
        let hung = Hung::default();
        let options = Options {
            machines: Arc::new(Kubelets {
                machines: CloudMachines(cloud.clone()),
                hung: hung.clone(),
            }),
            ranking,
            tap: Some(history.tap()),
        };
        let mut cluster = Cluster::start(client.clone(), Arc::clone(&clock), seed, options);
        cluster.follow::<NodePool>();
        cluster.follow::<NodeClaim>();
        cluster.synced().await;

        let weather = Weather::default();
        weather.set(api);
        let classes = Api::all(client.clone());
        let provider = SimProvider::new(cloud.clone(), catalog, Arc::new(classes)).with_hooks(hooks);
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
            window: Default::default(),
            requests: Default::default(),
            rate,
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
            hung,
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
pub(super) async fn create(client: &Client, object: &Value) -> Result<(), kube::Error> {
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
            // A node may be there before its kubelet is.
            machine.node_object == NodeObject::Created
                && matches!(
                    machine.state(self.0.now()),
                    MachineState::Running | MachineState::Terminating
                )
        })
    }
}
