//! The node class of a pool, and pools of a fixed size.

use serde_json::json;

use super::{BUDGETS, CLASS, LABELS, REQUIREMENTS, STARTUP_TAINTS, TAINTS, base};
use crate::row::{Change, Table, changed, set};

pub fn rows(t: &mut Table) {
    class(t);
    statics(t);
}

fn class(t: &mut Table) {
    let field = |name: &str, value: &str| {
        let mut class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
        class[name] = value.into();
        [set(CLASS, class)]
    };
    t.refuses("AP17.1.60", "group may not be empty", field("group", ""));
    t.refuses("AP17.1.60", "kind may not be empty", field("kind", ""));
    t.refuses("AP17.1.60", "name may not be empty", field("name", ""));
    t.refuses(
        "AP17.1.61",
        "nodeClassRef.group is immutable",
        field("group", "other.example.com"),
    )
    .updating(&base(), []);
    t.refuses("AP17.1.61", "nodeClassRef.kind is immutable", field("kind", "Other"))
        .updating(&base(), []);
    t.admits("AP17.1.62", field("name", "other")).updating(&base(), []);
    t.refuses(
        "AP17.1.63",
        "spec.template.spec.nodeClassRef.group",
        field("group", "karpenter.k8s.aws/v1"),
    );
}

fn statics(t: &mut Table) {
    let replicas = |count: i64| set("spec.replicas", count);
    for count in [5, 0, 1000] {
        t.admits("AP17.1.64", [replicas(count)]).runtime_ok();
    }
    t.refuses("AP17.1.65", "spec.replicas", [replicas(-100)]);
    for resource in ["cpu", "memory", "pods", "ephemeral-storage"] {
        t.refuses(
            "AP17.1.66",
            "only 'limits.nodes' is supported on static NodePools",
            [replicas(5), set("spec.limits", json!({ resource: "10" }))],
        );
    }
    t.refuses(
        "AP17.1.66",
        "'weight' is not supported on static NodePools",
        [replicas(5), set("spec.weight", 25)],
    );
    let extras: Vec<Change> = vec![
        set("spec.limits", json!({ "nodes": "100" })),
        set(BUDGETS, json!([{ "nodes": "10%" }])),
        set(LABELS, json!({ "team": "a" })),
        set("spec.template.metadata.annotations", json!({ "example.com/note": "a" })),
        set(TAINTS, json!([{ "key": "a", "effect": "NoSchedule" }])),
        set(STARTUP_TAINTS, json!([{ "key": "b", "effect": "NoSchedule" }])),
        set(
            REQUIREMENTS,
            json!([{ "key": "team", "operator": "In", "values": ["a", "b"], "minValues": 2 }]),
        ),
        set("spec.template.spec.expireAfter", "Never"),
        set("spec.template.spec.terminationGracePeriod", "1h"),
    ];
    for extra in &extras {
        t.admits("AP17.1.67", [replicas(5), extra.clone()]).runtime_ok();
    }
    t.admits("AP17.1.67", extras.into_iter().chain([replicas(5)]))
        .runtime_ok();
    t.refuses(
        "AP17.1.68",
        "only 'limits.nodes' is supported on static NodePools",
        [replicas(5), set("spec.limits", json!({ "nodes": "100", "cpu": "10" }))],
    );
    t.admits("AP17.1.69", [replicas(5)]).updating(&base(), [replicas(3)]);
    let limited = |nodes: &str| [replicas(3), set("spec.limits", json!({ "nodes": nodes }))];
    t.admits("AP17.1.69", limited("100")).updating(&base(), limited("10"));
    let because = "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset)";
    t.refuses("AP17.1.70", because, [])
        .updating(&changed(&base(), &[replicas(3)]), []);
    t.refuses("AP17.1.70", because, [replicas(3)]).updating(&base(), []);
    for weight in [0, 101] {
        t.refuses("AP17.1.71", "spec.weight", [set("spec.weight", weight)]);
    }
    t.admits("AP17.1.72", [set("spec.limits", json!({ "cpu": 1000 }))]);
    t.admits("AP17.1.72", [set("spec.limits", json!({ "cpu": "1k" }))]);
}
