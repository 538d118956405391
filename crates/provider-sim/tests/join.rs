//! Machines and Node objects come and go together, whatever the API server and the process do in between.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use api::{
    kwok::KwokNodeClass,
    v1::{NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassReference},
};
use clock::VirtualClock;
use expect_test::expect;
use jiff::SignedDuration;
use k8s_openapi::{
    api::core::v1::Node, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::api::resource::Quantity as QuantityText,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use kube_mem::ApiServer;
use model::{Effect, ProviderId, Quantity, Taint};
use provider::{CloudProvider, LaunchRequest, Launched};
use provider_sim::{Catalog, Faults, Latency, Recovered, SimCloud, SimProvider, join, ledger::Deed, node};
use tokio::task::AbortHandle;
use tower::ServiceExt;

mod fixtures;

use fixtures::request;

/// A cluster with a node class, and a cloud whose machines join it.
struct Town {
    server: ApiServer,
    clock: Arc<VirtualClock>,
    provider: SimProvider,
    joining: AbortHandle,
}

impl Town {
    async fn new(faults: Faults) -> Self {
        Self::with_client(faults, ApiServer::client).await
    }

    /// `client` makes the client that machines join through.
    async fn with_client(faults: Faults, client: impl FnOnce(&ApiServer) -> Client) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let server = ApiServer::builder().seed(1).clock(clock.clone()).build();
        let crds: Api<CustomResourceDefinition> = Api::all(server.client());
        for crd in api::crds::all(api::crds::Variant::Kwok) {
            crds.create(&PostParams::default(), &crd)
                .await
                .expect("the CRD is installed");
        }
        let classes: Api<KwokNodeClass> = Api::all(server.client());
        let mut class = fixtures::class();
        class.spec.node_registration_delay = Some("10s".into());
        classes
            .create(&PostParams::default(), &class)
            .await
            .expect("the class is created");
        let cloud = SimCloud::new(3, clock.clone()).with_faults(faults);
        let joining = tokio::spawn(join::run(cloud.clone(), client(&server))).abort_handle();
        let provider = SimProvider::new(cloud, Arc::new(Catalog::generic()), Arc::new(classes));
        Self {
            server,
            clock,
            provider,
            joining,
        }
    }

    fn cloud(&self) -> &SimCloud {
        self.provider.cloud()
    }

    /// What `kill -9` of a controller that holds the cloud leaves behind: the cluster. Then a new process.
    async fn killed_and_restarted(self) -> (Self, Recovered) {
        self.joining.abort();
        let cloud = SimCloud::new(3, self.clock.clone()).with_faults(self.cloud().faults());
        let recovered = cloud.recover(&self.server.client()).await.expect("the cluster answers");
        let joining = tokio::spawn(join::run(cloud.clone(), self.server.client())).abort_handle();
        let classes: Api<KwokNodeClass> = Api::all(self.server.client());
        let provider = SimProvider::new(cloud, Arc::new(Catalog::generic()), Arc::new(classes));
        (
            Self {
                provider,
                joining,
                ..self
            },
            recovered,
        )
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.server.client())
    }

    async fn node_names(&self) -> Vec<String> {
        let nodes = self
            .nodes()
            .list(&ListParams::default())
            .await
            .expect("nodes are listed");
        nodes.iter().map(ResourceExt::name_any).collect()
    }

    /// A claim object with what a controller records of its launch.
    async fn record(&self, claim: &str, launched: &Launched) {
        let claims: Api<NodeClaim> = Api::all(self.server.client());
        let spec = NodeClaimSpec {
            node_class_ref: NodeClassReference {
                group: "karpenter.kwok.sh".to_owned(),
                kind: "KWOKNodeClass".to_owned(),
                name: "default".to_owned(),
            },
            ..NodeClaimSpec::default()
        };
        let mut object = NodeClaim::new(claim, spec);
        let labels = launched
            .labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        object.metadata.labels = Some(labels.collect());
        claims
            .create(&PostParams::default(), &object)
            .await
            .expect("the claim is created");
        let amounts = launched
            .capacity
            .iter()
            .map(|(name, amount)| (name.to_string(), QuantityText(amount.to_string())));
        let status = NodeClaimStatus {
            provider_id: Some(launched.provider_id.to_string()),
            capacity: Some(amounts.collect()),
            ..NodeClaimStatus::default()
        };
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let done = claims.patch_status(claim, &PatchParams::default(), &patch).await;
        done.expect("the claim's status is recorded");
    }

    async fn uid_of_claim(&self, claim: &str) -> String {
        let claims: Api<NodeClaim> = Api::all(self.server.client());
        claims
            .get(claim)
            .await
            .expect("the claim is there")
            .uid()
            .expect("objects have uids")
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn slow() -> Faults {
    Faults {
        launch_latency: Latency::exactly(SignedDuration::from_secs(20)),
        ..Faults::default()
    }
}

fn id(node: &str) -> ProviderId {
    provider_sim::machine::provider_id(node)
}

fn detailed_request() -> LaunchRequest {
    let mut request = request("default-7x2kq");
    request.requests.set("memory".into(), Quantity::from_bytes(1 << 30));
    request.labels.insert("karpenter.sh/nodepool".into(), "default".into());
    request.annotations.insert("team".into(), "blue".into());
    request.taints.push(Taint::new("gpu", "yes", Effect::NoSchedule));
    request.startup_taints.push(Taint::new("cni", "", Effect::NoExecute));
    request
}

#[tokio::test(start_paused = true)]
async fn a_node_joins_after_boot_and_registration_delay_with_everything_on_it() {
    let town = Town::new(slow()).await;
    town.provider.launch(&detailed_request()).await.expect("a machine");
    pass(29).await;
    assert!(
        town.node_names().await.is_empty(),
        "twenty seconds of boot and ten of registration are not over"
    );
    pass(2).await;
    let joined = town.nodes().get("default-7x2kq").await.expect("the node has joined");
    assert_eq!(
        joined.spec.expect("a spec").provider_id.as_deref(),
        Some("kwok://default-7x2kq")
    );
    // The object as it was sent: what a server adds to it is the server's business.
    let node = node::object(
        &town
            .cloud()
            .machine(&id("default-7x2kq"))
            .expect("the machine is there"),
    );
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Node",
          "metadata": {
            "annotations": {
              "karpenter.kwok.sh/launch-token": "default-7x2kq-uid",
              "kwok.x-k8s.io/node": "fake",
              "team": "blue"
            },
            "labels": {
              "eks-node-viewer/instance-price": "0.038006",
              "karpenter.kwok.sh/instance-cpu": "2",
              "karpenter.kwok.sh/instance-family": "c",
              "karpenter.kwok.sh/instance-memory": "4Gi",
              "karpenter.kwok.sh/instance-size": "2",
              "karpenter.sh/capacity-type": "spot",
              "karpenter.sh/nodepool": "default",
              "kubernetes.io/arch": "arm64",
              "kubernetes.io/hostname": "default-7x2kq",
              "kubernetes.io/os": "linux",
              "kwok-partition": "a",
              "kwok.x-k8s.io/node": "fake",
              "node.kubernetes.io/instance-type": "c-2x-arm64-linux",
              "topology.kubernetes.io/zone": "test-zone-c"
            },
            "name": "default-7x2kq"
          },
          "spec": {
            "providerID": "kwok://default-7x2kq",
            "taints": [
              {
                "effect": "NoExecute",
                "key": "karpenter.sh/unregistered"
              },
              {
                "effect": "NoSchedule",
                "key": "gpu",
                "value": "yes"
              },
              {
                "effect": "NoExecute",
                "key": "cni"
              }
            ]
          },
          "status": {
            "allocatable": {
              "cpu": "1900m",
              "ephemeral-storage": "20Gi",
              "memory": "4086Mi",
              "pods": "32"
            },
            "capacity": {
              "cpu": "2",
              "ephemeral-storage": "20Gi",
              "memory": "4Gi",
              "pods": "32"
            },
            "nodeInfo": {
              "architecture": "arm64",
              "bootID": "",
              "containerRuntimeVersion": "",
              "kernelVersion": "",
              "kubeProxyVersion": "",
              "kubeletVersion": "",
              "machineID": "",
              "operatingSystem": "linux",
              "osImage": "",
              "systemUUID": ""
            },
            "phase": "Pending"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&node).expect("an object is JSON"));
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_with_its_machine() {
    let town = Town::new(Faults::default()).await;
    for name in ["ended", "interrupted", "stays"] {
        town.provider.launch(&request(name)).await.expect("a machine");
    }
    pass(11).await;
    assert_eq!(town.node_names().await, ["ended", "interrupted", "stays"]);
    town.provider.terminate(&id("ended")).await.expect("an answer");
    assert!(
        town.cloud()
            .interrupt(&id("interrupted"), SignedDuration::from_secs(120))
    );
    pass(60).await;
    assert_eq!(town.node_names().await, ["interrupted", "stays"]);
    pass(61).await;
    assert_eq!(town.node_names().await, ["stays"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_ends_before_it_joins_leaves_no_node() {
    let town = Town::new(slow()).await;
    town.provider.launch(&request("a")).await.expect("a machine");
    pass(5).await;
    town.provider.terminate(&id("a")).await.expect("an answer");
    pass(600).await;
    assert!(town.node_names().await.is_empty());
    let fresh = LaunchRequest {
        token: "second-uid".to_owned(),
        ..request("a")
    };
    town.provider
        .launch(&fresh)
        .await
        .expect("the name is free again for another claim");
    pass(31).await;
    assert_eq!(town.node_names().await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_may_never_register() {
    let town = Town::new(Faults {
        never_joins: 1.0,
        ..Faults::default()
    })
    .await;
    town.provider.launch(&request("a")).await.expect("a machine");
    pass(3600).await;
    assert!(town.node_names().await.is_empty());
    assert_eq!(
        town.provider.instances().await.expect("a list").len(),
        1,
        "but the machine runs and costs"
    );
}

#[tokio::test(start_paused = true)]
async fn finished_machines_are_forgotten_but_not_what_they_cost() {
    let town = Town::new(Faults::default()).await;
    town.provider.launch(&request("a")).await.expect("a machine");
    pass(3600).await;
    town.provider.terminate(&id("a")).await.expect("an answer");
    let spent = town.cloud().spent();
    pass(3700).await;
    town.provider.launch(&request("b")).await.expect("a machine");
    assert_eq!(town.cloud().machine(&id("a")), None);
    assert!((town.cloud().spent() - spent).abs() < 1e-9);
}

/// What a client does to requests that create nodes, one entry per request.
#[derive(Clone, Copy)]
enum Mishap {
    /// Answers with this status instead of handing the request on.
    Answer(u16),
    /// Hands the request on and loses the answer.
    LoseAnswer,
}

fn mishaps(server: &ApiServer, script: impl IntoIterator<Item = Mishap>) -> Client {
    let script: Arc<Mutex<VecDeque<Mishap>>> = Arc::new(Mutex::new(script.into_iter().collect()));
    let service = server.service();
    let failing = tower::service_fn(move |request: http::Request<Body>| {
        let creates = request.method() == http::Method::POST;
        let mishap = creates
            .then(|| script.lock().expect("nobody panicked").pop_front())
            .flatten();
        let service = service.clone();
        async move {
            let failure = |code: u16| {
                let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "on purpose",
                    "reason": "Test", "code": code});
                http::Response::builder()
                    .status(code)
                    .body(Body::from(status.to_string().into_bytes()))
            };
            if let Some(Mishap::Answer(code)) = mishap {
                return failure(code);
            }
            let answer = service.oneshot(request).await.expect("the server never fails");
            if mishap.is_some() {
                return failure(504);
            }
            let (parts, body) = answer.into_parts();
            let body = http_body_util::BodyExt::collect(body)
                .await
                .expect("the body is there")
                .to_bytes();
            Ok(http::Response::from_parts(parts, Body::from(body.to_vec())))
        }
    });
    Client::new(failing, "default")
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_api_server_delay_a_node_and_do_not_lose_it() {
    let script = [
        Mishap::Answer(500),
        Mishap::Answer(429),
        Mishap::Answer(403),
        Mishap::LoseAnswer,
    ];
    let town = Town::with_client(Faults::default(), |server| mishaps(server, script)).await;
    town.provider.launch(&request("a")).await.expect("a machine");
    pass(60).await;
    assert_eq!(town.node_names().await, ["a"]);
    let joined = town
        .cloud()
        .ledger()
        .iter()
        .filter(|entry| matches!(entry.deed, Deed::Joined { .. }))
        .count();
    assert_eq!(joined, 1);
}

/// Upstream's suite blocks registration by an admission policy and expects that the node stays away for good.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_refuses_a_node_is_not_asked_for_ever() {
    let town = Town::with_client(Faults::default(), |server| mishaps(server, [Mishap::Answer(422); 5])).await;
    town.provider.launch(&request("a")).await.expect("a machine");
    pass(3600).await;
    assert!(town.node_names().await.is_empty());
    town.provider.terminate(&id("a")).await.expect("an answer");
    assert!(town.provider.instances().await.expect("a list").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_ends_while_its_answer_is_lost_leaves_no_node() {
    let town = Town::with_client(Faults::default(), |server| mishaps(server, [Mishap::LoseAnswer])).await;
    town.provider.launch(&request("a")).await.expect("a machine");
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    assert_eq!(
        town.node_names().await,
        ["a"],
        "the node is there, though its machine does not know"
    );
    town.provider.terminate(&id("a")).await.expect("an answer");
    pass(5).await;
    assert!(town.node_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_process_finds_running_and_booting_machines_again() {
    let town = Town::new(slow()).await;
    let running = town.provider.launch(&request("running")).await.expect("a machine");
    pass(40).await;
    let booting = town.provider.launch(&request("booting")).await.expect("a machine");
    for (claim, launched) in [("running", &running), ("booting", &booting)] {
        town.record(claim, launched).await;
    }
    let before = town.provider.instances().await.expect("a list");
    let (town, recovered) = town.killed_and_restarted().await;
    assert_eq!(recovered, Recovered { running: 1, booting: 1 });
    let after = town.provider.instances().await.expect("a list");
    let ids = |list: &[provider::Instance]| {
        list.iter()
            .map(|one| (one.provider_id.clone(), one.claim.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&before), ids(&after));

    pass(40).await;
    assert_eq!(town.node_names().await, ["booting", "running"]);
    let token = town.uid_of_claim("booting").await;
    let again = town
        .provider
        .launch(&LaunchRequest {
            token,
            ..request("booting")
        })
        .await;
    assert_eq!(again.expect("the same machine").provider_id, booting.provider_id);
    town.provider.terminate(&running.provider_id).await.expect("an answer");
    pass(5).await;
    assert_eq!(town.node_names().await, ["booting"]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_never_recorded_is_found_by_its_node() {
    let town = Town::new(Faults::default()).await;
    let first = town.provider.launch(&request("a")).await.expect("a machine");
    pass(11).await;
    let (town, recovered) = town.killed_and_restarted().await;
    assert_eq!(recovered, Recovered { running: 1, booting: 0 });
    let again = town.provider.launch(&request("a")).await.expect("the same machine");
    assert_eq!(first, again);
    assert_eq!(town.provider.instances().await.expect("a list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn strangers_and_the_dead_are_not_recovered() {
    let town = Town::new(Faults::default()).await;
    let launched = town.provider.launch(&request("dying")).await.expect("a machine");
    let stranger: Node = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "stranger"}, "spec": {"providerID": "aws:///us-west-2a/i-1"}
    }))
    .expect("a node");
    town.nodes()
        .create(&PostParams::default(), &stranger)
        .await
        .expect("a node");
    pass(11).await;
    // A finalizer of somebody else holds the object after ours has been removed.
    let held = Patch::Merge(serde_json::json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    town.nodes()
        .patch("dying", &PatchParams::default(), &held)
        .await
        .expect("a patch");
    town.nodes()
        .delete("dying", &DeleteParams::default())
        .await
        .expect("an answer");
    // A claim on its way out whose node never came.
    let gone = Launched {
        provider_id: id("leaving"),
        ..launched
    };
    town.record("leaving", &gone).await;
    let claims: Api<NodeClaim> = Api::all(town.server.client());
    let held = Patch::Merge(serde_json::json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}}));
    claims
        .patch("leaving", &PatchParams::default(), &held)
        .await
        .expect("a patch");
    claims
        .delete("leaving", &DeleteParams::default())
        .await
        .expect("an answer");

    let (town, recovered) = town.killed_and_restarted().await;
    assert_eq!(recovered, Recovered::default());
    assert!(town.provider.instances().await.expect("a list").is_empty());
}
