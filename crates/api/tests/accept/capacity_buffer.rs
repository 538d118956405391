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
    let mut table = Table::new(base());
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
        t.admits("AP17.4.1", [template(), size])
            .stores("spec.provisioningStrategy", "buffer.x-k8s.io/active-capacity");
    }
    t.refuses(
        "AP17.4.2",
        "If podTemplateRef is set, replicas or limits must also be set",
        [template()],
    );
    t.admits("AP17.4.3", [scalable()]);
    t.admits("AP17.4.3", [scalable(), set(REPLICAS, 3)]);
    t.admits("AP17.4.3", [scalable(), set("spec.percentage", 0)]);
    t.admits("AP17.4.3", [scalable(), set(REPLICAS, 3), set("spec.percentage", 10)]);
    t.admits(
        "AP17.4.4",
        [set(SCALABLE, json!({ "kind": "ReplicationController", "name": "web" }))],
    );
    t.refuses(
        "AP17.4.5",
        "You must define either PodTemplateRef or ScalableRef, but not both",
        [template(), scalable(), set(REPLICAS, 3)],
    );
    t.refuses("AP17.4.6", "spec.replicas", [scalable(), set(REPLICAS, -1)]);
    t.refuses("AP17.4.6", "spec.percentage", [scalable(), set("spec.percentage", -1)]);
    t.refuses(
        "AP17.4.7",
        "spec.podTemplateRef.name",
        [set(TEMPLATE, json!({ "name": "" })), set(REPLICAS, 3)],
    );
    t.refuses(
        "AP17.4.7",
        "spec.scalableRef.kind",
        [set(SCALABLE, json!({ "kind": "", "name": "web" }))],
    );
    t.refuses(
        "AP17.4.7",
        "spec.scalableRef.name",
        [set(SCALABLE, json!({ "kind": "Deployment", "name": "" }))],
    );
    t.admits("AP17.4.8", []);
    table.into_rows()
}
