//! What a merge patch has to say to turn one object into another.

use serde_json::{Map, Value};

/// The merge patch from `before` to `after`, or nothing when they are equal. Lists are replaced whole.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for (key, new) in after {
        let changed = match before.get(key) {
            Some(old) => difference(old, new),
            None => Some(new.clone()),
        };
        if let Some(changed) = changed {
            patch.insert(key.clone(), changed);
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, patch: Option<Value>) {
        assert_eq!(difference(&before, &after), patch);
    }

    #[test]
    fn only_what_differs_travels() {
        check(json!({"a": 1, "b": {"c": 2}}), json!({"a": 1, "b": {"c": 2}}), None);
        check(
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
            json!({"a": 1, "b": {"c": 4, "d": 3}}),
            Some(json!({"b": {"c": 4}})),
        );
        check(
            json!({"a": {"b": 1}, "c": 2}),
            json!({"c": 2}),
            Some(json!({"a": null})),
        );
        check(json!({}), json!({"a": {"b": [1]}}), Some(json!({"a": {"b": [1]}})));
    }

    #[test]
    fn lists_are_replaced_whole() {
        check(
            json!({"a": [1, 2]}),
            json!({"a": [1, 2, 3]}),
            Some(json!({"a": [1, 2, 3]})),
        );
        check(json!({"a": [1]}), json!({"a": []}), Some(json!({"a": []})));
    }
}
