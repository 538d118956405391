//! AP17.1: NodePool.

use api::labels;
use api::vocabulary;
use serde_json::{Value, json};

use crate::requirements::{
    BAD_BOUNDS, BAD_KEYS, COMPARISONS, GOOD_KEYS, KUBERNETES_KEYS, long_keys, many, requirement, without_values,
};
use crate::row::{Change, Row, Table, changed, drop, set};

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
    let mut table = Table::new("AP17.1", base());
    disruption(&mut table);
    budgets(&mut table);
    taints(&mut table);
    requirement_keys(&mut table);
    requirement_values(&mut table);
    template_labels(&mut table);
    class(&mut table);
    statics(&mut table);
    table.into_rows()
}

fn disruption(t: &mut Table) {
    t.admits(1, [])
        .stores("spec.disruption.consolidateAfter", "0s")
        .stores(POLICY, "WhenEmptyOrUnderutilized")
        .stores(BUDGETS, json!([{ "nodes": "10%" }]))
        .stores("spec.template.spec.expireAfter", "720h");
    // The newer of the two baselines: it accepts more.
    t.admits(2, [set("spec.disruption", json!({}))])
        .stores("spec.disruption.consolidateAfter", "0s");
    t.admits(2, [set("spec.disruption", json!({})), set("spec.replicas", 1)])
        .stores("spec.disruption.consolidateAfter", "0s");
    t.admits(2, [set("spec.disruption.consolidateAfter", Value::Null)])
        .stores("spec.disruption.consolidateAfter", "0s");
    for path in ["spec.template.spec.expireAfter", "spec.disruption.consolidateAfter"] {
        for text in ["30s", "1h30m5s", "Never"] {
            t.admits(3, [set(path, text)]).stores(path, text);
        }
        for text in ["-1s", "1hr", "FooNever"] {
            t.refuses(4, path, [set(path, text)]);
        }
    }
    for after in ["30s", "Never"] {
        for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized"] {
            t.admits(5, [set("spec.disruption.consolidateAfter", after), set(POLICY, policy)]);
        }
    }
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        t.admits(6, [set(POLICY, policy)]).runtime_ok();
    }
    for policy in ["balanced", "whenempty", "", "WhenUnderutilized", "1", "foo"] {
        t.refuses(7, POLICY, [set(POLICY, policy)]);
    }
    let grace = "spec.template.spec.terminationGracePeriod";
    for text in ["30s", "1h30m5s"] {
        t.admits(8, [set(grace, text)]);
    }
    for text in ["-1s", "1hr", "Never", "FooNever"] {
        t.refuses(9, grace, [set(grace, text)]);
    }
}

