//! Reading and writing the metadata of untyped objects.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn deletion_grace_secs(object: &Value) -> Option<i64> {
    object["metadata"]["deletionGracePeriodSeconds"].as_i64()
}

/// A list below a value, empty where there is none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    list(&object["metadata"]["finalizers"])
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    list(&object["metadata"]["ownerReferences"])
}

/// The metadata for writing; an object without any gets an empty one.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_mut(object, "metadata")
}

/// The map below a key for writing; whatever else stands there is replaced by an empty map.
pub(crate) fn map_mut<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let below = &mut object[key];
    if !below.is_object() {
        *below = json!({});
    }
    below.as_object_mut().expect("it was made a map just above")
}

/// Sets a field, or removes it when there is nothing to set.
pub(crate) fn set_or_remove(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value);
        }
        None => {
            map.remove(key);
        }
    }
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = (!finalizers.is_empty()).then(|| json!(finalizers));
    set_or_remove(metadata_mut(object), "finalizers", value);
}

/// Sets a field unless it is there; null and the empty string count as absent, as they do for Go's defaults.
pub(crate) fn set_default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let absent = map.get(key).is_none_or(|present| present.is_null() || present == "");
    if absent {
        map.insert(key.to_owned(), value.into());
    }
}

/// A moment as the API writes it: RFC 3339 with whole seconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The value at a path of keys; null where the path ends early.
pub(crate) fn at<'a>(object: &'a Value, path: &[impl AsRef<str>]) -> &'a Value {
    path.iter().fold(object, |value, key| &value[key.as_ref()])
}
