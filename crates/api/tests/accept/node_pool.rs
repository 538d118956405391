//! AP17.1: NodePool.

mod demands;
mod statics;

use serde_json::{Value, json};

use crate::requirements::{BAD_KEYS, long_keys};
use crate::row::{Row, Table, set};

const REQUIREMENTS: &str = "spec.template.spec.requirements";
const LABELS: &str = "spec.template.metadata.labels";
const TAINTS: &str = "spec.template.spec.taints";
const STARTUP_TAINTS: &str = "spec.template.spec.startupTaints";
const BUDGETS: &str = "spec.disruption.budgets";
const POLICY: &str = "spec.disruption.consolidationPolicy";
const CLASS: &str = "spec.template.spec.nodeClassRef";

pub fn base() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {},
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "Exists" }],
        } } },
    })
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::new(base());
    disruption(&mut table);
    budgets(&mut table);
    taints(&mut table);
    demands::rows(&mut table);
    statics::rows(&mut table);
    table.into_rows()
}

fn disruption(t: &mut Table) {
    t.admits("AP17.1.1", [])
        .stores("spec.disruption.consolidateAfter", "0s")
        .stores(POLICY, "WhenEmptyOrUnderutilized")
        .stores(BUDGETS, json!([{ "nodes": "10%" }]))
        .stores("spec.template.spec.expireAfter", "720h");
    // The newer of the two baselines: it accepts more.
    t.admits("AP17.1.2", [set("spec.disruption", json!({}))])
        .stores("spec.disruption.consolidateAfter", "0s");
    t.admits("AP17.1.2", [set("spec.disruption", json!({})), set("spec.replicas", 1)])
        .stores("spec.disruption.consolidateAfter", "0s");
    t.admits("AP17.1.2", [set("spec.disruption.consolidateAfter", Value::Null)])
        .stores("spec.disruption.consolidateAfter", "0s");
    for path in ["spec.template.spec.expireAfter", "spec.disruption.consolidateAfter"] {
        for text in ["30s", "1h30m5s", "Never"] {
            t.admits("AP17.1.3", [set(path, text)]).stores(path, text);
        }
        for text in ["-1s", "1hr", "FooNever"] {
            t.refuses("AP17.1.4", path, [set(path, text)]);
        }
    }
    for after in ["30s", "Never"] {
        for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized"] {
            t.admits(
                "AP17.1.5",
                [set("spec.disruption.consolidateAfter", after), set(POLICY, policy)],
            );
        }
    }
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        t.admits("AP17.1.6", [set(POLICY, policy)]).runtime_ok();
    }
    for policy in ["balanced", "whenempty", "", "WhenUnderutilized", "1", "foo"] {
        t.refuses("AP17.1.7", POLICY, [set(POLICY, policy)]);
    }
    let grace = "spec.template.spec.terminationGracePeriod";
    for text in ["30s", "1h30m5s"] {
        t.admits("AP17.1.8", [set(grace, text)]);
    }
    for text in ["-1s", "1hr", "Never", "FooNever"] {
        t.refuses("AP17.1.9", grace, [set(grace, text)]);
    }
}

