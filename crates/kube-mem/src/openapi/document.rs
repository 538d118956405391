//! One group and version: its paths, its kinds, and all that the kinds refer to.

use serde_json::{Map, Value, json};

use super::definitions::{definition, name_of};
use super::{VERSION, paths};
use crate::registry::{Registry, ResourceType};
use crate::schema::with_object_meta;

const REFERENCE: &str = "#/components/schemas/";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The OpenAPI v3 document of a group and version, or nothing if nothing is served there.
pub(super) fn of(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let types: Vec<&ResourceType> = registry.of_group_version(group, version).map(|ty| &**ty).collect();
    if types.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    for ty in &types {
        match &ty.custom {
            Some(custom) => {
                let schema = custom_schema(ty, &custom.definition["schema"]["openAPIV3Schema"]);
                let name = custom_name(ty, &ty.kind);
                schemas.insert(custom_name(ty, &ty.list_kind), list_schema(ty, &name));
                add(&mut schemas, &name, &schema);
            }
            None => {
                let kinds = ty.subresources.iter().map(|sub| sub.gvk.clone()).chain([ty.gvk()]);
                kinds.for_each(|gvk| add_named(&mut schemas, &name_of(&gvk)));
            }
        }
    }
    // Answers to deletes and refusals.
    add_named(&mut schemas, "io.k8s.apimachinery.pkg.apis.meta.v1.Status");
    let paths: Map<String, Value> = types.iter().flat_map(|ty| paths::of(ty)).collect();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn add_named(schemas: &mut Map<String, Value>, name: &str) {
    if let Some(schema) = definition(name).filter(|_| !schemas.contains_key(name)) {
        add(schemas, name, schema);
    }
}

/// Adds a schema with all that it refers to. It is entered first, so that it may refer to itself.
fn add(schemas: &mut Map<String, Value>, name: &str, schema: &Value) {
    schemas.insert(name.to_owned(), Value::Null);
    let full = resolved(schemas, schema);
    schemas.insert(name.to_owned(), full);
}

/// The schema with its references in the form of the document.
fn resolved(schemas: &mut Map<String, Value>, schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return schema.clone();
    };
    let mut full = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("$ref", Value::String(name)) => {
                add_named(schemas, name);
                let reference = json!({"$ref": format!("{REFERENCE}{name}")});
                // A reference with siblings has to be wrapped; alone it stands for the whole schema.
                if fields.keys().all(|key| ["$ref", "x-go"].contains(&key.as_str())) {
                    return reference;
                }
                full.insert("allOf".into(), json!([reference]));
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties
                    .iter()
                    .map(|(name, below)| (name.clone(), resolved(schemas, below)))
                    .collect();
                full.insert(key.clone(), Value::Object(properties));
            }
            ("items" | "additionalProperties", below) => {
                full.insert(key.clone(), resolved(schemas, below));
            }
            // Facts for this server, not for its clients.
            ("x-go", _) => {}
            _ => {
                full.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(full)
}

/// `com.example.v1.Widget` for kind `Widget` of group `example.com`.
fn custom_name(ty: &ResourceType, kind: &str) -> String {
    let mut parts: Vec<&str> = ty.group.split('.').rev().collect();
    parts.extend([ty.version.as_str(), kind]);
    parts.join(".")
}

fn custom_schema(ty: &ResourceType, schema: &Value) -> Value {
    let mut full = with_object_meta(schema, true);
    full["x-kubernetes-group-version-kind"] = json!([gvk(ty, &ty.kind)]);
    for (name, description) in [
        ("apiVersion", "The version of the schema of this object."),
        ("kind", "The type that this object represents."),
        ("metadata", "Standard object metadata."),
    ] {
        full["properties"][name]["description"] = description.into();
    }
    full
}

fn list_schema(ty: &ResourceType, item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": format!("{REFERENCE}{item}")}},
            "metadata": {"$ref": format!("{REFERENCE}{LIST_META}")},
        },
        "x-kubernetes-group-version-kind": [gvk(ty, &ty.list_kind)],
    })
}

fn gvk(ty: &ResourceType, kind: &str) -> Value {
    json!({"group": ty.group, "version": ty.version, "kind": kind})
}
