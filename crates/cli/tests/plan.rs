//! `karpenter plan` on a small cluster: what would be done, why nodes stay, and where it ends.

use std::{
    fs,
    process::{Command, Output},
};

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

fn karpenter(folder: &TempDir, arguments: &[&str]) -> Output {
    by_default(folder, &[&["--instance-types", "types.json"], arguments].concat())
}

/// Nobody says what can be launched.
fn by_default(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["plan", "--now", "2026-01-01T00:00:00Z", "-f", "objects.json"])
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("KUBECONFIG")
        .output()
        .expect("the program runs")
}

fn offering(kind: &str, price: f64) -> Value {
    json!({"Price": price, "Available": true, "Requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
    ]})
}

fn shape(name: &str, cpu: u32, price: f64) -> Value {
    json!({
        "name": name, "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "20"},
        "offerings": [offering("on-demand", price)],
    })
}

fn machine(name: &str, kind: &str, cpu: u32) -> [Value; 2] {
    let labels = json!({
        "karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/zone": "a", "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
    });
    let room = json!({"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "20"});
    let conditions: Vec<Value> = ["Launched", "Registered", "Initialized", "Consolidatable"]
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2025-12-31T00:00:00Z"}))
        .collect();
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2025-12-31T00:00:00Z"}]);
    [
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"requirements": [], "nodeClassRef": class()},
            "status": {"providerID": format!("sim://{name}"), "nodeName": name, "capacity": room, "allocatable": room, "conditions": conditions},
        }),
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"providerID": format!("sim://{name}")},
            "status": {"capacity": room, "allocatable": room, "conditions": ready},
        }),
    ]
}

fn class() -> Value {
    json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"})
}

