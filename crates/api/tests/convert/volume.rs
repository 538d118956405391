use api::convert;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use model::volume::BindingMode;
use serde_json::{Value, json};

use super::{fields, object};

fn claim(value: Value) -> model::VolumeClaim {
    convert::volume_claim(&object::<PersistentVolumeClaim>(value))
}

#[test]
fn a_claim_tells_its_volume_its_class_and_its_state() {
    let bound = claim(json!({
        "metadata": { "name": "data", "namespace": "shop", "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
        "spec": { "volumeName": "v1", "storageClassName": "" },
        "status": { "phase": "Lost" },
    }));
    assert_eq!(bound.key.to_string(), "shop/data");
    assert_eq!(bound.volume.as_deref(), Some("v1"));
    assert_eq!(
        bound.storage_class.as_deref(),
        Some(""),
        "no class at all is not the default one"
    );
    assert!(bound.bind_completed && bound.lost && !bound.deleting);

    let unbound = claim(json!({
        "metadata": { "name": "data", "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "volumeName": "" },
    }));
    assert_eq!((unbound.volume, unbound.storage_class), (None, None));
    assert!(unbound.deleting && !unbound.bind_completed && !unbound.lost);
}

fn volume(spec: Value) -> model::Volume {
    let written: PersistentVolume = object(json!({ "metadata": { "name": "v1" }, "spec": spec }));
    convert::volume(&written).strict().expect("all fields can be read")
}

#[test]
fn a_volume_tells_its_driver() {
    let driver = |spec: Value| volume(spec).driver;
    let csi = json!({ "csi": { "driver": "csi.a", "volumeHandle": "x" } });
    assert_eq!(driver(csi).as_deref(), Some("csi.a"));
    let built_in = json!({ "awsElasticBlockStore": { "volumeID": "x" } });
    assert_eq!(driver(built_in).as_deref(), Some("ebs.csi.aws.com"), "SC15.14.11");
    assert_eq!(
        driver(json!({ "nfs": { "path": "/", "server": "s" } })),
        None,
        "SC15.14.9"
    );
    assert!(volume(json!({ "hostPath": { "path": "/" } })).machine_bound);
    assert!(volume(json!({ "local": { "path": "/" } })).machine_bound);
}

fn placed(expression: Value) -> PersistentVolume {
    let terms = json!([{ "matchExpressions": [expression] }, {}]);
    object(json!({
        "metadata": { "name": "v1" },
        "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } },
    }))
}

#[test]
fn a_volume_tells_where_it_is() {
    let written = placed(json!({ "key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"] }));
    let volume = convert::volume(&written).strict().expect("all fields can be read");
    assert_eq!(volume.node_terms.len(), 2);
    assert_eq!(
        volume.node_terms[0][0].to_string(),
        "topology.kubernetes.io/zone In [a]"
    );
}

#[test]
fn a_place_that_cannot_be_read_is_nowhere_and_is_named() {
    let parsed = convert::volume(&placed(json!({ "key": "zone", "operator": "Near", "values": ["a"] })));
    assert_eq!(
        fields(&parsed),
        ["spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator"]
    );
    assert_eq!(parsed.value.node_terms[0][0].to_string(), "zone DoesNotExist");
}

#[test]
fn a_class_tells_when_and_where_its_volumes_come_to_be() {
    let written: StorageClass = object(json!({
        "metadata": {
            "name": "fast", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "kubernetes.io/aws-ebs",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{ "matchLabelExpressions": [{ "key": "topology.kubernetes.io/zone", "values": ["a", "b"] }] }],
    }));
    let class = convert::storage_class(&written)
        .strict()
        .expect("all fields can be read");
    assert_eq!(
        (&*class.driver, class.binding),
        ("ebs.csi.aws.com", BindingMode::WaitForFirstConsumer)
    );
    assert_eq!(
        class.allowed_topologies[0][0].to_string(),
        "topology.kubernetes.io/zone In [a b]"
    );
    assert!(class.is_default);
    assert_eq!(class.created.to_string(), "2026-01-01T00:00:00Z");
}

#[test]
fn a_class_binds_immediately_unless_it_says_otherwise() {
    let class = |mode: Value| -> StorageClass {
        object(json!({ "metadata": { "name": "c" }, "provisioner": "p", "volumeBindingMode": mode }))
    };
    assert_eq!(
        convert::storage_class(&class(Value::Null)).value.binding,
        BindingMode::Immediate
    );
    let unread = convert::storage_class(&class("Later".into()));
    assert_eq!(unread.value.binding, BindingMode::Immediate);
    assert_eq!(fields(&unread), ["volumeBindingMode"]);
}

#[test]
fn drivers_without_a_number_have_no_limit() {
    let written: CSINode = object(json!({ "metadata": { "name": "n1" }, "spec": { "drivers": [
        { "name": "csi.a", "nodeID": "n1", "topologyKeys": null, "allocatable": { "count": 10 } },
        { "name": "csi.b", "nodeID": "n1", "topologyKeys": null },
    ] } }));
    let limits = convert::attach_limits(&written);
    assert_eq!(
        limits
            .iter()
            .map(|(driver, most)| (&**driver, *most))
            .collect::<Vec<_>>(),
        [("csi.a", 10)]
    );
}
