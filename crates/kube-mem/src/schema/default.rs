//! Filling in defaults, after nulls that mean nothing are gone.

use serde_json::Value;

use super::structural::{Additional, Schema};

/// Removes nulls where the schema neither allows null nor has a default to put in their place.
pub(super) fn prune_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, below| match schema.field(key) {
                Some(below_schema) => !(below.is_null() && !below_schema.nullable && below_schema.default.is_none()),
                None => true,
            });
            for (key, below) in fields {
                if let Some(schema) = schema.field(key) {
                    prune_nulls(schema, below);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| prune_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// Puts defaults where a declared field is absent, or null without being allowed to be.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    let is_unwanted_null = |schema: &Schema, value: &Value| value.is_null() && !schema.nullable;
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default
                    && fields.get(name).is_none_or(|value| is_unwanted_null(property, value))
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (key, below) in fields {
                if let Some(property) = schema.properties.get(key) {
                    fill(property, below);
                } else if let Additional::Typed(values) = &schema.additional {
                    if is_unwanted_null(values, below) {
                        *below = values.default.clone().unwrap_or_default();
                    }
                    fill(values, below);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                if is_unwanted_null(schema, item) {
                    *item = schema.default.clone().unwrap_or_default();
                }
                fill(schema, item);
            }
        }
        _ => {}
    }
}
