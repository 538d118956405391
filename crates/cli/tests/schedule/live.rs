//! A live cluster instead of files: the same plan.

use std::{fs, process::Output};

use api::crds::Variant;
use serde_json::{Value, json};

use crate::{catalog, server};

struct Live(server::Live);

impl Live {
    async fn start(with_crds: bool) -> Self {
        let definitions = if with_crds {
            api::crds::all(Variant::Kwok)
        } else {
            Vec::new()
        };
        let live = server::Live::start(&definitions).await;
        fs::write(live.folder().join("types.json"), catalog().to_string()).expect("a file");
        Self(live)
    }

    async fn apply(&self, object: Value) {
        self.0.apply(object).await;
    }

    async fn run(&self, more: &[&str]) -> Output {
        let mut arguments = vec![
            "schedule",
            "--kubeconfig",
            "kubeconfig",
            "--instance-types",
            "types.json",
            "-o",
            "json",
        ];
        arguments.extend(more);
        self.0.run(&arguments).await
    }

    async fn plan(&self, more: &[&str]) -> Value {
        let output = self.run(more).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    async fn populate(&self, pods: usize) {
        self.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            .await;
        self.apply(
            json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
            "spec": {"template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        )
        .await;
        for number in 0..pods {
            self.apply(pod(&format!("web-{number}"), true)).await;
        }
    }
}

fn pod(name: &str, unschedulable: bool) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}});
    if unschedulable {
        pod["status"] = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    }
    pod
}

fn placed(plan: &Value) -> usize {
    let nodes = plan["newNodes"].as_array().expect("a list");
    nodes
        .iter()
        .map(|node| node["pods"].as_array().expect("pods").len())
        .sum()
}

/// More pods than fit on one page of a list. A pod that no scheduler has looked at yet does not count.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_of_a_kubeconfig_is_planned_for() {
    let live = Live::start(true).await;
    live.populate(510).await;
    live.apply(pod("new", false)).await;
    let plan = live.plan(&[]).await;
    assert_eq!((placed(&plan), &plan["unschedulable"]), (510, &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn default_spreads_find_the_services_of_a_live_cluster() {
    let live = Live::start(true).await;
    live.populate(4).await;
    live.apply(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
    )
    .await;
    assert_eq!(live.plan(&[]).await["newNodes"].as_array().map(Vec::len), Some(1));
    let spread = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
                  whenUnsatisfiable: DoNotSchedule}]}";
    let plan = live.plan(&["--scheduler-config", spread]).await;
    assert_eq!(plan["newNodes"].as_array().map(Vec::len), Some(4));
}

/// Kinds that nobody has installed are not there; that is no reason to fail.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_our_resources_has_nothing_to_launch_from() {
    let live = Live::start(false).await;
    live.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await;
    live.apply(pod("web", true)).await;
    let plan = live.plan(&[]).await;
    assert_eq!(plan["newNodes"], json!([]));
    assert_eq!(plan["unschedulable"][0]["pod"], json!("shop/web"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_answer_is_told_apart_from_bad_input() {
    let live = Live::start(false).await;
    let kubeconfig = live.0.folder().join("kubeconfig");
    let config = fs::read_to_string(&kubeconfig).expect("a file");
    let (before, after) = config.split_once("127.0.0.1:").expect("an address");
    let port = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    // Port 9 of the loopback is nobody's.
    fs::write(&kubeconfig, format!("{before}127.0.0.1:9{port}")).expect("a file");
    let output = live.run(&[]).await;
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty());

    let output = live.run(&["--context", "nowhere"]).await;
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::write(&kubeconfig, "just words").expect("a file");
    let output = live.run(&[]).await;
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
