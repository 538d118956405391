//! `kubectl get`: objects as rows, with the columns that the real server prints.
//!
//! Built-in kinds have their columns in `columns.rs` and their cells in the files beside it; custom resources state
//! theirs as JSON paths (`custom.rs`).

mod columns;
mod core;
mod custom;
mod json_path;
mod pods;
mod show;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::ResourceType;
use columns::Column;
use custom::CustomColumns;

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
    let layout = Layout::of(ty);
    let rows: Vec<Value> = objects.iter().map(|object| row(&layout, object, options)).collect();
    let mut table = Map::new();
    table.insert("kind".into(), "Table".into());
    table.insert("apiVersion".into(), format!("meta.k8s.io/{}", options.version).into());
    table.insert("metadata".into(), metadata.clone());
    let headers = if options.headers { layout.columns() } else { Value::Null };
    table.insert("columnDefinitions".into(), headers);
    table.insert("rows".into(), rows.into());
    Value::Object(table)
}

/// Where the columns of a type come from.
enum Layout<'a> {
    Custom(CustomColumns<'a>),
    BuiltIn(columns::Printer),
    /// Kinds without columns of their own get a name and a time.
    Plain,
}

impl<'a> Layout<'a> {
    fn of(ty: &'a ResourceType) -> Self {
        match (&ty.custom, columns::printer(&ty.group, &ty.kind)) {
            (Some(custom), _) => Layout::Custom(CustomColumns::read(&custom.definition)),
            (None, Some(printer)) => Layout::BuiltIn(printer),
            (None, None) => Layout::Plain,
        }
    }

    fn columns(&self) -> Value {
        match self {
            Layout::Custom(columns) => columns.definitions(),
            Layout::BuiltIn(printer) => columns::parse(printer.columns).map(Column::definition).collect(),
            Layout::Plain => columns::parse("Name|Created At:date").map(Column::definition).collect(),
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Layout::Custom(columns) => columns.cells(object, now),
            Layout::BuiltIn(printer) => (printer.cells)(object, now),
            Layout::Plain => {
                let metadata = &object["metadata"];
                vec![metadata["name"].clone(), metadata["creationTimestamp"].clone()]
            }
        }
    }
}

fn row(layout: &Layout<'_>, object: &Value, options: &TableOptions) -> Value {
    let mut row = Map::new();
    row.insert("cells".into(), layout.cells(object, options.now).into());
    if let Layout::BuiltIn(printer) = layout
        && let Some(conditions) = (printer.conditions)(object)
    {
        row.insert("conditions".into(), conditions);
    }
    let carried = match options.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": format!("meta.k8s.io/{}", options.version),
            "metadata": object["metadata"],
        }),
    };
    row.insert("object".into(), carried);
    Value::Object(row)
}

#[cfg(test)]
mod tests;
