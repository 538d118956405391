//! The simulated parts of a cluster, without Karpenter: pods come, run, end and go as in a cluster.

use std::{sync::Arc, time::Duration};

use clock::VirtualClock;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use kube_mem::ApiServer;
use serde_json::{Value, json};
use world::{
    cluster::{Cluster, Options},
    story::{HOSTNAME, beside},
};

struct Scene {
    client: Client,
    _cluster: Cluster,
}

async fn scene() -> Scene {
    let clock = Arc::new(VirtualClock::starting_at(VirtualClock::EPOCH));
    let server = ApiServer::builder().clock(clock.clone()).seed(1).build();
    let cluster = Cluster::start(server.client(), clock, 1, Options::default());
    cluster.synced().await;
    Scene {
        client: server.client(),
        _cluster: cluster,
    }
}

async fn run_for(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

impl Scene {
    async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<DynamicType = ()> + serde::de::DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
    {
        let dynamic = kube::core::ApiResource::erase::<K>(&());
        let object: kube::core::DynamicObject = serde_json::from_value(object).expect("an object");
        let api: Api<kube::core::DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &dynamic),
            None => Api::all_with(self.client.clone(), &dynamic),
        };
        api.create(&PostParams::default(), &object)
            .await
            .expect("the object is valid");
    }

    async fn node(&self, name: &str, cpu: &str, zone: &str) {
        self.create::<Node>(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": { "kwok.x-k8s.io/node": "fake" },
                "labels": { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone },
            },
            "status": {
                "capacity": { "cpu": cpu, "memory": "16Gi", "pods": "110" },
                "allocatable": { "cpu": cpu, "memory": "16Gi", "pods": "110" },
            },
        }))
        .await;
    }

    async fn deployment(&self, name: &str, replicas: i32, template: Value) {
        let mut spec = json!({ "containers": [{
            "name": "main", "image": "pause", "resources": { "requests": { "cpu": "1" } },
        }] });
        spec.as_object_mut()
            .expect("an object")
            .extend(template.as_object().expect("an object").clone());
        self.create::<Deployment>(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } }, "spec": spec },
            },
        }))
        .await;
    }

    async fn pods(&self) -> Vec<Pod> {
        let api: Api<Pod> = Api::all(self.client.clone());
        api.list(&Default::default()).await.expect("a list").items
    }

    async fn phases(&self) -> Vec<(String, String)> {
        let pods = self.pods().await;
        let mut phases: Vec<_> = pods
            .into_iter()
            .map(|pod| {
                let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
                (node, pod.status.and_then(|status| status.phase).unwrap_or_default())
            })
            .collect();
        phases.sort();
        phases
    }

    async fn patch<K>(&self, api: Api<K>, name: &str, patch: Value)
    where
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the patch is valid");
    }

    async fn deployment_status(&self, name: &str) -> String {
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let deployment = api.get(name).await.expect("a deployment");
        let status = deployment.status.expect("a status");
        let number = |number: Option<i32>| number.unwrap_or_default();
        assert_eq!(status.observed_generation, deployment.metadata.generation);
        format!(
            "{} pods, {} updated, {} ready, {} available",
            number(status.replicas),
            number(status.updated_replicas),
            number(status.ready_replicas),
            number(status.available_replicas)
        )
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_runs_on_a_node_that_becomes_ready() {
    let scene = scene().await;
    scene.node("n1", "4", "a").await;
    scene.deployment("web", 3, json!({})).await;
    run_for(20).await;
    assert_eq!(scene.phases().await, vec![("n1".to_owned(), "Running".to_owned()); 3]);
    assert_eq!(
        scene.deployment_status("web").await,
        "3 pods, 3 updated, 3 ready, 3 available"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_says_why() {
    let scene = scene().await;
    scene.deployment("web", 1, json!({})).await;
    run_for(1).await;
    let message = |pod: &Pod| {
        let status = pod.status.as_ref()?;
        let condition = status
            .conditions
            .as_ref()?
            .iter()
            .find(|condition| condition.type_ == "PodScheduled")?;
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_deref()),
            ("False", Some("Unschedulable"))
        );
        condition.message.clone()
    };
    assert_eq!(
        message(&scene.pods().await[0]).as_deref(),
        Some("no nodes available to schedule pods")
    );
    scene.node("n1", "500m", "a").await;
    run_for(20).await;
    assert_eq!(
        message(&scene.pods().await[0]).as_deref(),
        Some("0/1 nodes are available: 1 Insufficient cpu.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_template_is_rolled_out_and_the_old_pods_go() {
    let scene = scene().await;
    scene.node("n1", "8", "a").await;
    scene.deployment("web", 4, json!({})).await;
    run_for(20).await;
    let before: Vec<String> = scene
        .pods()
        .await
        .iter()
        .filter_map(|pod| pod.metadata.name.clone())
        .collect();
    let api: Api<Deployment> = Api::default_namespaced(scene.client.clone());
    let change = json!({ "spec": { "template": { "metadata": { "labels": { "version": "2" } } } } });
    scene.patch(api, "web", change).await;
    run_for(120).await;
    assert_eq!(
        scene.deployment_status("web").await,
        "4 pods, 4 updated, 4 ready, 4 available"
    );
    let after: Vec<String> = scene
        .pods()
        .await
        .iter()
        .filter_map(|pod| pod.metadata.name.clone())
        .collect();
    assert_eq!(after.len(), 4);
    assert!(after.iter().all(|name| !before.contains(name)));
}

#[tokio::test(start_paused = true)]
async fn pods_end_gracefully_when_a_deployment_shrinks() {
    let scene = scene().await;
    scene.node("n1", "8", "a").await;
    scene.deployment("web", 4, json!({})).await;
    run_for(20).await;
    let api: Api<Deployment> = Api::default_namespaced(scene.client.clone());
    scene.patch(api, "web", json!({ "spec": { "replicas": 1 } })).await;
    run_for(60).await;
    assert_eq!(scene.pods().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hard_spread_keeps_zones_level() {
    let scene = scene().await;
    for (node, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
        scene.node(node, "8", zone).await;
    }
    let spread = json!({ "topologySpreadConstraints": [{
        "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }] });
    scene.deployment("web", 6, spread).await;
    run_for(30).await;
    let on = |node: &str, phases: &[(String, String)]| phases.iter().filter(|(at, _)| at == node).count();
    let phases = scene.phases().await;
    assert_eq!(on("n3", &phases), 3, "{phases:?}");
    assert_eq!(on("n1", &phases) + on("n2", &phases), 3, "{phases:?}");
}

#[tokio::test(start_paused = true)]
async fn anti_affinity_leaves_the_second_pod_waiting() {
    let scene = scene().await;
    scene.node("n1", "8", "a").await;
    let apart = json!({ "affinity": { "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [beside("web", HOSTNAME)],
    } } });
    scene.deployment("web", 2, apart).await;
    run_for(30).await;
    let phases = scene.phases().await;
    assert_eq!(
        phases,
        [
            (String::new(), "Pending".to_owned()),
            ("n1".to_owned(), "Running".to_owned())
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_vanished_node_are_collected_and_replaced() {
    let scene = scene().await;
    scene.node("n1", "8", "a").await;
    scene.deployment("web", 2, json!({})).await;
    run_for(20).await;
    scene.node("n2", "8", "a").await;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    nodes
        .delete("n1", &Default::default())
        .await
        .expect("the node is there");
    run_for(120).await;
    assert_eq!(scene.phases().await, vec![("n2".to_owned(), "Running".to_owned()); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_says_so_drives_pods_away() {
    let scene = scene().await;
    scene.node("n1", "8", "a").await;
    scene.deployment("web", 1, json!({})).await;
    let patient = json!({ "tolerations": [{ "key": "outage", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }] });
    scene.deployment("db", 1, patient).await;
    run_for(20).await;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let taint = json!({ "spec": { "taints": [{ "key": "outage", "effect": "NoExecute" }] } });
    scene.patch(nodes, "n1", taint).await;
    run_for(60).await;
    let running = |pods: Vec<Pod>| {
        let phase = |pod: &Pod| {
            pod.status
                .as_ref()
                .and_then(|status| status.phase.clone())
                .unwrap_or_default()
        };
        pods.into_iter()
            .filter(|pod| phase(pod) == "Running")
            .filter_map(|pod| pod.metadata.uid)
            .collect::<Vec<_>>()
    };
    let patient = running(scene.pods().await);
    assert_eq!(patient.len(), 1, "the patient pod stays");
    run_for(300).await;
    assert_ne!(running(scene.pods().await), patient, "until its patience is over");
}