fn budgets(t: &mut Table) {
    let scheduled =
        |schedule: &str, duration: &str| json!([{ "nodes": "10", "schedule": schedule, "duration": duration }]);
    for schedule in ["*", "* * * * "] {
        t.refuses(
            10,
            "spec.disruption.budgets[0].schedule",
            [set(BUDGETS, scheduled(schedule, "20m"))],
        );
    }
    for duration in ["-20m", "30s"] {
        t.refuses(
            11,
            "spec.disruption.budgets[0].duration",
            [set(BUDGETS, scheduled("* * * * *", duration))],
        );
    }
    for duration in ["20m", "2h20m"] {
        t.admits(12, [set(BUDGETS, scheduled("* * * * *", duration))]);
    }
    t.admits(13, [set(BUDGETS, scheduled("@annually", "20m"))]);
    t.admits(14, [set(BUDGETS, scheduled("@dailyfoo", "20m"))]);
    t.refuses(
        15,
        "spec.disruption.budgets[0].schedule",
        [set(BUDGETS, scheduled("@every 1h", "20m"))],
    );
    t.admits(16, [set(BUDGETS, scheduled("0 0 * * tue-mon", "6h"))]);
    for half in [
        json!({ "nodes": "10", "schedule": "@daily" }),
        json!({ "nodes": "10", "duration": "20m" }),
    ] {
        t.refuses(
            17,
            "'schedule' must be set with 'duration'",
            [set(BUDGETS, json!([half]))],
        );
        t.refuses(
            17,
            "'schedule' must be set with 'duration'",
            [set(BUDGETS, json!([{ "nodes": "10" }, half]))],
        );
    }
    for nodes in ["10", "10%", "100%", "0"] {
        t.admits(18, [set(BUDGETS, json!([{ "nodes": nodes }]))]);
    }
    for nodes in ["-10", "-10%", "1000%"] {
        t.refuses(
            19,
            "spec.disruption.budgets[0].nodes",
            [set(BUDGETS, json!([{ "nodes": nodes }]))],
        );
    }
    t.refuses(
        19,
        "spec.disruption.budgets[0].nodes",
        [set(BUDGETS, json!([{ "nodes": 10 }]))],
    );
    t.admits(20, [set(BUDGETS, json!([{ "nodes": "10" }]))]);
    t.admits(20, [set(BUDGETS, json!([{}]))])
        .stores(BUDGETS, json!([{ "nodes": "10%" }]));
    t.admits(20, [set(BUDGETS, json!([]))]).stores(BUDGETS, json!([]));
    let for_reasons = |reasons: &[&str]| json!([{ "nodes": "10", "reasons": reasons }]);
    for reasons in [
        &["Drifted"][..],
        &["Underutilized"],
        &["Empty"],
        &["Drifted", "Underutilized", "Empty"],
        &[],
    ] {
        t.admits(21, [set(BUDGETS, for_reasons(reasons))]);
    }
    for reason in ["invalid", "expired", ""] {
        t.refuses(
            22,
            "spec.disruption.budgets[0].reasons[0]",
            [set(BUDGETS, for_reasons(&[reason]))],
        );
    }
    t.refuses(
        23,
        "spec.disruption.budgets[0].reasons[1]: Duplicate value",
        [set(BUDGETS, for_reasons(&["Empty", "Empty"]))],
    );
    let too_many: Value = (0..51).map(|_| json!({ "nodes": "10" })).collect();
    t.refuses(24, "must have at most 50 items", [set(BUDGETS, too_many)]);
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
    t.admits(25, [set(TAINTS, good)]).runtime_ok();
    t.admits(25, [set(TAINTS, json!([bare("key-only")]))]).runtime_ok();
    for key in BAD_KEYS {
        t.refuses(
            26,
            "spec.template.spec.taints[0].key",
            [set(TAINTS, json!([bare(key)]))],
        )
        .runtime_fails();
    }
    t.refuses(
        26,
        "spec.template.spec.taints[0].key",
        [set(TAINTS, json!([{ "effect": "NoSchedule" }]))],
    )
    .runtime_fails();
    for key in long_keys() {
        t.admits(27, [set(TAINTS, json!([bare(&key)]))]).runtime_fails();
    }
    t.refuses(
        28,
        "spec.template.spec.taints[0].value",
        [set(TAINTS, json!([taint("a", "???")]))],
    )
    .runtime_fails();
    t.refuses(
        28,
        "spec.template.spec.taints[0].effect",
        [set(TAINTS, json!([{ "key": "a", "effect": "???" }]))],
    )
    .runtime_fails();
    t.admits(
        29,
        [set(
            TAINTS,
            json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "a", "effect": "NoExecute" }]),
        )],
    )
    .runtime_ok();
    t.admits(
        30,
        [set(TAINTS, json!([bare("a")])), set(STARTUP_TAINTS, json!([bare("a")]))],
    )
    .runtime_fails();
}

fn requirement_keys(t: &mut Table) {
    for key in GOOD_KEYS {
        t.admits(31, [set(REQUIREMENTS, without_values(key, "Exists"))])
            .runtime_ok();
    }
    for key in BAD_KEYS {
        t.refuses(
            32,
            "spec.template.spec.requirements[0].key",
            [set(REQUIREMENTS, without_values(key, "Exists"))],
        )
        .runtime_fails();
    }
    for key in long_keys() {
        t.admits(33, [set(REQUIREMENTS, without_values(&key, "Exists"))])
            .runtime_fails();
    }
    t.refuses(
        34,
        r#"label "karpenter.sh/nodepool" is restricted"#,
        [set(REQUIREMENTS, requirement(labels::NODE_POOL, "In", &["default"]))],
    )
    .runtime_fails();
    t.refuses(
        37,
        r#"label domain "karpenter.sh" is restricted"#,
        [set(REQUIREMENTS, requirement("karpenter.sh/test", "In", &["test"]))],
    )
    .runtime_fails();
    t.refuses(
        37,
        r#"label "kubernetes.io/hostname" is restricted"#,
        [set(REQUIREMENTS, requirement(labels::HOSTNAME, "In", &["test"]))],
    )
    .runtime_fails();
    for key in KUBERNETES_KEYS {
        t.admits(38, [set(REQUIREMENTS, requirement(key, "In", &["test"]))])
            .runtime_ok();
    }
    let valued = [labels::NODE_POOL, labels::CAPACITY_TYPE, labels::aws::INSTANCE_TENANCY];
    for key in vocabulary::aws()
        .well_known
        .iter()
        .filter(|key| !valued.contains(&key.as_str()))
    {
        t.admits(39, [set(REQUIREMENTS, requirement(key.as_str(), "In", &["test"]))])
            .runtime_ok();
    }
}

