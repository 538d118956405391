//! A cluster whose nodes are instances of a scripted region.

use std::{sync::Arc, time::Duration};

use api::{aws::EC2NodeClass, v1::NodeClaim};
use controllers_aws::Window;
use k8s_openapi::{
    api::core::v1::{Event, Node},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use kube_mem::ApiServer;
use operator::{Engine, Running, settings::Settings};
use provider_aws::{
    AwsProvider, Foundation, Services,
    ports::{ImageInfo, InstanceInfo},
    provider_id,
    testing::{fake::FakeAws, samples},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub struct Cluster {
    pub aws: FakeAws,
    pub services: Arc<Services>,
    pub client: Client,
    /// What the program's metrics page would show of the provider's part.
    _running: Running,
}

pub fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// A region that sells the sample types, with subnets, a security group and an image that the class selects.
fn region() -> FakeAws {
    let aws = FakeAws::new();
    samples::stocked(&aws);
    aws.add_subnet("subnet-a", "us-west-2a", 100, &[("team", "a")]);
    aws.add_subnet("subnet-b", "us-west-2b", 100, &[("team", "a")]);
    aws.add_group("sg-1", "nodes", &[("team", "a")]);
    let image = ImageInfo {
        id: "ami-1".to_owned(),
        name: "image".to_owned(),
        architecture: "x86_64".to_owned(),
        created: "2024-01-01T00:00:00Z".to_owned(),
        deprecated_at: None,
    };
    aws.add_image(image, &[]);
    aws
}

pub fn class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": "node-role", "amiFamily": "AL2023",
            "amiSelectorTerms": [{"id": "ami-1"}],
            "subnetSelectorTerms": [{"tags": {"team": "a"}}],
            "securityGroupSelectorTerms": [{"tags": {"team": "a"}}],
        },
    })
}

pub async fn cluster() -> Cluster {
    cluster_with(|_| ()).await
}

pub async fn cluster_with(change: impl FnOnce(&mut Foundation)) -> Cluster {
    let aws = region();
    let server = ApiServer::builder().clock(aws.clock()).seed(7).build();
    let client = server.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api::crds::all(api::crds::Variant::Aws) {
        crds.create(&PostParams::default(), &crd).await.expect("a definition");
    }
    let mut foundation = samples::foundation(&aws);
    change(&mut foundation);
    let services = Arc::new(Services::new(foundation));
    services.catalog.refresh_types().await.expect("types are listed");
    let window = Arc::new(Window::default());
    let engine = Engine {
        client: client.clone(),
        cloud: Arc::new(AwsProvider::new(services.clone(), window.clone())),
        clock: aws.clock(),
        settings: Arc::new(Settings::default()),
        seed: 7,
    };
    let api_server = Arc::new(client.clone());
    let running = engine.start_with(|fleet| controllers_aws::join(fleet, &services, &window, api_server));
    let batches = services.clone();
    tokio::spawn(async move { batches.run().await });
    Cluster {
        aws,
        services,
        client,
        _running: running,
    }
}

pub trait Plain:
    kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize
{
}
impl<K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize> Plain for K {}

impl Cluster {
    fn api<K: Plain>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    pub async fn create<K: Plain>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).expect("the literal is such an object");
        self.api()
            .create(&PostParams::default(), &object)
            .await
            .expect("it is admitted")
    }

    pub async fn find<K: Plain>(&self, name: &str) -> Option<K> {
        self.api().get_opt(name).await.expect("the server answers")
    }

    pub async fn get<K: Plain>(&self, name: &str) -> K {
        self.find(name).await.expect("it is there")
    }

    pub async fn patch<K: Plain>(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        let patched = self.api::<K>().patch(name, &params, &Patch::Merge(patch)).await;
        patched.expect("it is admitted");
    }

    pub async fn patch_status<K: Plain>(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        let patched = self.api::<K>().patch_status(name, &params, &Patch::Merge(patch)).await;
        patched.expect("it is admitted");
    }

    pub async fn delete<K: Plain>(&self, name: &str) {
        let deleted = self.api::<K>().delete(name, &Default::default()).await;
        deleted.expect("it can be deleted");
    }

    /// Lets time pass until it holds, a second at a time.
    #[track_caller]
    pub fn until<'a, F: Future<Output = bool>>(
        &'a self,
        what: &'a str,
        longest: Duration,
        holds: impl Fn() -> F + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let begun = tokio::time::Instant::now();
            while !holds().await {
                assert!(begun.elapsed() < longest, "{place}: {what}");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// The class of the tests, made and looked at.
    pub async fn ready_class(&self) -> EC2NodeClass {
        self.create::<EC2NodeClass>(class()).await;
        self.until("the class is ready", minutes(2), async || {
            condition(&self.get::<EC2NodeClass>("default").await, "Ready") == "True"
        })
        .await;
        self.get("default").await
    }

    /// A claim that a user made by hand, with an instance.
    pub async fn launched(&self, name: &str, instance_type: &str, capacity_type: &str) -> (NodeClaim, InstanceInfo) {
        let one_of = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
        self.create::<NodeClaim>(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    one_of("node.kubernetes.io/instance-type", instance_type),
                    one_of("karpenter.sh/capacity-type", capacity_type),
                ],
            },
        }))
        .await;
        self.until("an instance is launched", minutes(2), async || {
            let claim: NodeClaim = self.get(name).await;
            claim.status.is_some_and(|status| status.provider_id.is_some())
        })
        .await;
        self.aws.let_time_pass();
        let claim: NodeClaim = self.get(name).await;
        let info = self.instance_of(&claim);
        (claim, info)
    }

    pub fn instance_of(&self, claim: &NodeClaim) -> InstanceInfo {
        let id = claim.status.as_ref().and_then(|status| status.provider_id.clone());
        let id = model::ProviderId::from(id.expect("the claim has an instance"));
        let id = provider_id::instance_id(&id).expect("it is one of EC2's");
        self.aws.instance(id).expect("EC2 has it")
    }

    /// The instance boots, joins the cluster and is ready.
    pub async fn joins(&self, claim: &NodeClaim, memory: &str) -> Node {
        let name = claim.name_any();
        let id = claim.status.as_ref().and_then(|status| status.provider_id.clone());
        let node = format!("node-{name}");
        self.create::<Node>(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": node},
            "spec": {
                "providerID": id,
                "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            },
        }))
        .await;
        let amounts = json!({"cpu": "2", "memory": memory, "pods": "29", "ephemeral-storage": "20Gi"});
        self.patch_status::<Node>(
            &node,
            json!({"status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            }}),
        )
        .await;
        self.until("the node is registered", minutes(2), async || {
            let node: Node = self.get(&node).await;
            node.labels().contains_key("karpenter.sh/registered")
        })
        .await;
        self.get(&node).await
    }

    /// The reasons of all events about an object.
    pub async fn told(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = events.list(&Default::default()).await.expect("events are listed");
        let about = events
            .items
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(name));
        about.filter_map(|event| event.reason).collect()
    }
}

/// The status of a condition, or nothing.
pub fn condition<K: serde::Serialize>(object: &K, type_: &str) -> String {
    condition_part(object, type_, "status")
}

pub fn reason<K: serde::Serialize>(object: &K, type_: &str) -> String {
    condition_part(object, type_, "reason")
}

fn condition_part<K: serde::Serialize>(object: &K, type_: &str, part: &str) -> String {
    let object = serde_json::to_value(object).expect("an API object is plain data");
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned();
    let mut conditions = conditions.unwrap_or_default().into_iter();
    let found = conditions.find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |found| found[part].as_str().unwrap_or_default().to_owned())
}
