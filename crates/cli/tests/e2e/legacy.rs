//! The deployment guide of the time of Provisioners, on a real control plane: its Provisioner makes nodes, and they go as it
//! says they do.

use std::process::Command;

use api::labels::{NODE_POOL, PROVISIONER_NAME};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{cluster::Cluster, controller::Controller};

async fn start() -> (Cluster, Controller) {
    let cluster = Cluster::start().await;
    cluster.install(api::crds::legacy()).await;
    let mut controller = Controller::for_cluster(cluster.plane.kubeconfig());
    controller.start();
    (cluster, controller)
}

/// As the guide writes it, but that nobody waits half a minute for an empty node to go.
fn provisioner(name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": name},
        "spec": {
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
            "provider": {"instanceProfile": "KarpenterNodeInstanceProfile-demo"},
            "ttlSecondsAfterEmpty": 3,
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn provisioners(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("karpenter.sh", "v1alpha5", "Provisioner");
    Api::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind))
}

async fn delete_provisioner(cluster: &Cluster, name: &str) {
    let deleted = provisioners(cluster).delete(name, &DeleteParams::default()).await;
    deleted.expect("the Provisioner goes");
}

async fn delete_node(cluster: &Cluster, name: &str) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let deleted = nodes.delete(name, &DeleteParams::default()).await;
    deleted.expect("the node goes");
}

/// Waits until no node of these names is left, and another has come in their place.
async fn until_replaced(cluster: &Cluster, old: &[String]) {
    let what = format!("{old:?} are replaced");
    cluster
        .eventually(&what, async || {
            let names: Vec<String> = cluster.nodes().await.iter().map(ResourceExt::name_any).collect();
            if !names.is_empty() && names.iter().all(|name| !old.contains(name)) {
                Ok(())
            } else {
                Err(format!("{names:?}"))
            }
        })
        .await;
}

async fn node_names(cluster: &Cluster) -> Vec<String> {
    cluster.nodes().await.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn a_provisioner_lives_the_life_of_its_guide() {
    let (cluster, _controller) = start().await;
    cluster.apply(provisioner("default", json!({}))).await;
    let selector = json!({PROVISIONER_NAME: "default"});
    cluster.create_deployment_where("inflate", "1", selector).await;
    cluster.scale("inflate", 5).await;
    cluster.until_running(5).await;
    for node in cluster.nodes().await {
        let labels = node.labels();
        assert_eq!(
            (&*labels[PROVISIONER_NAME], &*labels[NODE_POOL]),
            ("default", "default")
        );
    }
    cluster
        .eventually("the Provisioner knows of its nodes", async || {
            let stored = provisioners(&cluster).get("default").await.expect("it is there");
            let status = stored.data["status"].clone();
            let is_active = |one: &Value| one["type"] == "Active" && one["status"] == "True";
            let active = status["conditions"]
                .as_array()
                .is_some_and(|all| all.iter().any(is_active));
            if active && status["resources"]["cpu"].is_string() {
                Ok(())
            } else {
                Err(status.to_string())
            }
        })
        .await;

    // `kubectl delete node` ends the instance, and the pods get another.
    let first = node_names(&cluster).await;
    for node in &first {
        delete_node(&cluster, node).await;
    }
    until_replaced(&cluster, &first).await;
    cluster.until_running(5).await;
    assert_eq!(
        cluster.claims().await.len(),
        cluster.nodes().await.len(),
        "no instance is left without a node"
    );

    // The empty node goes after its time.
    cluster.scale("inflate", 0).await;
    cluster.until_empty().await;

    // The Provisioner takes what it has made along.
    cluster.scale("inflate", 1).await;
    cluster.until_running(1).await;
    delete_provisioner(&cluster, "default").await;
    cluster.until_empty().await;
}

#[tokio::test]
async fn a_node_that_has_expired_is_replaced() {
    let (cluster, _controller) = start().await;
    cluster
        .apply(provisioner("brief", json!({"ttlSecondsUntilExpired": 20})))
        .await;
    cluster.create_deployment("inflate", "1").await;
    cluster.scale("inflate", 1).await;
    cluster.until_running(1).await;
    let first = node_names(&cluster).await;
    until_replaced(&cluster, &first).await;
    cluster.until_running(1).await;
    delete_provisioner(&cluster, "brief").await;
    cluster.until_empty().await;
}

/// The guide warns: without the controller nobody finishes nodes that are deleted. The doctor says which, and how.
#[tokio::test]
async fn nodes_without_a_controller_stay_and_the_doctor_says_why() {
    let (cluster, mut controller) = start().await;
    cluster.apply(provisioner("default", json!({}))).await;
    cluster.create_deployment("inflate", "1").await;
    cluster.scale("inflate", 1).await;
    cluster.until_running(1).await;
    controller.kill();
    delete_provisioner(&cluster, "default").await;
    let node = node_names(&cluster).await.remove(0);
    delete_node(&cluster, &node).await;
    cluster
        .eventually("claim and node are on their way out", async || {
            let claims = cluster.claims().await;
            let leaving = claims
                .iter()
                .filter(|claim| claim.metadata.deletion_timestamp.is_some())
                .count();
            if (claims.len(), leaving) == (1, 1) {
                Ok(())
            } else {
                Err(format!("{leaving} of {}", claims.len()))
            }
        })
        .await;
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_karpenter"));
    let kubeconfig = cluster.plane.kubeconfig().to_owned();
    doctor
        .args(["doctor", "--skip-account", "-o", "json", "--kubeconfig"])
        .arg(kubeconfig);
    let output = tokio::task::spawn_blocking(move || doctor.output())
        .await
        .expect("it ends");
    let output = output.expect("the program runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let held: Vec<&Value> = findings.iter().filter(|one| one["check"] == "finalizers").collect();
    let fixes = Value::from(held.iter().map(|one| one["fix"].clone()).collect::<Vec<_>>()).to_string();
    assert!(fixes.contains(&format!("kubectl patch node {node}")), "{report:#}");
    assert!(fixes.contains("kubectl patch nodeclaim"), "{report:#}");

    controller.start();
    cluster.until_empty().await;
}
