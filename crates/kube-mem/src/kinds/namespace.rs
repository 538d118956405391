//! Namespaces: active until deleted, held by a finalizer in their spec.

use serde_json::{Value, json};

use crate::meta;

pub(super) fn default(object: &mut Value) {
    let name = meta::name(object).to_owned();
    meta::metadata_mut(object);
    meta::map_mut(&mut object["metadata"], "labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
}

pub(super) fn prepare_create(object: &mut Value) {
    meta::map_mut(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
    object["status"] = json!({ "phase": "Active" });
}
