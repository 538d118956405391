//! Volumes, claims, classes and drivers.

use jiff::Timestamp;
use serde_json::Value;

use super::show::{age, flag, is_deleting, list, name, text, text_or};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn phase(object: &Value) -> Value {
    if is_deleting(object) {
        "Terminating".into()
    } else {
        text(&object["status"]["phase"]).into()
    }
}

/// The class by the annotation that came before the field, or by the field.
fn class(object: &Value) -> Value {
    let annotation = &object["metadata"]["annotations"][CLASS_ANNOTATION];
    text(if annotation.is_string() {
        annotation
    } else {
        &object["spec"]["storageClassName"]
    })
    .into()
}

/// `RWO,ROX`: each mode once, in a fixed order.
fn access_modes(modes: &Value) -> Value {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| list(modes).iter().any(|other| other == mode);
    let found: Vec<&str> = short
        .into_iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| short)
        .collect();
    found.join(",").into()
}

pub(super) fn persistent_volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let claim = &spec["claimRef"];
    let claim = match claim {
        Value::Object(_) => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
        _ => String::new(),
    };
    vec![
        name(object),
        text_or(&spec["capacity"]["storage"], "0").into(),
        access_modes(&spec["accessModes"]),
        text(&spec["persistentVolumeReclaimPolicy"]).into(),
        phase(object),
        claim.into(),
        class(object),
        text_or(&spec["volumeAttributesClassName"], "<unset>").into(),
        text(&object["status"]["reason"]).into(),
        age(object, now),
        text_or(&spec["volumeMode"], "<unset>").into(),
    ]
}

pub(super) fn persistent_volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let is_bound = !text(&spec["volumeName"]).is_empty();
    vec![
        name(object),
        phase(object),
        text(&spec["volumeName"]).into(),
        if is_bound {
            text_or(&status["capacity"]["storage"], "0").into()
        } else {
            "".into()
        },
        if is_bound {
            access_modes(&status["accessModes"])
        } else {
            "".into()
        },
        class(object),
        text_or(&spec["volumeAttributesClassName"], "<unset>").into(),
        age(object, now),
        text_or(&spec["volumeMode"], "<unset>").into(),
    ]
}

pub(super) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = &object["metadata"]["annotations"];
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| annotations[*key] == "true");
    let shown = if is_default {
        format!("{} (default)", text(&name(object))).into()
    } else {
        name(object)
    };
    vec![
        shown,
        text(&object["provisioner"]).into(),
        text_or(&object["reclaimPolicy"], "Delete").into(),
        text_or(&object["volumeBindingMode"], "Immediate").into(),
        flag(&object["allowVolumeExpansion"]).into(),
        age(object, now),
    ]
}

pub(super) fn volume_attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["driverName"]).into(), age(object, now)]
}

pub(super) fn volume_attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    vec![
        name(object),
        text(&spec["attacher"]).into(),
        text(&spec["source"]["persistentVolumeName"]).into(),
        text(&spec["nodeName"]).into(),
        flag(&object["status"]["attached"]).into(),
        age(object, now),
    ]
}

pub(super) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        list(&object["spec"]["drivers"]).len().into(),
        age(object, now),
    ]
}

pub(super) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let join = |values: &Value, word: fn(&Value) -> &str| -> String {
        list(values).iter().map(word).collect::<Vec<_>>().join(",")
    };
    let tokens = match &spec["tokenRequests"] {
        Value::Null => "<unset>".to_owned(),
        requests => join(requests, |request| text(&request["audience"])),
    };
    let modes = join(&spec["volumeLifecycleModes"], text);
    vec![
        name(object),
        spec["attachRequired"].as_bool().unwrap_or(true).into(),
        flag(&spec["podInfoOnMount"]).into(),
        flag(&spec["storageCapacity"]).into(),
        tokens.into(),
        flag(&spec["requiresRepublish"]).into(),
        if modes.is_empty() {
            "<none>".into()
        } else {
            modes.into()
        },
        age(object, now),
    ]
}

pub(super) fn csi_storage_capacity(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(&object["storageClassName"]).into(),
        text_or(&object["capacity"], "<unset>").into(),
    ]
}
