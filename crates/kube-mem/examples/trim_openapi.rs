//! Regenerates `src/openapi/definitions/*.json` from the OpenAPI v3 documents in the Kubernetes source.
//!
//! ```sh
//! dir=$(go mod download -json k8s.io/kubernetes@v1.35.4 | jq -r .Dir)
//! cargo run -p kube-mem --example trim_openapi -- "$dir/api/openapi-spec/v3"
//! ```
//!
//! Kept are the built-in kinds of the registry, the kinds of their subresources and everything these refer to.
//! Descriptions are cut to their first sentence, references lose their common prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube_mem::registry::{Gvk, builtin_types};
use serde_json::{Map, Value};

const REFERENCE: &str = "#/components/schemas/";

type Definitions = BTreeMap<String, Value>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).ok_or("usage: trim_openapi DIRECTORY")?;
    let all = read_all(Path::new(&source))?;
    let kept = closure(&all, &wanted_kinds());
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openapi/definitions");
    for (file, definitions) in by_file(kept) {
        let lines: Vec<String> = definitions
            .iter()
            .map(|(name, definition)| format!("{}:{definition}", Value::from(name.as_str())))
            .collect();
        std::fs::write(target.join(file), format!("{{\n{}\n}}\n", lines.join(",\n")))?;
    }
    Ok(())
}

fn wanted_kinds() -> BTreeSet<Gvk> {
    builtin_types()
        .iter()
        .flat_map(|ty| ty.subresources.iter().map(|sub| sub.gvk.clone()).chain([ty.gvk()]))
        .chain([Gvk::new("", "v1", "Status")])
        .collect()
}

fn read_all(directory: &Path) -> Result<Definitions, Box<dyn std::error::Error>> {
    let mut all = Definitions::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let document: Value = serde_json::from_slice(&std::fs::read(path)?)?;
            if let Some(schemas) = document["components"]["schemas"].as_object() {
                all.extend(schemas.iter().map(|(name, schema)| (name.clone(), trimmed(schema))));
            }
        }
    }
    Ok(all)
}

/// The definitions of the wanted kinds and all that they refer to.
fn closure(all: &Definitions, wanted: &BTreeSet<Gvk>) -> Definitions {
    let mut open: Vec<&String> = all
        .iter()
        .filter(|(_, schema)| defines(schema, wanted))
        .map(|(name, _)| name)
        .collect();
    let mut kept = Definitions::new();
    while let Some(name) = open.pop() {
        if kept.contains_key(name) {
            continue;
        }
        let schema = &all[name];
        kept.insert(name.clone(), schema.clone());
        let mut references = BTreeSet::new();
        collect_references(schema, &mut references);
        open.extend(all.keys().filter(|other| references.contains(other.as_str())));
    }
    kept
}

/// True for the one definition of a wanted kind; a definition that many groups share is not one.
fn defines(schema: &Value, wanted: &BTreeSet<Gvk>) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match schema["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) {
        Some([gvk]) => wanted.contains(&Gvk::new(
            text(&gvk["group"]),
            text(&gvk["version"]),
            text(&gvk["kind"]),
        )),
        _ => false,
    }
}

fn collect_references(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(Value::String(name)) = schema.get("$ref") {
        found.insert(name.clone());
    }
    for below in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
    {
        collect_references(below, found);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(key) {
            collect_references(below, found);
        }
    }
}

fn trimmed(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return schema.clone();
    };
    let mut kept = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("description", Value::String(text)) => {
                kept.insert(key.clone(), first_sentence(text).into());
            }
            ("$ref", Value::String(reference)) => {
                kept.insert(key.clone(), reference.trim_start_matches(REFERENCE).into());
            }
            // The documents wrap a reference that has siblings; here it stands beside them.
            ("allOf", Value::Array(all)) if all.len() == 1 => {
                let reference = all[0]["$ref"].as_str().unwrap_or_default();
                kept.insert("$ref".into(), reference.trim_start_matches(REFERENCE).into());
            }
            ("properties", Value::Object(properties)) => {
                let below = properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), trimmed(schema)))
                    .collect();
                kept.insert(key.clone(), Value::Object(below));
            }
            ("items" | "additionalProperties", below) => {
                kept.insert(key.clone(), trimmed(below));
            }
            _ => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

fn first_sentence(text: &str) -> String {
    let text = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = text
        .match_indices(". ")
        .map(|(at, _)| at + 1)
        .find(|&end| !text[..end].ends_with("e.g."));
    text[..end.unwrap_or(text.len())].trim().to_owned()
}

fn by_file(definitions: Definitions) -> BTreeMap<String, Definitions> {
    let mut files: BTreeMap<String, Definitions> = BTreeMap::new();
    for (name, definition) in definitions {
        let group = match name.strip_prefix("io.k8s.api.") {
            Some(rest) => rest.split('.').next().unwrap_or_default(),
            None if name.contains("apiextensions") => "apiextensions",
            None => "meta",
        };
        files
            .entry(format!("{group}.json"))
            .or_default()
            .insert(name, definition);
    }
    files
}
