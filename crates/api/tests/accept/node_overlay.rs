//! AP17.3: NodeOverlay.

use api::labels;
use serde_json::{Value, json};

use crate::requirements::{
    BAD_BOUNDS, BAD_KEYS, COMPARISONS, GOOD_KEYS, KUBERNETES_KEYS, long_keys, many, requirement, without_values,
};
use crate::row::{Row, Table, drop, set};

const REQUIREMENTS: &str = "spec.requirements";
const PRICE: &str = "spec.price";
const ADJUSTMENT: &str = "spec.priceAdjustment";
const CAPACITY: &str = "spec.capacity";

fn base() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {},
        "spec": { "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "Exists" }] },
    })
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::new(base());
    requirements(&mut table);
    prices(&mut table);
    capacity(&mut table);
    table.into_rows()
}

fn requirements(t: &mut Table) {
    let cpu = "karpenter.k8s.aws/instance-cpu";
    for (operator, because) in [
        ("In", "requirements with operator 'In' must have a value defined"),
        ("NotIn", "requirements with operator 'NotIn' must have a value defined"),
    ] {
        t.refuses(
            "AP17.3.1",
            because,
            [set(REQUIREMENTS, requirement(cpu, operator, &[]))],
        )
        .runtime_fails();
        t.refuses(
            "AP17.3.1",
            "spec.requirements",
            [set(REQUIREMENTS, without_values(cpu, operator))],
        )
        .runtime_fails();
    }
    for key in GOOD_KEYS {
        t.admits("AP17.3.2", [set(REQUIREMENTS, without_values(key, "Exists"))])
            .runtime_ok();
    }
    for key in BAD_KEYS {
        t.refuses(
            "AP17.3.2",
            "spec.requirements[0].key",
            [set(REQUIREMENTS, without_values(key, "Exists"))],
        )
        .runtime_fails();
    }
    for key in long_keys() {
        t.admits("AP17.3.2", [set(REQUIREMENTS, without_values(&key, "Exists"))])
            .runtime_fails();
    }
    for key in KUBERNETES_KEYS {
        t.admits("AP17.3.2", [set(REQUIREMENTS, requirement(key, "In", &["test"]))])
            .runtime_ok();
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
            "AP17.3.2",
            because,
            [set(REQUIREMENTS, requirement(key, "In", &["test"]))],
        )
        .runtime_fails();
    }
    // Facts of placement are no facts of an instance type: overlays cannot select on them.
    t.refuses(
        "AP17.3.2",
        r#"label domain "karpenter.k8s.aws" is restricted"#,
        [set(
            REQUIREMENTS,
            requirement(labels::aws::INSTANCE_TENANCY, "In", &["default"]),
        )],
    );
    t.refuses(
        "AP17.3.2",
        "must have at most 100 items",
        [set(REQUIREMENTS, many(101))],
    );
    for operator in COMPARISONS {
        for values in BAD_BOUNDS {
            t.refuses(
                "AP17.3.2",
                "spec.requirements",
                [set(REQUIREMENTS, requirement(cpu, operator, values))],
            )
            .runtime_fails();
        }
    }
    t.admits(
        "AP17.3.3",
        [set(REQUIREMENTS, requirement(labels::NODE_POOL, "In", &["x"]))],
    )
    .runtime_ok();
    for operator in ["In", "Gt", "Lt", "Gte", "Lte", "NotIn"] {
        t.admits("AP17.3.4", [set(REQUIREMENTS, requirement(cpu, operator, &["1"]))])
            .runtime_ok();
    }
    t.admits("AP17.3.4", [set(REQUIREMENTS, without_values(cpu, "Exists"))])
        .runtime_ok();
    t.refuses("AP17.3.5", "spec.requirements: Required value", [drop(REQUIREMENTS)]);
    t.admits("AP17.3.6", [set(REQUIREMENTS, json!([]))]);
}

fn prices(t: &mut Table) {
    t.refuses(
        "AP17.3.7",
        "cannot set both 'price' and 'priceAdjustment'",
        [set(PRICE, "0.432"), set(ADJUSTMENT, "+10%")],
    );
    for price in ["43", "34.43"] {
        t.admits("AP17.3.8", [set(PRICE, price)]);
    }
    for price in [
        "+42",
        ".5",
        "42.",
        "42%",
        "3,14",
        "1e10",
        "0x42",
        "forty-two",
        "42a",
        "42 ",
        " 42",
        "42.0.0",
        "-",
        ".",
        "-.42",
        "-129",
    ] {
        t.refuses("AP17.3.9", PRICE, [set(PRICE, price)]);
    }
    for adjustment in [
        "+1%",
        "-1%",
        "-100%",
        "+100.102%",
        "+298%",
        "+43",
        "-43",
        "+34.43",
        "-34.43",
    ] {
        t.admits("AP17.3.10", [set(ADJUSTMENT, adjustment)]);
    }
    for adjustment in ["1%", "1", "1.3"] {
        t.refuses("AP17.3.11", ADJUSTMENT, [set(ADJUSTMENT, adjustment)]);
    }
    for adjustment in ["+.5", "+.5%", "-99.99%", "-129"] {
        t.admits("AP17.3.12", [set(ADJUSTMENT, adjustment)]);
    }
    for adjustment in ["-100.0%", "-101.1%", "-150%", "-.5%", "+5."] {
        t.refuses("AP17.3.13", ADJUSTMENT, [set(ADJUSTMENT, adjustment)]);
    }
}

fn capacity(t: &mut Table) {
    t.admits("AP17.3.14", [set(CAPACITY, json!({ "smarter-devices/fuse": "1" }))])
        .runtime_ok();
    for resource in ["cpu", "memory", "pods"] {
        t.refuses(
            "AP17.3.15",
            "invalid resource restricted",
            [set(CAPACITY, json!({ resource: "1" }))],
        )
        .runtime_fails();
    }
    t.admits("AP17.3.16", [set(CAPACITY, json!({ "vpc.amazonaws.com/efa": "1" }))])
        .runtime_fails();
    for weight in [0, 10_001] {
        t.refuses("AP17.3.17", "spec.weight", [set("spec.weight", weight)]);
    }
}
