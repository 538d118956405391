//! Claims, slices and classes of devices reach the snapshot, and leave it.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use model::PodKey;
use serde_json::{Value, json};
use state::{Index, Indexed, Served};

fn parse<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the literal is an object of its kind")
}

fn meta(name: &str, namespace: Option<&str>, version: u64) -> Value {
    json!({ "name": name, "namespace": namespace, "uid": name, "resourceVersion": version.to_string() })
}

fn put_twice<K: Indexed<DynamicType: Default>>(index: &Index, old: Value, new: Value) {
    index.apply(parse::<K>(old.clone()));
    index.apply(parse::<K>(new));
    // A watch may bring an older state late.
    index.apply(parse::<K>(old));
}

/// LC-M11: what is published and what is allocated is known, and known anew.
#[test]
fn the_newest_version_of_devices_is_in_the_snapshot() {
    let index = Index::new(Arc::default(), Served::new([]));
    let claim = |version: u64, class: &str| {
        json!({
            "metadata": meta("gpu", Some("ml"), version),
            "spec": { "devices": { "requests": [{ "name": "r", "exactly": { "deviceClassName": class } }] } },
        })
    };
    let slice = |version: u64, driver: &str| {
        json!({
            "metadata": meta("s", None, version),
            "spec": { "driver": driver, "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 }, "allNodes": true },
        })
    };
    let class = |version: u64, expression: &str| {
        json!({
            "metadata": meta("gpu", None, version),
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        })
    };
    put_twice::<ResourceClaim>(&index, claim(1, "old"), claim(2, "new"));
    put_twice::<ResourceSlice>(&index, slice(3, "old"), slice(4, "new"));
    put_twice::<DeviceClass>(&index, class(5, "false"), class(6, "true"));

    let key = PodKey::new("ml", "gpu");
    let snapshot = &index.view().snapshot;
    assert!(format!("{:?}", snapshot.resource_claims[&key]).contains("\"new\""));
    assert_eq!(&*snapshot.resource_slices[&Arc::from("s")].driver, "new");
    assert!(format!("{:?}", snapshot.device_classes[&Arc::from("gpu")]).contains("\"true\""));

    index.delete(&parse::<ResourceClaim>(claim(7, "new")));
    index.delete(&parse::<ResourceSlice>(slice(8, "new")));
    index.delete(&parse::<DeviceClass>(class(9, "true")));
    let snapshot = &index.view().snapshot;
    assert!(snapshot.resource_claims.is_empty() && snapshot.resource_slices.is_empty());
    assert!(snapshot.device_classes.is_empty());
}
