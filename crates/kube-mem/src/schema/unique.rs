//! Lists of type `set` and `map` hold nothing twice.

use serde_json::{Map, Value, json};

use super::field_error::FieldError;
use super::structural::{Additional, Schema};
use super::type_schema::ListKind;
use crate::complaint;

/// The duplicates in all lists of an object.
pub(super) fn duplicates(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut found = Vec::new();
    walk(schema, object, "", &mut found);
    found
}

fn walk(schema: &Schema, value: &Value, path: &str, found: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => {
            found.extend(in_list(schema, items, path));
            if let Some(below) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    walk(below, item, &format!("{path}[{at}]"), found);
                }
            }
        }
        Value::Object(fields) => {
            for (key, below) in fields {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(property), _) => walk(property, below, &child(path, key), found),
                    (None, Additional::Typed(values)) => walk(values, below, &format!("{path}[{key}]"), found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn child(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn in_list(schema: &Schema, items: &[Value], path: &str) -> Vec<FieldError> {
    let identities: Vec<Value> = match &schema.list {
        Some(ListKind::Set) => items.to_vec(),
        Some(ListKind::Keyed(keys)) => {
            let not_object = items.iter().position(|item| !item.is_object() && !item.is_null());
            if let Some(at) = not_object {
                let detail = "must be an object for an array of list-type map";
                return vec![complaint::invalid(format!("{path}[{at}]"), &items[at], detail)];
            }
            items.iter().map(|item| identity(item, keys)).collect()
        }
        _ => return Vec::new(),
    };
    // A value that stands three times is reported once, at its second place.
    let times_before = |at: usize| {
        identities[..at]
            .iter()
            .filter(|other| **other == identities[at])
            .count()
    };
    (0..items.len())
        .filter(|&at| times_before(at) == 1)
        .map(|at| complaint::duplicate(format!("{path}[{at}]"), &identities[at]))
        .collect()
}

fn identity(item: &Value, keys: &[String]) -> Value {
    let present: Map<String, Value> = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
        .collect();
    json!(present)
}
