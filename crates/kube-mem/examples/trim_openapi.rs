//! Regenerates `src/openapi/definitions/*.json` from the Kubernetes source.
//!
//! ```sh
//! module() { go mod download -json "k8s.io/$1" | jq -r .Dir; }
//! cargo run -p kube-mem --example trim_openapi -- "$(module kubernetes@v1.35.4)" "$(module api@v0.35.4)" \
//!     "$(module apimachinery@v0.35.4)" "$(module apiextensions-apiserver@v0.35.4)"
//! ```
//!
//! Kept are the built-in kinds of the registry, the kinds of their subresources and everything these refer to.
//! Descriptions are cut to their first sentence, references lose their common prefix. Every property gets what only
//! the Go types tell, as `x-go`: its protobuf field number (with the number of the embedded struct before it), `*` if
//! it is a pointer, `?` if it is left out when empty, `!` if it is left out when it is a struct of zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube_mem::registry::{Gvk, builtin_types};
use serde_json::{Map, Value};

const REFERENCE: &str = "#/components/schemas/";

type Definitions = BTreeMap<String, Value>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let modules: Vec<String> = std::env::args().skip(1).collect();
    let [kubernetes, api, machinery, extensions] = modules.as_slice() else {
        return Err("usage: trim_openapi KUBERNETES API APIMACHINERY APIEXTENSIONS".into());
    };
    let all = read_all(&Path::new(kubernetes).join("api/openapi-spec/v3"))?;
    let mut kept = closure(&all, &wanted_kinds());
    for (name, definition) in &mut kept {
        let directory = match name.rsplit_once('.').map(|(package, _)| package).unwrap_or_default() {
            "io.k8s.apimachinery.pkg.apis.meta.v1" => Path::new(machinery).join("pkg/apis/meta/v1"),
            package => match package.strip_prefix("io.k8s.api.") {
                Some(group) => Path::new(api).join(group.replace('.', "/")),
                None if package.contains("apiextensions") => Path::new(extensions).join("pkg/apis/apiextensions/v1"),
                None => continue,
            },
        };
        add_go_facts(
            definition,
            name.rsplit('.').next().unwrap_or_default(),
            &go_structs(&directory)?,
        );
    }
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

/// A field of a Go struct.
#[derive(Clone)]
struct GoField {
    kind: String,
    json: String,
    inline: bool,
    omit_empty: bool,
    omit_zero: bool,
    number: String,
}

type GoStructs = BTreeMap<String, Vec<GoField>>;

/// The structs of a package, read line by line: generated protobuf types keep one field on a line.
fn go_structs(directory: &Path) -> Result<GoStructs, Box<dyn std::error::Error>> {
    let mut structs = GoStructs::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with("types") || !name.ends_with(".go") {
            continue;
        }
        let mut open: Option<String> = None;
        for line in std::fs::read_to_string(&path)?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (&open, words.as_slice()) {
                (None, ["type", name, "struct", "{"]) => open = Some((*name).to_owned()),
                (Some(_), ["}"]) if line == "}" => open = None,
                (Some(name), _) => {
                    if let Some(field) = go_field(line) {
                        structs.entry(name.clone()).or_default().push(field);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(structs)
}

fn go_field(line: &str) -> Option<GoField> {
    let (code, tags) = line.trim().split_once('`')?;
    if code.starts_with("//") {
        return None;
    }
    let tag = |name: &str| tags.split_once(&format!("{name}:\""))?.1.split('"').next();
    let json = tag("json")?;
    let mut options = json.split(',');
    let name = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    Some(GoField {
        kind: code.split_whitespace().last()?.to_owned(),
        json: name.to_owned(),
        inline: options.contains(&"inline"),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        number: tag("protobuf")
            .and_then(|tag| tag.split(',').nth(1))
            .unwrap_or_default()
            .to_owned(),
    })
}

fn add_go_facts(definition: &mut Value, name: &str, structs: &GoStructs) {
    let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (property, schema) in properties {
        if let Some(facts) = go_facts(property, name, structs) {
            schema["x-go"] = facts.into();
        }
    }
}

fn go_facts(property: &str, name: &str, structs: &GoStructs) -> Option<String> {
    let fields = structs.get(name)?;
    if let Some(field) = fields.iter().find(|field| field.json == property) {
        let flags = [
            ("*", field.kind.starts_with('*')),
            ("?", field.omit_empty),
            ("!", field.omit_zero),
        ];
        let flags: String = flags
            .into_iter()
            .filter(|(_, holds)| *holds)
            .map(|(flag, _)| flag)
            .collect();
        return Some(format!("{}{flags}", field.number));
    }
    fields.iter().filter(|field| field.inline).find_map(|field| {
        let embedded = field.kind.rsplit('.').next()?;
        let facts = go_facts(property, embedded.trim_start_matches('*'), structs)?;
        Some(if field.number.is_empty() {
            facts
        } else {
            format!("{}.{facts}", field.number)
        })
    })
}
