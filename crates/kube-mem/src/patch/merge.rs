//! RFC 7386 JSON merge patch.

use serde_json::{Map, Value};

/// Merges objects key by key, removes a key on null, replaces everything else.
pub fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut merged = target.as_object().cloned().unwrap_or_else(Map::new);
    for (key, change) in changes {
        if change.is_null() {
            merged.remove(key);
        } else {
            let below = merge(merged.get(key).unwrap_or(&Value::Null), change);
            merged.insert(key.clone(), below);
        }
    }
    Value::Object(merged)
}