fn pod(name: &str, cpu: &str, node: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Four nodes: one empty, one with little on it, one that is kept, one that is full.
fn folder() -> TempDir {
    folder_with(&[])
}

fn folder_with(more: &[Value]) -> TempDir {
    let mut items = vec![
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
            "spec": {
                "template": {"spec": {"nodeClassRef": class(), "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}},
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            },
        }),
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
    ];
    for (name, kind, cpu) in [
        ("bare", "large", 8),
        ("full", "large", 8),
        ("kept", "large", 8),
        ("slack", "large", 8),
    ] {
        items.extend(machine(name, kind, cpu));
    }
    items.push(pod("busy", "7", "full", json!({})));
    items.push(pod("held", "7", "kept", json!({"karpenter.sh/do-not-disrupt": "true"})));
    items.push(pod("little", "1500m", "slack", json!({})));
    items.extend_from_slice(more);
    let folder = tempfile::tempdir().expect("a folder");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(folder.path().join("objects.json"), list.to_string()).expect("a file");
    let types = json!([shape("small", 2, 0.2), shape("large", 8, 0.8)]);
    fs::write(folder.path().join("types.json"), types.to_string()).expect("a file");
    folder
}

#[track_caller]
fn printed(folder: &TempDir, arguments: &[&str]) -> String {
    let output = karpenter(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn people_read_what_would_be_done_and_why_nodes_stay() {
    expect![[r#"
        delete  bare (empty) (saves $0.80/h)
        replace slack → 1 × small/on-demand (saves $0.60/h)
        stay    full  NotCheaper: it costs $0.8000 an hour and a replacement would cost $0.8000
        stay    kept  DoNotDisrupt: pod default/held has annotation karpenter.sh/do-not-disrupt
        4 nodes at $3.20 an hour → 3 nodes at $1.80 an hour; 1 pods evicted
    "#]]
    .assert_eq(&printed(&folder(), &[]));
}

#[test]
fn programs_read_the_way_to_rest() {
    let report: Value = serde_json::from_str(&printed(&folder(), &["--until-rest", "-o", "json"])).expect("JSON");
    assert_eq!(report["start"]["nodes"], 4);
    assert_eq!(report["rest"]["nodes"], 3);
    assert_eq!(
        (
            &report["rest"]["nodesRemoved"],
            &report["rest"]["nodesLaunched"],
            &report["rest"]["podsDisrupted"]
        ),
        (&json!(2), &json!(1), &json!(1))
    );
    let price = report["rest"]["pricePerHour"].as_f64().expect("a price");
    assert!((price - 1.8).abs() < 1e-9, "{price}");
    assert!(
        report["passes"][0]["evaluateMillis"]
            .as_f64()
            .is_some_and(|millis| millis >= 0.0)
    );
}

#[test]
fn the_end_state_is_an_input_again_and_at_rest() {
    let folder = folder();
    printed(&folder, &["--until-rest", "--final", "rest.json"]);
    fs::copy(folder.path().join("rest.json"), folder.path().join("objects.json")).expect("a copy");
    let report: Value = serde_json::from_str(&printed(&folder, &["-o", "json", "--check"])).expect("JSON");
    assert_eq!(report["start"]["nodes"], 3);
    assert_eq!(report["passes"][0]["commands"], json!([]));
}

#[test]
fn a_cluster_with_something_to_do_does_not_pass_the_check() {
    assert_eq!(karpenter(&folder(), &["--check"]).status.code(), Some(1));
}

/// Prices that are not those of the cluster make a plan that looks right and is not.
#[test]
fn what_the_catalog_does_not_know_of_the_cluster_is_told() {
    let folder = folder();
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told(&by_default(&folder, &["--instance-types", "types.json"])), "");
    fs::write(
        folder.path().join("types.json"),
        json!([shape("small", 2, 0.2)]).to_string(),
    )
    .expect("a file");
    let unpriced = "note: the catalog has no price for 4 of 4 nodes, such as bare: ";
    let output = karpenter(&folder, &[]);
    assert!(told(&output).contains(unpriced), "{}", told(&output));

    // None of the shapes of the list that is taken by default, and a pool that buys on EC2.
    let list = "note: types, zones and prices are those of a list of us-west-2, and not what the region of these node pools sells";
    let output = by_default(&folder, &[]);
    assert!(told(&output).contains(unpriced), "{}", told(&output));
    assert!(!told(&output).contains(list), "{}", told(&output));
    let objects = fs::read_to_string(folder.path().join("objects.json")).expect("a file");
    let objects = objects.replace(
        "karpenter.kwok.sh\",\"kind\":\"KWOKNodeClass",
        "karpenter.k8s.aws\",\"kind\":\"EC2NodeClass",
    );
    fs::write(folder.path().join("objects.json"), objects).expect("a file");
    let output = by_default(&folder, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains(list), "{}", told(&output));
    let output = by_default(&folder, &["--instance-types", "ec2"]);
    assert!(
        !told(&output).contains(list),
        "who asks for the list knows: {}",
        told(&output)
    );
}

fn waiting(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
        "status": {"phase": "Pending"},
    })
}

/// The empty node is no longer empty then. It is kept for the pod, and what room it has left is for the pods of others.
#[test]
fn a_pod_that_waits_takes_its_room_before_nodes_go() {
    let folder = folder_with(&[waiting("next", "6")]);
    expect![[r#"
        launch   for 1 pods
        delete  slack (saves $0.80/h)
        stay    bare  Nominated: pending pods are expected on the node until 2026-01-01T00:00:20Z
        stay    full  NotCheaper: it costs $0.8000 an hour and a replacement would cost $0.8000
        stay    kept  DoNotDisrupt: pod default/held has annotation karpenter.sh/do-not-disrupt
        4 nodes at $3.20 an hour → 3 nodes at $2.40 an hour; 1 pods evicted
    "#]]
    .assert_eq(&printed(&folder, &[]));
    expect![[r#"
        pass 1
        launch   for 1 pods
        delete  slack (saves $0.80/h)
        pass 2
        stay    bare  NotCheaper: it costs $0.8000 an hour and a replacement would cost $0.8000
        stay    full  NotCheaper: it costs $0.8000 an hour and a replacement would cost $0.8000
        stay    kept  DoNotDisrupt: pod default/held has annotation karpenter.sh/do-not-disrupt
        4 nodes at $3.20 an hour → 3 nodes at $2.40 an hour; 1 pods evicted
    "#]]
    .assert_eq(&printed(&folder, &["--until-rest"]));
}