fn budgets(t: &mut Table) {
    let scheduled =
        |schedule: &str, duration: &str| json!([{ "nodes": "10", "schedule": schedule, "duration": duration }]);
    for schedule in ["*", "* * * * "] {
        t.refuses(
            "AP17.1.10",
            "spec.disruption.budgets[0].schedule",
            [set(BUDGETS, scheduled(schedule, "20m"))],
        );
    }
    for duration in ["-20m", "30s"] {
        t.refuses(
            "AP17.1.11",
            "spec.disruption.budgets[0].duration",
            [set(BUDGETS, scheduled("* * * * *", duration))],
        );
    }
    for duration in ["20m", "2h20m"] {
        t.admits("AP17.1.12", [set(BUDGETS, scheduled("* * * * *", duration))]);
    }
    t.admits("AP17.1.13", [set(BUDGETS, scheduled("@annually", "20m"))]);
    t.admits("AP17.1.14", [set(BUDGETS, scheduled("@dailyfoo", "20m"))]);
    t.refuses(
        "AP17.1.15",
        "spec.disruption.budgets[0].schedule",
        [set(BUDGETS, scheduled("@every 1h", "20m"))],
    );
    t.admits("AP17.1.16", [set(BUDGETS, scheduled("0 0 * * tue-mon", "6h"))]);
    for half in [
        json!({ "nodes": "10", "schedule": "@daily" }),
        json!({ "nodes": "10", "duration": "20m" }),
    ] {
        t.refuses(
            "AP17.1.17",
            "'schedule' must be set with 'duration'",
            [set(BUDGETS, json!([half]))],
        );
        t.refuses(
            "AP17.1.17",
            "'schedule' must be set with 'duration'",
            [set(BUDGETS, json!([{ "nodes": "10" }, half]))],
        );
    }
    for nodes in ["10", "10%", "100%", "0"] {
        t.admits("AP17.1.18", [set(BUDGETS, json!([{ "nodes": nodes }]))]);
    }
    for nodes in ["-10", "-10%", "1000%"] {
        t.refuses(
            "AP17.1.19",
            "spec.disruption.budgets[0].nodes",
            [set(BUDGETS, json!([{ "nodes": nodes }]))],
        );
    }
    t.refuses(
        "AP17.1.19",
        "spec.disruption.budgets[0].nodes",
        [set(BUDGETS, json!([{ "nodes": 10 }]))],
    );
    t.admits("AP17.1.20", [set(BUDGETS, json!([{ "nodes": "10" }]))]);
    t.admits("AP17.1.20", [set(BUDGETS, json!([{}]))])
        .stores(BUDGETS, json!([{ "nodes": "10%" }]));
    t.admits("AP17.1.20", [set(BUDGETS, json!([]))])
        .stores(BUDGETS, json!([]));
    let for_reasons = |reasons: &[&str]| json!([{ "nodes": "10", "reasons": reasons }]);
    for reasons in [
        &["Drifted"][..],
        &["Underutilized"],
        &["Empty"],
        &["Drifted", "Underutilized", "Empty"],
        &[],
    ] {
        t.admits("AP17.1.21", [set(BUDGETS, for_reasons(reasons))]);
    }
    for reason in ["invalid", "expired", ""] {
        t.refuses(
            "AP17.1.22",
            "spec.disruption.budgets[0].reasons[0]",
            [set(BUDGETS, for_reasons(&[reason]))],
        );
    }
    t.refuses(
        "AP17.1.23",
        "spec.disruption.budgets[0].reasons[1]: Duplicate value",
        [set(BUDGETS, for_reasons(&["Empty", "Empty"]))],
    );
    let too_many: Value = (0..51).map(|_| json!({ "nodes": "10" })).collect();
    t.refuses("AP17.1.24", "must have at most 50 items", [set(BUDGETS, too_many)]);
}

fn taints(t: &mut Table) {
    let taint = |key: &str, value: &str| json!({ "key": key, "value": value, "effect": "NoSchedule" });
    let bare = |key: &str| json!({ "key": key, "effect": "NoSchedule" });
    let good = json!([
        taint("a", "b"),
        taint("c", "d"),
        taint("e", "f"),
        bare("Test"),
        bare("test.com/Test"),
        bare("test.com.com/test")
    ]);
    t.admits("AP17.1.25", [set(TAINTS, good)]).runtime_ok();
    t.admits("AP17.1.25", [set(TAINTS, json!([bare("key-only")]))])
        .runtime_ok();
    for key in BAD_KEYS {
        t.refuses(
            "AP17.1.26",
            "spec.template.spec.taints[0].key",
            [set(TAINTS, json!([bare(key)]))],
        )
        .runtime_fails();
    }
    t.refuses(
        "AP17.1.26",
        "spec.template.spec.taints[0].key",
        [set(TAINTS, json!([{ "effect": "NoSchedule" }]))],
    )
    .runtime_fails();
    for key in long_keys() {
        t.admits("AP17.1.27", [set(TAINTS, json!([bare(&key)]))])
            .runtime_fails();
    }
    t.refuses(
        "AP17.1.28",
        "spec.template.spec.taints[0].value",
        [set(TAINTS, json!([taint("a", "???")]))],
    )
    .runtime_fails();
    t.refuses(
        "AP17.1.28",
        "spec.template.spec.taints[0].effect",
        [set(TAINTS, json!([{ "key": "a", "effect": "???" }]))],
    )
    .runtime_fails();
    t.admits(
        "AP17.1.29",
        [set(
            TAINTS,
            json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "a", "effect": "NoExecute" }]),
        )],
    )
    .runtime_ok();
    t.admits(
        "AP17.1.30",
        [set(TAINTS, json!([bare("a")])), set(STARTUP_TAINTS, json!([bare("a")]))],
    )
    .runtime_fails();
}
