//! How much memory and processor time the program needs on a large cluster that is at rest.
//!
//! ```text
//! cargo run --release -p world --example footprint -- target/release/karpenter [NODES] [PODS]
//! ```
//!
//! Fills an API server in memory with nodes and pods, starts the program on it as a process of its own, and reads from
//! `/proc` what it takes: after it has read everything, and over a minute in which nothing happens.

use std::{
    env, fs,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use clock::SystemClock;
use http::{Method, Request};
use kube_mem::{ApiServer, https::HttpsListener};
use serde_json::{Value, json};
use tokio::time::sleep;

/// What the program takes to read and settle.
const SETTLE: Duration = Duration::from_secs(60);
const AT_REST: Duration = Duration::from_secs(60);

fn send(server: &ApiServer, method: Method, path: &str, body: &Value) {
    let kind = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Bytes::from(body.to_string()))
        .expect("a request");
    let answer = server.handle(request);
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn fill(server: &ApiServer, nodes: usize, pods: usize) {
    for crd in api::crds::all(api::crds::Variant::Kwok) {
        let crd = serde_json::to_value(crd).expect("definitions are plain data");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        send(server, Method::POST, path, &crd);
    }
    let class = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": "default" },
    });
    send(
        server,
        Method::POST,
        "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses",
        &class,
    );
    let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
    let template = json!({ "spec": { "requirements": [], "nodeClassRef": class, "expireAfter": "Never" } });
    let disruption = json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "0" }] });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "general" },
        "spec": { "template": template, "disruption": disruption },
    });
    send(server, Method::POST, "/apis/karpenter.sh/v1/nodepools", &pool);
    for number in 0..nodes {
        node(server, number, &class);
    }
    for number in 0..pods {
        pod(server, number, nodes);
    }
}

fn node(server: &ApiServer, number: usize, class: &Value) {
    let name = format!("general-{number:05}");
    let id = format!("kwok://{name}");
    let labels = json!({
        "karpenter.sh/nodepool": "general", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "on-demand", "karpenter.kwok.sh/kwoknodeclass": "default",
        "node.kubernetes.io/instance-type": "m-8x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a",
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    let meta = json!({ "name": name, "labels": labels, "finalizers": ["karpenter.sh/termination"] });
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta,
        "spec": { "requirements": [], "nodeClassRef": class, "expireAfter": "Never" },
    });
    send(server, Method::POST, "/apis/karpenter.sh/v1/nodeclaims", &claim);
    let figures = json!({ "cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "20Gi" });
    let reached = ["Launched", "Registered", "Initialized", "Ready", "ConsistentStateFound"].map(condition);
    let status = json!({ "status": {
        "providerID": id, "nodeName": name, "capacity": figures, "allocatable": figures, "conditions": reached,
        "lastPodEventTime": "2026-01-01T00:00:00Z",
    } });
    send(
        server,
        Method::PATCH,
        &format!("/apis/karpenter.sh/v1/nodeclaims/{name}/status"),
        &status,
    );
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": { "providerID": id },
        "status": { "capacity": figures, "allocatable": figures, "conditions": [condition("Ready")] },
    });
    send(server, Method::POST, "/api/v1/nodes", &node);
}

fn pod(server: &ApiServer, number: usize, nodes: usize) {
    let name = format!("web-{}-{number:05}", number % 50);
    let app = format!("web-{}", number % 50);
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": format!("uid-{app}"), "controller": true,
    });
    let variable = |n: usize| json!({ "name": format!("SETTING_{n}"), "value": "a value of the usual length" });
    let variables: Vec<Value> = (0..20).map(variable).collect();
    let container = json!({
        "name": "main", "image": "registry.example.com/team/web:1.2.3", "env": variables,
        "resources": { "requests": { "cpu": "1", "memory": "2Gi" }, "limits": { "memory": "2Gi" } },
        "ports": [{ "containerPort": 8080 }],
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": { "app": app, "tier": "front", "version": "1.2.3" },
            "annotations": { "prometheus.io/scrape": "true" }, "ownerReferences": [owner],
        },
        "spec": { "nodeName": format!("general-{:05}", number % nodes), "containers": [container] },
    });
    send(server, Method::POST, "/api/v1/namespaces/default/pods", &pod);
    let ready = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }));
    let status = json!({ "status": { "phase": "Running", "conditions": ready, "startTime": "2026-01-01T00:00:00Z" } });
    send(
        server,
        Method::PATCH,
        &format!("/api/v1/namespaces/default/pods/{name}/status"),
        &status,
    );
}

/// Kilobytes, by the name of the line.
fn memory(child: &Child, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let found = status.lines().find_map(|text| text.strip_prefix(line));
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

/// Seconds of processor time so far. The kernel counts in hundredths.
fn processor(child: &Child) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = after_name
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // State is no number, so the fields that follow it are one place further to the left.
    (fields.get(10).unwrap_or(&0.0) + fields.get(11).unwrap_or(&0.0)) / 100.0
}

#[tokio::main]
async fn main() {
    let mut arguments = env::args().skip(1);
    let program = arguments.next().expect("the path of the program is the first argument");
    let mut number = |otherwise| {
        arguments
            .next()
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (nodes, pods) = (number(1_000), number(20_000));

    let server = ApiServer::builder()
        .clock(Arc::new(SystemClock))
        .without_managers()
        .build();
    fill(&server, nodes, pods);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = HttpsListener::bind(server, address).await.expect("a free port");
    let config = env::temp_dir().join(format!("footprint-{}.kubeconfig", std::process::id()));
    fs::write(&config, listener.kubeconfig("footprint")).expect("the folder for temporary files is writable");

    let mut child = Command::new(program)
        .args([
            "controller",
            "--cloud-provider",
            "sim",
            "--disable-leader-election=true",
        ])
        .args([
            "--bind-address",
            "127.0.0.1",
            "--metrics-port",
            "0",
            "--health-probe-port",
            "0",
        ])
        .env("KUBECONFIG", &config)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program can be started");
    sleep(SETTLE).await;
    let ended = child.try_wait().expect("it is our child");
    assert!(ended.is_none(), "the program has ended by itself");
    println!("{nodes} nodes, {pods} pods");
    println!("resident after reading: {} MB", memory(&child, "VmRSS:") / 1024);
    println!("resident at most:       {} MB", memory(&child, "VmHWM:") / 1024);
    let before = processor(&child);
    println!("processor until then:   {before:.2} s");
    sleep(AT_REST).await;
    println!("processor in a minute at rest: {:.2} s", processor(&child) - before);
    println!("resident at rest:       {} MB", memory(&child, "VmRSS:") / 1024);
    child.kill().expect("it runs until it is told to stop");
    child.wait().expect("it is our child");
    fs::remove_file(&config).expect("we wrote it");
}
