//! Objects as they are written: what they are, their metadata, their fields.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::notes::{Notes, Reason};

/// Annotations that belong to the stored object or to the generation it comes from.
const FORGOTTEN_ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "karpenter.sh/provisioner-hash",
    "karpenter.k8s.aws/nodetemplate-hash",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
];

pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Group and version; core kinds have no group.
pub fn group_version(object: &Value) -> (&str, &str) {
    let api_version = text(object, "apiVersion");
    api_version.split_once('/').unwrap_or(("", api_version))
}

pub fn name(object: &Value) -> &str {
    object.get("metadata").map_or("", |metadata| text(metadata, "name"))
}

/// An annotation of the object.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// What of the metadata was written by a person: name, labels, annotations, finalizers.
pub fn metadata(object: &Value) -> Map<String, Value> {
    let mut kept = Map::new();
    for field in ["name", "labels", "annotations", "finalizers"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(field)) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    for key in FORGOTTEN_ANNOTATIONS {
        take_annotation(&mut kept, key);
    }
    kept.retain(|_, value| !is_empty(value));
    kept
}

/// Removes an annotation, and the list of annotations with the last one.
pub fn take_annotation(metadata: &mut Map<String, Value>, key: &str) -> Option<String> {
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(key);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    value?.as_str().map(str::to_owned)
}

pub fn annotate(metadata: &mut Map<String, Value>, key: &str, value: String) {
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), value.into());
    }
}

/// Nothing that a reader would miss.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// A part of an object as a type, with the paths of what the type does not know.
#[derive(Debug)]
pub struct Read<T> {
    pub value: T,
    pub unknown: Vec<String>,
}

/// Reads the field `path` of an object; an absent field reads as an empty one.
pub fn read<T: Serialize + DeserializeOwned>(object: &Value, path: &str, notes: &mut Notes) -> Option<Read<T>> {
    let written = object.get(path).filter(|value| !value.is_null());
    read_value(written.unwrap_or(&json!({})), path, notes)
}

/// Reads a value that stands at `path`.
pub fn read_value<T: Serialize + DeserializeOwned>(written: &Value, path: &str, notes: &mut Notes) -> Option<Read<T>> {
    let value: T = match serde_path_to_error::deserialize(written) {
        Ok(value) => value,
        Err(error) => {
            let inner = error.path().to_string();
            let field = if inner == "." {
                path.to_owned()
            } else {
                format!("{path}.{inner}")
            };
            let problem = error.into_inner().to_string();
            notes.refuse(field, Reason::Unreadable { problem });
            return None;
        }
    };
    let understood = serde_json::to_value(&value).unwrap_or_default();
    let mut unknown = Vec::new();
    missing(written, &understood, path, &mut unknown);
    Some(Read { value, unknown })
}

/// The paths in `written` that `understood` lacks.
fn missing(written: &Value, understood: &Value, path: &str, paths: &mut Vec<String>) {
    match (written, understood) {
        (Value::Object(written), Value::Object(understood)) => {
            for (key, value) in written.iter().filter(|(_, value)| !is_empty(value)) {
                match understood.get(key) {
                    Some(known) => missing(value, known, &format!("{path}.{key}"), paths),
                    None => paths.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(written), Value::Array(understood)) => {
            for (index, (value, known)) in written.iter().zip(understood).enumerate() {
                missing(value, known, &format!("{path}[{index}]"), paths);
            }
        }
        _ => {}
    }
}

/// Writes numbers as text in a map of quantities, which YAML lets people write without quotes.
pub fn quote_numbers(object: &mut Value, path: &[&str]) {
    match path {
        [] => {
            if let Some(number) = object.as_number() {
                *object = Value::String(number.to_string());
            }
        }
        ["*", rest @ ..] => match object {
            Value::Object(fields) => fields.values_mut().for_each(|value| quote_numbers(value, rest)),
            Value::Array(items) => items.iter_mut().for_each(|value| quote_numbers(value, rest)),
            _ => {}
        },
        [field, rest @ ..] => {
            if let Some(value) = object.get_mut(*field) {
                quote_numbers(value, rest);
            }
        }
    }
}

/// The maps of kubelet settings that hold quantities.
pub fn quote_kubelet(kubelet: &mut Value) {
    for field in ["systemReserved", "kubeReserved", "evictionHard", "evictionSoft"] {
        quote_numbers(kubelet, &[field, "*"]);
    }
}

/// An object put together from its parts; empty parts are left out.
pub fn object(api_version: &str, kind: &str, metadata: Map<String, Value>, spec: impl Serialize) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    object["spec"] = serde_json::to_value(spec).unwrap_or_default();
    object
}
