//! What the stories are about: kinds, and objects of them that are mostly right and sometimes wrong.

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// A resource that stories write to.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub api: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    pub has_scale: bool,
    pub strategic: bool,
    pub make: fn(&mut StdRng) -> Value,
    /// A field and values for it, for updates and patches.
    pub field: (&'static str, fn(&mut StdRng) -> Value),
}

impl Kind {
    pub fn version(&self) -> &'static str {
        self.api.trim_start_matches("/apis/").trim_start_matches("/api/")
    }
}

const fn kind(api: &'static str, plural: &'static str, kind: &'static str, make: fn(&mut StdRng) -> Value) -> Kind {
    Kind {
        api,
        plural,
        kind,
        namespaced: true,
        has_scale: false,
        strategic: true,
        make,
        field: ("/metadata/labels", labels),
    }
}

pub const KINDS: &[Kind] = &[
    Kind {
        field: ("/data", labels),
        ..kind("/api/v1", "configmaps", "ConfigMap", config_map)
    },
    Kind {
        field: ("/stringData", labels),
        ..kind("/api/v1", "secrets", "Secret", secret)
    },
    Kind {
        ..kind("/api/v1", "pods", "Pod", pod)
    },
    Kind {
        has_scale: true,
        field: ("/spec/replicas", replicas),
        ..kind("/apis/apps/v1", "deployments", "Deployment", deployment)
    },
    Kind {
        namespaced: false,
        field: ("/spec/taints", taints),
        ..kind("/api/v1", "nodes", "Node", node)
    },
    Kind {
        field: ("/spec/maxUnavailable", replicas),
        ..kind("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", budget)
    },
    Kind {
        field: ("/spec/leaseDurationSeconds", replicas),
        ..kind("/apis/coordination.k8s.io/v1", "leases", "Lease", lease)
    },
    Kind {
        has_scale: true,
        strategic: false,
        field: ("/spec/replicas", replicas),
        ..kind("/apis/example.com/v1", "widgets", "Widget", widget)
    },
    Kind {
        namespaced: false,
        field: ("/value", replicas),
        ..kind(
            "/apis/scheduling.k8s.io/v1",
            "priorityclasses",
            "PriorityClass",
            priority_class,
        )
    },
];

/// The definition of `widgets.example.com`, with the schema that the unit tests of crate::schema use.
pub fn widget_definition() -> Value {
    let version: Value = serde_json::from_str(include_str!("../../src/schema/tests/widget.json")).expect("a fixture");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    })
}

pub fn pick<T: Clone>(rng: &mut StdRng, choices: &[T]) -> T {
    choices[rng.random_range(0..choices.len())].clone()
}

/// True once in `times`.
pub fn rarely(rng: &mut StdRng, times: u32) -> bool {
    rng.random_ratio(1, times)
}

pub fn labels(rng: &mut StdRng) -> Value {
    let mut labels = json!({});
    for key in ["app", "tier", "zone"] {
        if rng.random() {
            labels[key] = pick(rng, &["a", "b", "c"]).into();
        }
    }
    if rarely(rng, 15) {
        labels["bad key!"] = "x".into();
    }
    labels
}

fn replicas(rng: &mut StdRng) -> Value {
    pick(
        rng,
        &[
            json!(0),
            json!(1),
            json!(3),
            json!(-1),
            json!("x"),
            json!(1.5),
            Value::Null,
        ],
    )
}

fn config_map(rng: &mut StdRng) -> Value {
    let mut map = json!({"data": {"a": pick(rng, &["1", "2"])}});
    if rarely(rng, 6) {
        map["binaryData"] = json!({"b": pick(rng, &["aGk=", "%%"])});
    }
    if rarely(rng, 8) {
        map["immutable"] = true.into();
    }
    if rarely(rng, 8) {
        map["data"]["n"] = 5.into();
    }
    map
}

fn secret(rng: &mut StdRng) -> Value {
    let mut secret = json!({"data": {"a": pick(rng, &["aGk=", "not base64"])}});
    if rng.random() {
        secret["stringData"] = json!({"s": "text"});
    }
    if rarely(rng, 4) {
        secret["type"] = pick(rng, &["Opaque", "kubernetes.io/tls"]).into();
    }
    secret
}

