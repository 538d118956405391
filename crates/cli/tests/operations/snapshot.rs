//! A snapshot holds what decisions need and nothing that is secret.

use std::fs;

use api::crds::Variant;
use serde_json::{Value, json};

use crate::server::Live;

/// Stands wherever somebody could have put a secret.
const SECRET: &str = "hunter2";

fn catalog() -> Value {
    json!([{"name": "m.large", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi", "pods": "20"},
        "offerings": [{"Price": 0.2, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}])
}

async fn populate(live: &Live) {
    let leaky = json!({"kubectl.kubernetes.io/last-applied-configuration": SECRET, "example.com/token": SECRET});
    let container = json!({"name": "c", "image": "i", "args": [format!("--password={SECRET}")], "command": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}], "livenessProbe": {"exec": {"command": [SECRET]}},
        "resources": {"requests": {"cpu": "1"}}});
    let leaky_storage = json!({"metadata": {"name": "data", "annotations": leaky},
        "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"name": "s", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}});
    let spec = json!({"containers": [container], "volumes": [volume]});
    let stored = json!({"containers": [container], "volumes": [volume, {"name": "e", "ephemeral": {"volumeClaimTemplate": leaky_storage}}]});
    live.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": leaky}}))
        .await;
    live.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "stringData": {"a": SECRET}}))
        .await;
    live.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {"a": SECRET}}))
        .await;
    for number in 0..3 {
        live.apply(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{number}"), "namespace": "shop", "annotations": leaky},
            "spec": spec, "status": {"phase": "Pending", "message": SECRET, "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}))
            .await;
    }
    let labels = json!({"app.kubernetes.io/name": "karpenter"});
    live.apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter", "namespace": "shop", "labels": labels, "annotations": leaky},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels, "annotations": leaky}, "spec": {"containers": [
            {"name": "controller", "image": "i", "args": [SECRET], "env": [
                {"name": "AWS_SECRET_ACCESS_KEY", "value": SECRET}, {"name": "LOG_LEVEL", "value": "debug"}]}]}}}}))
        .await;
    live.apply(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "shop", "annotations": leaky},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"metadata": {"labels": {"app": "agent"}, "annotations": leaky}, "spec": spec}}}))
        .await;
    live.apply(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop", "annotations": leaky},
        "spec": {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "volumeClaimTemplates": [leaky_storage],
            "template": {"metadata": {"labels": {"app": "db"}, "annotations": leaky}, "spec": stored}}}))
        .await;
    let opaque = json!([{"opaque": {"driver": "gpu.example.com", "parameters": {"key": SECRET}}}]);
    live.apply(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpu", "namespace": "shop", "annotations": leaky},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}], "config": opaque}},
        "status": {"allocation": {"devices": {"results": [{"request": "one", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}],
            "config": opaque}}, "devices": [{"driver": "gpu.example.com", "pool": "a", "device": "gpu-0", "data": {"key": SECRET}}]}}))
        .await;
    live.apply(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3", "annotations": leaky},
        "provisioner": "ebs.csi.aws.com", "parameters": {"key": SECRET}}))
        .await;
    live.apply(
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "annotations": leaky},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "volumeAttributes": {"key": SECRET}}}}),
    )
    .await;
    live.apply(json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default", "annotations": leaky}, "spec": {
        "role": "r", "userData": format!("export TOKEN={SECRET}"), "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}}))
        .await;
    live.apply(json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "annotations": leaky},
        "spec": {"template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
        .await;
    live.apply(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "reason": "FailedScheduling",
        "message": "no node matches", "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "shop"}, "source": {"component": "karpenter"}}))
        .await;
}

async fn printed(live: &Live, arguments: &[&str]) -> Value {
    let output = live.run(arguments).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let mut printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    printed.as_object_mut().expect("an object").remove("solveMillis");
    printed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_plans_like_its_cluster_and_keeps_no_secret() {
    let live = Live::start(&api::crds::all(Variant::Aws)).await;
    populate(&live).await;
    fs::write(live.folder().join("types.json"), catalog().to_string()).expect("a file");

    for form in ["yaml", "json"] {
        let output = live.run(&["snapshot", "--kubeconfig", "kubeconfig", "-o", form]).await;
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(!text.contains(SECRET), "a secret is in {text}");
        assert!(
            !text.contains("kind: Secret") && !text.contains("kind: ConfigMap"),
            "{text}"
        );
        for wanted in [
            "FailedScheduling",
            "gpu-0",
            "LOG_LEVEL",
            "ebs.csi.aws.com",
            "taken",
            "commit",
            "left out of the snapshot",
        ] {
            assert!(text.contains(wanted), "no {wanted} in {text}");
        }
        fs::write(live.folder().join("snapshot.yaml"), text).expect("a file");

        let asked = [
            "--instance-types",
            "types.json",
            "-o",
            "json",
            "--now",
            "2026-01-01T00:00:00Z",
        ];
        for command in ["schedule", "plan"] {
            let of_cluster = printed(&live, &[&[command, "--kubeconfig", "kubeconfig"], &asked[..]].concat()).await;
            let of_snapshot = printed(&live, &[&[command, "-f", "snapshot.yaml"], &asked[..]].concat()).await;
            assert_eq!(
                without_millis(of_snapshot),
                without_millis(of_cluster),
                "{command} -f of {form}"
            );
        }
    }
    let plan = printed(
        &live,
        &[
            "schedule",
            "-f",
            "snapshot.yaml",
            "--instance-types",
            "types.json",
            "-o",
            "json",
        ],
    )
    .await;
    let nodes = plan["newNodes"].as_array().expect("nodes");
    let pods: usize = nodes
        .iter()
        .map(|node| node["pods"].as_array().map_or(0, Vec::len))
        .sum();
    // The daemon of the snapshot takes its share of each node, so that three pods need two.
    assert_eq!((nodes.len(), pods), (2, 3), "{plan:#}");
}

/// Times differ from run to run.
fn without_millis(mut report: Value) -> Value {
    if let Some(fields) = report.as_object_mut() {
        fields.retain(|name, _| !name.ends_with("Millis"));
        fields
            .values_mut()
            .for_each(|value| *value = without_millis(value.take()));
    } else if let Some(items) = report.as_array_mut() {
        items.iter_mut().for_each(|value| *value = without_millis(value.take()));
    }
    report
}
