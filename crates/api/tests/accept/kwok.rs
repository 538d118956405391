//! What the variant for the simulated provider admits: its own label domain is reserved, that of AWS is not.

use serde_json::{Value, json};

use crate::node_pool;
use crate::requirements::requirement;
use crate::row::{Row, Table, set};

pub fn rows() -> Vec<Row> {
    let mut pools = Table::new(node_pool::base());
    let requirements = "spec.template.spec.requirements";
    for key in [
        "kwoknodeclass",
        "instance-cpu",
        "instance-memory",
        "instance-family",
        "instance-size",
    ] {
        let key = format!("karpenter.kwok.sh/{key}");
        pools.admits("K5.1", [set(requirements, requirement(&key, "In", &["1"]))]);
    }
    pools.refuses(
        "K5.2",
        r#"label domain "karpenter.kwok.sh" is restricted"#,
        [set(
            requirements,
            requirement("karpenter.kwok.sh/unknown", "In", &["1"]),
        )],
    );
    // AP10.6, last row: without the AWS rule its domain is like any other.
    pools.admits(
        "K5.3",
        [set(
            requirements,
            requirement("karpenter.k8s.aws/unknown", "In", &["1"]),
        )],
    );

    let class: Value = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {},
    });
    let mut classes = Table::new(class);
    classes.admits("KWOKNodeClass.1", []).stores(
        "status.conditions",
        json!([{
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
        }]),
    );
    classes.admits("KWOKNodeClass.2", [set("spec.nodeRegistrationDelay", "30s")]);
    classes.refuses(
        "KWOKNodeClass.3",
        "spec.nodeRegistrationDelay",
        [set("spec.nodeRegistrationDelay", "Never")],
    );
    [pools.into_rows(), classes.into_rows()].concat()
}