fn requirement_values(t: &mut Table) {
    let cpu = "karpenter.k8s.aws/instance-cpu";
    for (operator, values) in [
        ("In", &["test"][..]),
        ("Gt", &["1"]),
        ("Lt", &["1"]),
        ("Gte", &["0"]),
        ("Lte", &["1"]),
    ] {
        t.admits(35, [set(REQUIREMENTS, requirement(cpu, operator, values))])
            .runtime_ok();
    }
    for operator in ["NotIn", "Exists"] {
        t.admits(35, [set(REQUIREMENTS, without_values(cpu, operator))])
            .runtime_ok();
    }
    t.refuses(
        36,
        "spec.template.spec.requirements[0].operator",
        [set(REQUIREMENTS, requirement(cpu, "unknown", &["test"]))],
    )
    .runtime_fails();
    t.admits(
        40,
        [set(
            REQUIREMENTS,
            json!([
                { "key": "team", "operator": "In", "values": ["test", "foo"] },
                { "key": "team", "operator": "NotIn", "values": ["test", "bar"] },
            ]),
        )],
    )
    .runtime_ok();
    t.admits(41, [set(REQUIREMENTS, json!([]))]).runtime_ok();
    t.refuses(
        42,
        "spec.template.spec.requirements: Required value",
        [drop(REQUIREMENTS)],
    );
    for operator in COMPARISONS {
        for values in BAD_BOUNDS {
            t.refuses(
                43,
                "spec.template.spec.requirements",
                [set(REQUIREMENTS, requirement(cpu, operator, values))],
            )
            .runtime_fails();
        }
    }
    let at_least = |least: i64, count: usize| {
        let values: Vec<String> = (0..count).map(|index| format!("v{index}")).collect();
        json!([{ "key": "team", "operator": "In", "values": values, "minValues": least }])
    };
    for least in [-1, 0, 51] {
        t.refuses(
            44,
            "spec.template.spec.requirements[0].minValues",
            [set(REQUIREMENTS, at_least(least, 60))],
        );
    }
    t.refuses(
        45,
        "requirements with 'minValues' must have at least that many values",
        [set(REQUIREMENTS, at_least(2, 1))],
    );
    let ninety: Vec<String> = (0..90).map(|index| format!("v{index}")).collect();
    t.admits(
        46,
        [set(
            REQUIREMENTS,
            json!([{ "key": "team", "operator": "In", "values": ninety }]),
        )],
    );
    t.refuses(47, "requirements", [set(REQUIREMENTS, without_values("team", "In"))])
        .runtime_fails();
    t.refuses(
        47,
        "requirements with operator 'In' must have a value defined",
        [set(REQUIREMENTS, requirement("team", "In", &[]))],
    )
    .runtime_fails();
    t.refuses(48, "must have at most 100 items", [set(REQUIREMENTS, many(101))]);
    let of = |key: &str, values: &[&str]| [set(REQUIREMENTS, requirement(key, "In", values))];
    t.admits(49, of(labels::CAPACITY_TYPE, &["xspot"])).runtime_fails();
    t.admits(50, of(labels::CAPACITY_TYPE, &["on-demand"])).runtime_ok();
    t.admits(50, of(labels::CAPACITY_TYPE, &["on-demand", "xspot"]))
        .runtime_ok();
    t.admits(51, of(labels::aws::INSTANCE_TENANCY, &["xdedicated"]))
        .runtime_fails();
    t.admits(52, of(labels::aws::INSTANCE_TENANCY, &["default"]))
        .runtime_ok();
    t.admits(52, of(labels::aws::INSTANCE_TENANCY, &["default", "xdedicated"]))
        .runtime_ok();
}

