//! What a pool demands of labels: requirements and template labels.

use api::labels;
use api::vocabulary;
use serde_json::{Value, json};

use super::{LABELS, REQUIREMENTS};
use crate::requirements::{
    BAD_BOUNDS, BAD_KEYS, COMPARISONS, GOOD_KEYS, KUBERNETES_KEYS, long_keys, many, requirement, without_values,
};
use crate::row::{Table, drop, set};

pub fn rows(t: &mut Table) {
    requirement_keys(t);
    requirement_values(t);
    template_labels(t);
}

fn requirement_keys(t: &mut Table) {
    for key in GOOD_KEYS {
        t.admits("AP17.1.31", [set(REQUIREMENTS, without_values(key, "Exists"))])
            .runtime_ok();
    }
    for key in BAD_KEYS {
        t.refuses(
            "AP17.1.32",
            "spec.template.spec.requirements[0].key",
            [set(REQUIREMENTS, without_values(key, "Exists"))],
        )
        .runtime_fails();
    }
    for key in long_keys() {
        t.admits("AP17.1.33", [set(REQUIREMENTS, without_values(&key, "Exists"))])
            .runtime_fails();
    }
    t.refuses(
        "AP17.1.34",
        r#"label "karpenter.sh/nodepool" is restricted"#,
        [set(REQUIREMENTS, requirement(labels::NODE_POOL, "In", &["default"]))],
    )
    .runtime_fails();
    t.refuses(
        "AP17.1.37",
        r#"label domain "karpenter.sh" is restricted"#,
        [set(REQUIREMENTS, requirement("karpenter.sh/test", "In", &["test"]))],
    )
    .runtime_fails();
    t.refuses(
        "AP17.1.37",
        r#"label "kubernetes.io/hostname" is restricted"#,
        [set(REQUIREMENTS, requirement(labels::HOSTNAME, "In", &["test"]))],
    )
    .runtime_fails();
    for key in KUBERNETES_KEYS {
        t.admits("AP17.1.38", [set(REQUIREMENTS, requirement(key, "In", &["test"]))])
            .runtime_ok();
    }
    let valued = [labels::NODE_POOL, labels::CAPACITY_TYPE, labels::aws::INSTANCE_TENANCY];
    for key in vocabulary::aws()
        .well_known
        .iter()
        .filter(|key| !valued.contains(&key.as_str()))
    {
        t.admits(
            "AP17.1.39",
            [set(REQUIREMENTS, requirement(key.as_str(), "In", &["test"]))],
        )
        .runtime_ok();
    }
}

/// AW24.2.14
fn requirement_values(t: &mut Table) {
    let cpu = "karpenter.k8s.aws/instance-cpu";
    for (operator, values) in [
        ("In", &["test"][..]),
        ("Gt", &["1"]),
        ("Lt", &["1"]),
        ("Gte", &["0"]),
        ("Lte", &["1"]),
    ] {
        t.admits("AP17.1.35", [set(REQUIREMENTS, requirement(cpu, operator, values))])
            .runtime_ok();
    }
    for operator in ["NotIn", "Exists"] {
        t.admits("AP17.1.35", [set(REQUIREMENTS, without_values(cpu, operator))])
            .runtime_ok();
    }
    t.refuses(
        "AP17.1.36",
        "spec.template.spec.requirements[0].operator",
        [set(REQUIREMENTS, requirement(cpu, "unknown", &["test"]))],
    )
    .runtime_fails();
    t.admits(
        "AP17.1.40",
        [set(
            REQUIREMENTS,
            json!([
                { "key": "team", "operator": "In", "values": ["test", "foo"] },
                { "key": "team", "operator": "NotIn", "values": ["test", "bar"] },
            ]),
        )],
    )
    .runtime_ok();
    t.admits("AP17.1.41", [set(REQUIREMENTS, json!([]))]).runtime_ok();
    t.refuses(
        "AP17.1.42",
        "spec.template.spec.requirements: Required value",
        [drop(REQUIREMENTS)],
    );
    for operator in COMPARISONS {
        for values in BAD_BOUNDS {
            t.refuses(
                "AP17.1.43",
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
            "AP17.1.44",
            "spec.template.spec.requirements[0].minValues",
            [set(REQUIREMENTS, at_least(least, 60))],
        );
    }
    t.refuses(
        "AP17.1.45",
        "requirements with 'minValues' must have at least that many values",
        [set(REQUIREMENTS, at_least(2, 1))],
    );
    let ninety: Vec<String> = (0..90).map(|index| format!("v{index}")).collect();
    t.admits(
        "AP17.1.46",
        [set(
            REQUIREMENTS,
            json!([{ "key": "team", "operator": "In", "values": ninety }]),
        )],
    );
    t.refuses(
        "AP17.1.47",
        "requirements",
        [set(REQUIREMENTS, without_values("team", "In"))],
    )
    .runtime_fails();
    t.refuses(
        "AP17.1.47",
        "requirements with operator 'In' must have a value defined",
        [set(REQUIREMENTS, requirement("team", "In", &[]))],
    )
    .runtime_fails();
    t.refuses(
        "AP17.1.48",
        "must have at most 100 items",
        [set(REQUIREMENTS, many(101))],
    );
    let of = |key: &str, values: &[&str]| [set(REQUIREMENTS, requirement(key, "In", values))];
    t.admits("AP17.1.49", of(labels::CAPACITY_TYPE, &["xspot"]))
        .runtime_fails();
    t.admits("AP17.1.50", of(labels::CAPACITY_TYPE, &["on-demand"]))
        .runtime_ok();
    t.admits("AP17.1.50", of(labels::CAPACITY_TYPE, &["on-demand", "xspot"]))
        .runtime_ok();
    t.admits("AP17.1.51", of(labels::aws::INSTANCE_TENANCY, &["xdedicated"]))
        .runtime_fails();
    t.admits("AP17.1.52", of(labels::aws::INSTANCE_TENANCY, &["default"]))
        .runtime_ok();
    t.admits(
        "AP17.1.52",
        of(labels::aws::INSTANCE_TENANCY, &["default", "xdedicated"]),
    )
    .runtime_ok();
}

fn template_labels(t: &mut Table) {
    let label = |key: &str, value: &str| [set(LABELS, json!({ key: value }))];
    t.admits("AP17.1.53", label("foo", "x")).runtime_ok();
    for (key, because) in [
        (labels::NODE_POOL, r#"label "karpenter.sh/nodepool" is restricted"#),
        ("karpenter.sh/unknown", r#"label domain "karpenter.sh" is restricted"#),
        (
            "karpenter.k8s.aws/unknown",
            r#"label domain "karpenter.k8s.aws" is restricted"#,
        ),
    ] {
        t.refuses("AP17.1.54", because, label(key, "x")).runtime_fails();
    }
    t.admits("AP17.1.55", label("spaces are not allowed", "x"))
        .runtime_fails();
    for key in long_keys() {
        t.admits("AP17.1.55", label(&key, "x")).runtime_fails();
    }
    t.refuses(
        "AP17.1.56",
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
        t.admits("AP17.1.57", label(key, "x")).runtime_ok();
    }
    for key in vocabulary::aws()
        .well_known
        .iter()
        .filter(|key| key.as_str() != labels::NODE_POOL)
    {
        t.admits("AP17.1.58", label(key.as_str(), "test")).runtime_ok();
    }
    let too_many: serde_json::Map<String, Value> = (0..101).map(|index| (format!("l{index}"), "x".into())).collect();
    t.refuses("AP17.1.59", "must have at most 100", [set(LABELS, too_many)]);
}