fn pod_spec(rng: &mut StdRng) -> Value {
    let mut container =
        json!({"name": pick(rng, &["main", "main", "Main!", ""]), "image": pick(rng, &["nginx", "nginx:1.2"])});
    if rng.random() {
        container["resources"] = json!({
            "requests": {"cpu": pick(rng, &["100m", "1", "0.5", "x"]), "memory": pick(rng, &["64Mi", "1Gi"])},
        });
        if rarely(rng, 3) {
            container["resources"]["limits"] = json!({"cpu": pick(rng, &["200m", "2"])});
        }
    }
    if rng.random() {
        container["ports"] = json!([{"containerPort": pick(rng, &[80, 443, 70_000])}]);
    }
    if rarely(rng, 4) {
        container["env"] = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    }
    // The real server mounts a token, which this one does not have.
    let mut spec = json!({"automountServiceAccountToken": false, "containers": [container]});
    if rarely(rng, 4) {
        spec["tolerations"] =
            json!([{"key": "k", "operator": pick(rng, &["Exists", "Equal", "Never"]), "effect": "NoSchedule"}]);
    }
    if rarely(rng, 4) {
        spec["nodeSelector"] = json!({"disk": "fast"});
    }
    if rarely(rng, 4) {
        spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    }
    if rarely(rng, 5) {
        spec["restartPolicy"] = pick(rng, &["Never", "OnFailure", "Sometimes"]).into();
    }
    if rarely(rng, 8) {
        spec["colour"] = "red".into();
    }
    if rarely(rng, 5) {
        spec["terminationGracePeriodSeconds"] = pick(rng, &[0, 5, -1]).into();
    }
    spec
}

fn pod(rng: &mut StdRng) -> Value {
    let mut pod = json!({"metadata": {"labels": labels(rng)}, "spec": pod_spec(rng)});
    if rarely(rng, 3) {
        pod["spec"]["nodeName"] = "n1".into();
    }
    pod
}

fn deployment(rng: &mut StdRng) -> Value {
    let mut deployment = json!({
        "spec": {
            "replicas": pick(rng, &[0, 1, 3]),
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": pick(rng, &["a", "a", "b"])}}, "spec": pod_spec(rng)},
        },
    });
    if rarely(rng, 4) {
        deployment["spec"]["strategy"] = pick(
            rng,
            &[
                json!({"type": "Recreate"}),
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}}),
                json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            ],
        );
    }
    deployment
}

/// The real server gives every new node a taint that its controllers take away again, so nodes bring it along here.
fn node(rng: &mut StdRng) -> Value {
    let mut node = json!({
        "metadata": {"labels": labels(rng)},
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
    });
    if rng.random() {
        node["spec"]["providerID"] = "kwok://x".into();
    }
    node
}

fn taints(rng: &mut StdRng) -> Value {
    pick(
        rng,
        &[
            json!([{"key": "k", "effect": "NoSchedule"}]),
            json!([{"key": "k", "value": "v", "effect": "NoExecute"}, {"key": "j", "effect": "NoSchedule"}]),
            json!([{"key": "k", "effect": "Sometimes"}]),
            json!([]),
        ],
    )
}

fn budget(rng: &mut StdRng) -> Value {
    let bound = pick(
        rng,
        &[
            json!({"minAvailable": 1}),
            json!({"maxUnavailable": "50%"}),
            json!({"maxUnavailable": "x%"}),
            json!({"minAvailable": 1, "maxUnavailable": 1}),
        ],
    );
    let mut spec = bound;
    spec["selector"] = json!({"matchLabels": {"app": pick(rng, &["a", "b"])}});
    json!({"spec": spec})
}

fn lease(rng: &mut StdRng) -> Value {
    json!({"spec": {
        "holderIdentity": pick(rng, &["a", "b"]),
        "leaseDurationSeconds": pick(rng, &[15, 0, 30]),
        "renewTime": pick(rng, &["2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:00Z", "yesterday"]),
    }})
}

fn widget(rng: &mut StdRng) -> Value {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../../src/schema/tests/rows.json")).expect("a fixture");
    let mut widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": pick(rng, &rows)["spec"]});
    if rng.random() {
        widget["spec"] = json!({"size": pick(rng, &["S", "M"]), "replicas": pick(rng, &[1, 2]), "tags": ["a"]});
    }
    if rarely(rng, 5) {
        widget["extra"] = 1.into();
    }
    widget
}

fn priority_class(rng: &mut StdRng) -> Value {
    json!({"value": pick(rng, &[json!(10), json!(2_000_000_000), json!("x")]), "globalDefault": false})
}

/// A status that somebody reports for the kind.
pub fn status(rng: &mut StdRng, kind: &str) -> Value {
    match kind {
        "Pod" => json!({
            "phase": pick(rng, &["Running", "Succeeded", "Pending"]),
            "conditions": [{"type": "Ready", "status": pick(rng, &["True", "False"])}],
        }),
        "Node" => json!({
            "capacity": {"cpu": pick(rng, &["4", "2000m"]), "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }),
        "PodDisruptionBudget" => json!({
            "observedGeneration": pick(rng, &[0, 1, 2]), "disruptionsAllowed": pick(rng, &[0, 1]),
            "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        }),
        "Widget" => json!({"replicas": pick(rng, &[json!(1), json!("x")]), "selector": "app=a", "none": 1}),
        _ => json!({"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1}),
    }
}
