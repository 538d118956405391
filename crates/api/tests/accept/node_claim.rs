//! AP17.2: NodeClaim.

use api::labels;
use api::vocabulary;
use serde_json::{Value, json};

use crate::requirements::{
    BAD_BOUNDS, BAD_KEYS, COMPARISONS, GOOD_KEYS, KUBERNETES_KEYS, many, requirement, without_values,
};
use crate::row::{Row, Table, drop, set};

const REQUIREMENTS: &str = "spec.requirements";
const TAINTS: &str = "spec.taints";

fn base() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {},
        "spec": {
            "nodeClassRef": { "group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default" },
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "Exists" }],
        },
    })
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::new(base());
    let t = &mut table;
    let taint = |key: &str, value: &str| json!({ "key": key, "value": value, "effect": "NoSchedule" });
    t.admits(
        "AP17.2.1",
        [set(
            TAINTS,
            json!([taint("a", "b"), taint("c", "d"), taint("e", "f"), { "key": "key-only", "effect": "NoExecute" }]),
        )],
    );
    t.admits(
        "AP17.2.1",
        [set(
            TAINTS,
            json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "a", "effect": "NoExecute" }]),
        )],
    );
    t.refuses(
        "AP17.2.2",
        "spec.taints[0].key",
        [set(TAINTS, json!([taint("???", "a")]))],
    );
    t.refuses(
        "AP17.2.2",
        "spec.taints[0].key",
        [set(TAINTS, json!([{ "effect": "NoSchedule" }]))],
    );
    t.refuses(
        "AP17.2.2",
        "spec.taints[0].value",
        [set(TAINTS, json!([taint("a", "???")]))],
    );
    t.refuses(
        "AP17.2.2",
        "spec.taints[0].effect",
        [set(TAINTS, json!([{ "key": "a", "effect": "???" }]))],
    );
    t.admits("AP17.2.3", []);
    t.refuses(
        "AP17.2.4",
        "spec.nodeClassRef.group",
        [set("spec.nodeClassRef.group", "karpenter.test.sh/v1")],
    );
    requirements(t);
    t.admits(
        "AP17.2.6",
        [set(REQUIREMENTS, requirement(labels::NODE_POOL, "In", &["x"]))],
    );
    for key in &vocabulary::aws().well_known {
        t.admits(
            "AP17.2.7",
            [set(REQUIREMENTS, requirement(key.as_str(), "In", &["test"]))],
        );
    }
    for text in ["30s", "1h30m5s"] {
        t.admits(
            "AP17.2.8",
            [set("spec.terminationGracePeriod", text), set("spec.expireAfter", text)],
        );
    }
    t.admits("AP17.2.8", [set("spec.expireAfter", "Never")]);
    t.admits("AP17.2.8", []).stores("spec.expireAfter", "720h");
    for text in ["-1s", "1hr", "FooNever"] {
        t.refuses(
            "AP17.2.8",
            "spec.terminationGracePeriod",
            [set("spec.terminationGracePeriod", text)],
        );
        t.refuses("AP17.2.8", "spec.expireAfter", [set("spec.expireAfter", text)]);
    }
    t.refuses(
        "AP17.2.8",
        "spec.terminationGracePeriod",
        [set("spec.terminationGracePeriod", "Never")],
    );
    t.refuses("AP17.2.9", "spec is immutable", [set("spec.expireAfter", "1h")])
        .updating(&base(), []);
    t.refuses("AP17.2.9", "spec is immutable", [set(TAINTS, json!([taint("a", "b")]))])
        .updating(&base(), []);
    t.admits("AP17.2.10", [set(
        "status.conditions",
        json!([{ "type": "Launched", "status": "True", "reason": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]),
    )])
    .through_status();
    t.refuses(
        "AP17.2.10",
        "status.conditions[1]: Duplicate value",
        [set(
            "status.conditions",
            json!([
                { "type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "Launched", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ]),
        )],
    )
    .through_status();
    table.into_rows()
}

/// As for pools, without a runtime step.
fn requirements(t: &mut Table) {
    let cpu = "karpenter.k8s.aws/instance-cpu";
    for key in GOOD_KEYS {
        t.admits("AP17.2.5", [set(REQUIREMENTS, without_values(key, "Exists"))]);
    }
    for key in BAD_KEYS {
        t.refuses(
            "AP17.2.5",
            "spec.requirements[0].key",
            [set(REQUIREMENTS, without_values(key, "Exists"))],
        );
    }
    for key in KUBERNETES_KEYS {
        t.admits("AP17.2.5", [set(REQUIREMENTS, requirement(key, "In", &["test"]))]);
    }
    for (key, because) in [
        ("karpenter.sh/test", r#"label domain "karpenter.sh" is restricted"#),
        (
            "karpenter.k8s.aws/unknown",
            r#"label domain "karpenter.k8s.aws" is restricted"#,
        ),
        (labels::HOSTNAME, r#"label "kubernetes.io/hostname" is restricted"#),
    ] {
        t.refuses(
            "AP17.2.5",
            because,
            [set(REQUIREMENTS, requirement(key, "In", &["test"]))],
        );
    }
    for operator in COMPARISONS {
        t.admits("AP17.2.5", [set(REQUIREMENTS, requirement(cpu, operator, &["1"]))]);
        for values in BAD_BOUNDS {
            t.refuses(
                "AP17.2.5",
                "spec.requirements",
                [set(REQUIREMENTS, requirement(cpu, operator, values))],
            );
        }
    }
    t.refuses(
        "AP17.2.5",
        "spec.requirements[0].operator",
        [set(REQUIREMENTS, requirement(cpu, "unknown", &["1"]))],
    );
    let at_least = |least: i64| json!([{ "key": "team", "operator": "In", "values": ["a"], "minValues": least }]);
    for least in [-1, 0, 51] {
        t.refuses(
            "AP17.2.5",
            "spec.requirements[0].minValues",
            [set(REQUIREMENTS, at_least(least))],
        );
    }
    t.refuses(
        "AP17.2.5",
        "requirements with 'minValues' must have at least that many values",
        [set(REQUIREMENTS, at_least(2))],
    );
    t.admits("AP17.2.5", [set(REQUIREMENTS, json!([]))]);
    t.refuses("AP17.2.5", "spec.requirements: Required value", [drop(REQUIREMENTS)]);
    t.refuses(
        "AP17.2.5",
        "must have at most 100 items",
        [set(REQUIREMENTS, many(101))],
    );
}
