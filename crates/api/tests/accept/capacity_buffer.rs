//! AP17.4: CapacityBuffer.

use serde_json::{Value, json};

use crate::row::{Row, Table, set};

const TEMPLATE: &str = "spec.podTemplateRef";
const SCALABLE: &str = "spec.scalableRef";
const REPLICAS: &str = "spec.replicas";

fn base() -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": { "namespace": "default" },
        "spec": {},
    })
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::new("AP17.4", base());
    let t = &mut table;
    let template = || set(TEMPLATE, json!({ "name": "web" }));
    let scalable = || {
        set(
            SCALABLE,
            json!({ "apiGroup": "apps", "kind": "Deployment", "name": "web" }),
        )
    };
    for size in [
        set(REPLICAS, 3),
        set(REPLICAS, 0),
        set("spec.limits", json!({ "cpu": "4" })),
    ] {
        t.admits(1, [template(), size])
            .stores("spec.provisioningStrategy", "buffer.x-k8s.io/active-capacity");
    }
    t.refuses(
        2,
        "If podTemplateRef is set, replicas or limits must also be set",
        [template()],
    );
    t.admits(3, [scalable()]);
    t.admits(3, [scalable(), set(REPLICAS, 3)]);
    t.admits(3, [scalable(), set("spec.percentage", 0)]);
    t.admits(3, [scalable(), set(REPLICAS, 3), set("spec.percentage", 10)]);
    t.admits(
        4,
        [set(SCALABLE, json!({ "kind": "ReplicationController", "name": "web" }))],
    );
    t.refuses(
        5,
        "You must define either PodTemplateRef or ScalableRef, but not both",
        [template(), scalable(), set(REPLICAS, 3)],
    );
    t.refuses(6, "spec.replicas", [scalable(), set(REPLICAS, -1)]);
    t.refuses(6, "spec.percentage", [scalable(), set("spec.percentage", -1)]);
    t.refuses(
        7,
        "spec.podTemplateRef.name",
        [set(TEMPLATE, json!({ "name": "" })), set(REPLICAS, 3)],
    );
    t.refuses(
        7,
        "spec.scalableRef.kind",
        [set(SCALABLE, json!({ "kind": "", "name": "web" }))],
    );
    t.refuses(
        7,
        "spec.scalableRef.name",
        [set(SCALABLE, json!({ "kind": "Deployment", "name": "" }))],
    );
    t.admits(8, []);
    table.into_rows()
}
