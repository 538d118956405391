//! The real kubectl against the server over HTTPS. Each test has its own server, port and cache.

mod kubectl {
    pub mod client;
}

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubectl::client::Kubectl;
use serde_json::{Value, json};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx, ports: [{containerPort: 80}]}]
";

const WIDGETS: &str = include_str!("kubectl/widgets.yaml");

fn pod(name: &str, node: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  nodeName: {node:?}\n  \
         terminationGracePeriodSeconds: 0\n  containers: [{{name: main, image: nginx}}]\n---\n"
    )
}

fn node(name: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{disk: fast}}}}\n---\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_what_it_serves() {
    let kubectl = Kubectl::start().await;
    assert!(kubectl.ok(&["version"]).contains("Server Version: v1.35"));
    assert!(kubectl.ok(&["cluster-info"]).contains("is running at"));
    let versions = kubectl.ok(&["api-versions"]);
    assert!(
        versions.lines().any(|line| line == "apps/v1") && versions.lines().any(|line| line == "v1"),
        "{versions}"
    );
    let resources = kubectl.ok(&["api-resources", "--no-headers"]);
    assert!(
        resources
            .lines()
            .any(|line| line.split_whitespace().eq(["pods", "po", "v1", "true", "Pod"])),
        "{resources}"
    );
    let deletable = kubectl.ok(&["api-resources", "--verbs=delete", "--namespaced=false", "-o", "name"]);
    assert!(deletable.lines().any(|line| line == "nodes"), "{deletable}");
    assert_eq!(kubectl.ok(&["auth", "can-i", "create", "pods"]).trim(), "yes");
    assert_eq!(kubectl.ok(&["get", "--raw", "/readyz"]), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_tables_and_objects() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(
        &["apply", "-f", "-"],
        &format!("{}{}{}", node("n1"), pod("a", "n1"), pod("b", "")),
    );
    assert_eq!(
        kubectl.rows(&["get", "pods"]),
        [
            "NAME READY STATUS RESTARTS AGE",
            "a 0/1 Pending 0 _",
            "b 0/1 Pending 0 _",
        ]
    );
    assert_eq!(
        kubectl.rows(&["get", "pods", "-o", "wide", "--field-selector", "spec.nodeName=n1"]),
        [
            "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
            "a 0/1 Pending 0 _ <none> n1 <none> <none>",
        ]
    );
    assert_eq!(
        kubectl.rows(&["get", "pods", "-l", "app in (b)", "--no-headers"]),
        ["b 0/1 Pending 0 _"]
    );
    assert_eq!(
        kubectl.rows(&["get", "nodes", "--show-labels"])[1],
        "n1 Unknown <none> _ disk=fast"
    );
    assert_eq!(
        kubectl.rows(&["get", "pods", "-A", "--no-headers"])[0],
        "default a 0/1 Pending 0 _"
    );
    let json: Value = serde_json::from_str(&kubectl.ok(&["get", "pod", "a", "-o", "json"])).expect("an object");
    assert_eq!(json["spec"]["nodeName"], "n1");
    assert!(kubectl.ok(&["get", "pod/a", "-o", "yaml"]).contains("\n  name: a\n"));
    assert_eq!(
        kubectl.ok(&["get", "pods", "-o", "jsonpath={.items[*].metadata.name}"]),
        "a b"
    );
    assert!(kubectl.err(&["get", "pod", "none"]).contains("pods \"none\" not found"));
    assert!(kubectl.ok(&["get", "all"]).contains("pod/a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_side_apply_merges_lists_by_key() {
    let kubectl = Kubectl::start().await;
    assert_eq!(
        kubectl.pipe(&["apply", "-f", "-"], DEPLOYMENT).trim(),
        "deployment.apps/web created"
    );
    assert_eq!(
        kubectl.pipe(&["apply", "-f", "-"], DEPLOYMENT).trim(),
        "deployment.apps/web unchanged"
    );
    // Somebody else adds a container; the next apply changes only its own.
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "envoy"}]}}}});
    kubectl.ok(&[
        "patch",
        "deployment",
        "web",
        "--type=strategic",
        "-p",
        &sidecar.to_string(),
    ]);
    let changed = DEPLOYMENT.replace("image: nginx", "image: nginx:2");
    assert_eq!(
        kubectl.pipe(&["apply", "-f", "-"], &changed).trim(),
        "deployment.apps/web configured"
    );
    let images = kubectl.ok(&[
        "get",
        "deployment",
        "web",
        "-o",
        "jsonpath={.spec.template.spec.containers[*].image}",
    ]);
    let mut images: Vec<&str> = images.split(' ').collect();
    images.sort_unstable();
    assert_eq!(images, ["envoy", "nginx:2"]);
    let diff = kubectl.run_with(&["diff", "-f", "-"], DEPLOYMENT);
    assert!(diff.stdout.contains("nginx:2"), "{}{}", diff.stdout, diff.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_takes_over_conflicts_and_forces() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(&["apply", "-f", "-"], DEPLOYMENT);
    let taken = kubectl.pipe(&["apply", "--server-side", "-f", "-"], DEPLOYMENT);
    assert_eq!(taken.trim(), "deployment.apps/web serverside-applied");
    let other = DEPLOYMENT.replace("replicas: 2", "replicas: 5");
    let args = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    let refused = kubectl.run_with(&args, &other);
    assert!(
        !refused.success && refused.stderr.contains("conflict with \"kubectl\": .spec.replicas"),
        "{}",
        refused.stderr
    );
    kubectl.pipe(
        &[
            "apply",
            "--server-side",
            "--field-manager=other",
            "--force-conflicts",
            "-f",
            "-",
        ],
        &other,
    );
    assert_eq!(
        kubectl.ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]),
        "5"
    );
    let unknown = DEPLOYMENT.replace("replicas: 2", "replicas: 2\n  colour: red");
    let refused = kubectl.run_with(&["apply", "-f", "-"], &unknown);
    assert!(
        refused.stderr.contains("unknown field \"spec.colour\""),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_labelled_tainted_cordoned_and_drained() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(&["apply", "-f", "-"], &format!("{}{}", node("n1"), pod("a", "n1")));
    kubectl.ok(&["label", "node", "n1", "disk=slow", "--overwrite"]);
    kubectl.ok(&["annotate", "node", "n1", "note=x"]);
    kubectl.ok(&["taint", "node", "n1", "team=blue:NoSchedule"]);
    assert_eq!(
        kubectl.ok(&["get", "node", "n1", "-o", "jsonpath={.spec.taints[0].key}"]),
        "team"
    );
    kubectl.ok(&["taint", "node", "n1", "team-"]);
    kubectl.ok(&["cordon", "n1"]);
    assert_eq!(
        kubectl.rows(&["get", "nodes"])[1],
        "n1 Unknown,SchedulingDisabled <none> _"
    );
    let drained = kubectl.ok(&["drain", "n1", "--force", "--ignore-daemonsets"]);
    assert!(
        drained.contains("pod/a evicted") && drained.contains("node/n1 drained"),
        "{drained}"
    );
    assert_eq!(kubectl.ok(&["get", "pods", "-o", "name"]), "");
    kubectl.ok(&["uncordon", "n1"]);
    assert!(kubectl.ok(&["describe", "node", "n1"]).contains("disk=slow"));
    assert_eq!(kubectl.ok(&["delete", "node", "n1"]).trim(), "node \"n1\" deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_holds_up_a_drain() {
    let kubectl = Kubectl::start().await;
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: keep}\nspec:\n  minAvailable: 1\n  \
                  selector: {matchLabels: {app: a}}\n---\n";
    kubectl.pipe(
        &["apply", "-f", "-"],
        &format!("{budget}{}{}", node("n1"), pod("a", "n1")),
    );
    // A budget guards only pods that have run.
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let pods: Api<Pod> = Api::default_namespaced(kubectl.client());
    pods.patch_status("a", &PatchParams::default(), &Patch::Strategic(&running))
        .await
        .expect("the pod runs");
    // kubectl retries for minutes while a budget is still being computed, so it is computed here.
    let computed = json!({"status": {
        "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0,
    }});
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(kubectl.client());
    let patched = budgets
        .patch_status("keep", &PatchParams::default(), &Patch::Merge(&computed))
        .await;
    patched.expect("the budget is computed");
    let refused = kubectl.run(&["drain", "n1", "--force", "--timeout=1s"]);
    assert!(
        !refused.success && refused.stderr.contains("disruption budget"),
        "{}",
        refused.stderr
    );
    assert_eq!(kubectl.ok(&["get", "pods", "-o", "name"]).trim(), "pod/a");
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_are_created_scaled_and_rolled_out() {
    let kubectl = Kubectl::start().await;
    kubectl.ok(&["create", "namespace", "shop"]);
    kubectl.ok(&["-n", "shop", "create", "deployment", "web", "--image=nginx"]);
    assert_eq!(
        kubectl
            .ok(&["-n", "shop", "scale", "deployment/web", "--replicas=3"])
            .trim(),
        "deployment.apps/web scaled"
    );
    assert_eq!(kubectl.rows(&["-n", "shop", "get", "deployments"])[1], "web 0/3 0 0 _");
    assert!(
        kubectl
            .ok(&["-n", "shop", "describe", "deployment", "web"])
            .contains("3 desired")
    );
    let status = json!({"status": {
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [{"type": "Available", "status": "True"}],
    }});
    let deployments: Api<Deployment> = Api::namespaced(kubectl.client(), "shop");
    let patched = deployments
        .patch_status("web", &PatchParams::default(), &Patch::Merge(&status))
        .await;
    patched.expect("the status is written");
    let done = kubectl.ok(&["-n", "shop", "rollout", "status", "deployment/web", "--timeout=10s"]);
    assert!(done.contains("successfully rolled out"), "{done}");
    kubectl.ok(&[
        "-n",
        "shop",
        "wait",
        "--for=condition=Available",
        "deployment/web",
        "--timeout=10s",
    ]);
    kubectl.ok(&["delete", "namespace", "shop"]);
    assert!(kubectl.err(&["get", "namespace", "shop"]).contains("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_have_columns_explanations_rules_and_a_scale() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(&["apply", "-f", "-"], WIDGETS);
    kubectl.ok(&[
        "wait",
        "--for=condition=Established",
        "crd/widgets.example.com",
        "--timeout=10s",
    ]);
    let widget = |size: &str| {
        format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: w}}\nspec: {{size: {size}}}\n")
    };
    kubectl.pipe(&["apply", "-f", "-"], &widget("S"));
    assert_eq!(kubectl.rows(&["get", "wd"]), ["NAME SIZE REPLICAS AGE", "w S 1 _"]);
    assert_eq!(
        kubectl.rows(&["get", "wd", "-o", "wide"])[0],
        "NAME SIZE REPLICAS AGE READY"
    );
    let refused = kubectl.run_with(&["apply", "-f", "-"], &widget("X"));
    assert!(
        refused
            .stderr
            .contains("Unsupported value: \"X\": supported values: \"S\", \"M\""),
        "{}",
        refused.stderr
    );
    let refused = kubectl.run_with(&["apply", "-f", "-"], &widget("M"));
    assert!(refused.stderr.contains("size is immutable"), "{}", refused.stderr);
    kubectl.ok(&["scale", "widget/w", "--replicas=4"]);
    assert_eq!(
        kubectl.ok(&["get", "widget", "w", "-o", "jsonpath={.spec.replicas}"]),
        "4"
    );
    assert!(
        kubectl
            .ok(&["explain", "widget.spec.size"])
            .contains("How large it is.")
    );
    assert!(
        kubectl
            .ok(&["explain", "deployment.spec.strategy"])
            .contains("rollingUpdate")
    );
    assert!(kubectl.ok(&["explain", "pods", "--recursive"]).contains("containers"));
    kubectl.ok(&["delete", "crd", "widgets.example.com"]);
    // kubectl still knows the kind from its cache; the server does not.
    let gone = kubectl.err(&["get", "widgets"]);
    assert!(
        gone.contains("the server could not find the requested resource"),
        "{gone}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_prints_each_change() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(&["apply", "-f", "-"], &node("n1"));
    let mut watch = kubectl.watch(&["get", "nodes", "-w", "--no-headers"]);
    assert_eq!(watch.row(), "n1 Unknown <none> _");
    let nodes: Api<Node> = Api::all(kubectl.client());
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    nodes
        .patch_status("n1", &PatchParams::default(), &Patch::Strategic(&ready))
        .await
        .expect("the node is ready");
    assert_eq!(watch.row(), "n1 Ready <none> _");
    kubectl.ok(&["cordon", "n1"]);
    assert_eq!(watch.row(), "n1 Ready,SchedulingDisabled <none> _");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_with_what_they_are_about() {
    let kubectl = Kubectl::start().await;
    kubectl.pipe(&["apply", "-f", "-"], &pod("a", ""));
    let pods: Api<Pod> = Api::default_namespaced(kubectl.client());
    let uid = pods.get("a").await.expect("the pod is there").metadata.uid;
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "a.1"}, "type": "Warning", "reason": "FailedScheduling", "message": "no room",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default", "uid": uid},
        "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:00Z", "count": 1,
    }))
    .expect("an event");
    Api::default_namespaced(kubectl.client())
        .create(&PostParams::default(), &event)
        .await
        .expect("the event is kept");
    assert_eq!(
        kubectl.rows(&["get", "events", "--no-headers"]),
        ["_ Warning FailedScheduling pod/a no room"]
    );
    assert_eq!(
        kubectl.rows(&["events", "--no-headers"]),
        ["_ Warning FailedScheduling Pod/a no room"]
    );
    let described = kubectl.ok(&["describe", "pod", "a"]);
    assert!(
        described.contains("FailedScheduling") && described.contains("no room"),
        "{described}"
    );
}