fn template_labels(t: &mut Table) {
    let label = |key: &str, value: &str| [set(LABELS, json!({ key: value }))];
    t.admits(53, label("foo", "x")).runtime_ok();
    for (key, because) in [
        (labels::NODE_POOL, r#"label "karpenter.sh/nodepool" is restricted"#),
        ("karpenter.sh/unknown", r#"label domain "karpenter.sh" is restricted"#),
        (
            "karpenter.k8s.aws/unknown",
            r#"label domain "karpenter.k8s.aws" is restricted"#,
        ),
    ] {
        t.refuses(54, because, label(key, "x")).runtime_fails();
    }
    t.admits(55, label("spaces are not allowed", "x")).runtime_fails();
    for key in long_keys() {
        t.admits(55, label(&key, "x")).runtime_fails();
    }
    t.refuses(
        56,
        "spec.template.metadata.labels.foo",
        label("foo", "/ is not allowed"),
    )
    .runtime_fails();
    for key in [
        "kops.k8s.io/instancegroup",
        "kops.k8s.io/gpu",
        "kubernetes.io",
        "k8s.io",
        "kubernetes.io/key",
        "subdomain.k8s.io",
        "subdomain.kubernetes.io/key",
    ] {
        t.admits(57, label(key, "x")).runtime_ok();
    }
    for key in vocabulary::aws()
        .well_known
        .iter()
        .filter(|key| key.as_str() != labels::NODE_POOL)
    {
        t.admits(58, label(key.as_str(), "test")).runtime_ok();
    }
    let too_many: serde_json::Map<String, Value> = (0..101).map(|index| (format!("l{index}"), "x".into())).collect();
    t.refuses(59, "must have at most 100", [set(LABELS, too_many)]);
}

fn class(t: &mut Table) {
    let field = |name: &str, value: &str| {
        let mut class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
        class[name] = value.into();
        [set(CLASS, class)]
    };
    t.refuses(60, "group may not be empty", field("group", ""));
    t.refuses(60, "kind may not be empty", field("kind", ""));
    t.refuses(60, "name may not be empty", field("name", ""));
    t.refuses(
        61,
        "nodeClassRef.group is immutable",
        field("group", "other.example.com"),
    )
    .updating(&base(), []);
    t.refuses(61, "nodeClassRef.kind is immutable", field("kind", "Other"))
        .updating(&base(), []);
    t.admits(62, field("name", "other")).updating(&base(), []);
    t.refuses(
        63,
        "spec.template.spec.nodeClassRef.group",
        field("group", "karpenter.k8s.aws/v1"),
    );
}

fn statics(t: &mut Table) {
    let replicas = |count: i64| set("spec.replicas", count);
    for count in [5, 0, 1000] {
        t.admits(64, [replicas(count)]).runtime_ok();
    }
    t.refuses(65, "spec.replicas", [replicas(-100)]);
    for resource in ["cpu", "memory", "pods", "ephemeral-storage"] {
        t.refuses(
            66,
            "only 'limits.nodes' is supported on static NodePools",
            [replicas(5), set("spec.limits", json!({ resource: "10" }))],
        );
    }
    t.refuses(
        66,
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
        t.admits(67, [replicas(5), extra.clone()]).runtime_ok();
    }
    t.admits(67, extras.into_iter().chain([replicas(5)])).runtime_ok();
    t.refuses(
        68,
        "only 'limits.nodes' is supported on static NodePools",
        [replicas(5), set("spec.limits", json!({ "nodes": "100", "cpu": "10" }))],
    );
    t.admits(69, [replicas(5)]).updating(&base(), [replicas(3)]);
    let limited = |nodes: &str| [replicas(3), set("spec.limits", json!({ "nodes": nodes }))];
    t.admits(69, limited("100")).updating(&base(), limited("10"));
    let because = "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset)";
    t.refuses(70, because, [])
        .updating(&changed(&base(), &[replicas(3)]), []);
    t.refuses(70, because, [replicas(3)]).updating(&base(), []);
    for weight in [0, 101] {
        t.refuses(71, "spec.weight", [set("spec.weight", weight)]);
    }
    t.admits(72, [set("spec.limits", json!({ "cpu": 1000 }))]);
    t.admits(72, [set("spec.limits", json!({ "cpu": "1k" }))]);
}
