//! Removing what a schema does not declare.

use serde_json::Value;

use super::structural::{Additional, Schema};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes undeclared fields and gives their paths, sorted: `spec.items[0].colour`.
pub(super) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner {
        path: Vec::new(),
        removed: Vec::new(),
    };
    pruner.value(schema, object, true, schema.preserve_unknown);
    pruner.removed.sort();
    pruner.removed
}

struct Pruner {
    path: Vec<String>,
    removed: Vec<String>,
}

impl Pruner {
    fn value(&mut self, schema: &Schema, value: &mut Value, is_root: bool, preserve: bool) {
        match value {
            Value::Object(fields) => {
                let keys: Vec<String> = fields.keys().cloned().collect();
                for key in keys {
                    if (is_root || schema.embedded) && META_FIELDS.contains(&key.as_str()) {
                        continue;
                    }
                    self.path.push(key.clone());
                    match (schema.field(&key), &schema.additional) {
                        (Some(below), _) => {
                            if let Some(value) = fields.get_mut(&key) {
                                self.value(below, value, false, below.preserve_unknown);
                            }
                        }
                        (None, Additional::Anything) if !preserve => {
                            // Keys are free, but what they hold is declared nowhere.
                            if let Some(value) = fields.get_mut(&key) {
                                self.undeclared(value);
                            }
                        }
                        (None, _) if preserve => {}
                        (None, _) => {
                            self.record();
                            fields.remove(&key);
                        }
                    }
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    match &schema.items {
                        // A list that keeps what it does not know lets its items do so too.
                        Some(below) => self.value(below, item, false, preserve || below.preserve_unknown),
                        None if preserve => {}
                        None => self.undeclared(item),
                    }
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    /// Nothing below an undeclared place is declared: maps are emptied, lists keep their length.
    fn undeclared(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for key in std::mem::take(fields).into_iter().map(|(key, _)| key) {
                    self.path.push(key);
                    self.record();
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    self.undeclared(item);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn record(&mut self) {
        let mut text = String::new();
        for part in &self.path {
            if !text.is_empty() && !part.starts_with('[') {
                text.push('.');
            }
            text.push_str(part);
        }
        self.removed.push(text);
    }
}
