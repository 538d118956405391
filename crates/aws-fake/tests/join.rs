//! Instances that boot become nodes of a cluster, with what their user data told them; in memory and on virtual time.
#![cfg(feature = "join")]

use std::{sync::Arc, time::Duration};

use aws_fake::{
    Fake,
    join::{self, kubelets},
    region::{
        Plan, Tags,
        fleet::{FleetGroup, FleetRequest, Override, Strategy, Target},
        market::Capacity,
        templates::{TemplateData, TemplateRef},
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use clock::{Clock, VirtualClock};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{Api, Client, api::ListParams};
use kube_mem::ApiServer;
use tokio::task::JoinSet;

const NODE_CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: demo, apiServerEndpoint: 'https://api', certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  kubelet:
    config:
      maxPods: 29
      registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]
    flags: ['--node-labels=\"karpenter.sh/nodepool=default\"']
";

struct Stage {
    fake: Fake,
    nodes: Api<Node>,
    client: Client,
    _tasks: JoinSet<()>,
}

impl Stage {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
        let fake = Fake::new(Plan::new("us-west-2", "demo"), Arc::clone(&clock));
        let client = ApiServer::builder().clock(Arc::clone(&clock)).build().client();
        let mut tasks = kubelets(&fake, &client, &clock);
        tasks.spawn(join::run(fake.clone(), client.clone()));
        Self {
            fake,
            nodes: Api::all(client.clone()),
            client,
            _tasks: tasks,
        }
    }

    /// Launches an instance of Amazon Linux 2023 with this user data.
    fn launch(&self, user_data: &str) -> String {
        let image = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";
        self.fake.with(|state, now| {
            let data = TemplateData {
                image: state.region.images.parameters.get(image).cloned(),
                user_data: Some(STANDARD.encode(user_data)),
                ..TemplateData::default()
            };
            let name = format!("template-{}", state.region.templates.len());
            let made = state.region.create_template(&name, data, Tags::new(), now);
            let template = TemplateRef::Id(made.expect("a template").id.clone());
            let over = Override {
                instance_type: Some("m5.large".to_owned()),
                subnet: Some(state.region.network.subnets[0].id.clone()),
                ..Override::default()
            };
            let request = FleetRequest {
                groups: vec![FleetGroup {
                    template,
                    overrides: vec![over],
                }],
                targets: vec![Target {
                    capacity: Capacity::OnDemand,
                    count: 1,
                    strategy: Strategy::LowestPrice,
                }],
                instance_tags: Tags::new(),
                client_token: None,
            };
            let answer = state.region.create_fleet(&request, now).expect("an answer");
            answer.instances[0].ids[0].clone()
        })
    }

    async fn nodes(&self) -> Vec<Node> {
        self.nodes.list(&ListParams::default()).await.expect("a list").items
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| {
        all.iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

#[tokio::test(start_paused = true)]
async fn an_instance_joins_stays_ready_and_leaves() {
    let stage = Stage::new();
    let id = stage.launch(NODE_CONFIG);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(stage.nodes().await.is_empty(), "an instance that is still booting");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let nodes = stage.nodes().await;
    let [node] = &nodes[..] else {
        panic!("one node, not {nodes:?}")
    };
    assert!(is_ready(node), "{node:?}");
    let labels = node.metadata.labels.as_ref().expect("labels");
    for (key, value) in [
        ("karpenter.sh/nodepool", "default"),
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("topology.kubernetes.io/zone", "us-west-2a"),
        ("topology.k8s.aws/zone-id", "usw2-az1"),
        ("kubernetes.io/arch", "amd64"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    let spec = node.spec.as_ref().expect("a spec");
    assert_eq!(
        spec.provider_id.as_deref(),
        Some(format!("aws:///us-west-2a/{id}").as_str())
    );
    let taints = spec.taints.iter().flatten().map(|taint| taint.key.as_str());
    assert!(taints.collect::<Vec<_>>().contains(&"karpenter.sh/unregistered"));

    // A real cluster gives up on nodes whose lease is not renewed.
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), "kube-node-lease");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lease = leases
        .get(node.metadata.name.as_deref().expect("a name"))
        .await
        .expect("a lease");
    let renewed = lease.spec.and_then(|spec| spec.renew_time).expect("a heartbeat").0;
    assert!(stage.fake.now().duration_since(renewed).as_secs() <= 11, "{renewed}");

    stage
        .fake
        .with(|state, now| state.region.terminate(&id, "Client.UserInitiatedShutdown", "", now));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(stage.nodes().await.is_empty(), "the node of an instance that is gone");
}

#[tokio::test(start_paused = true)]
async fn bad_user_data_keeps_an_instance_out_and_says_why() {
    let stage = Stage::new();
    let table = [
        (
            "#!/bin/bash\necho hello\n".to_owned(),
            "no part of the user data is a NodeConfig",
        ),
        (
            NODE_CONFIG.replace("name: demo", "name: other"),
            "the user data names the cluster other, not demo",
        ),
    ];
    for (user_data, expected) in table {
        let id = stage.launch(&user_data);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let joined = stage.fake.with(|state, _| state.region.instances[&id].joined.clone());
        assert_eq!(joined, aws_fake::region::instances::Joined::Never(expected.to_owned()));
    }
    assert!(stage.nodes().await.is_empty());
}
