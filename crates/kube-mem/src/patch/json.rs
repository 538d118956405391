//! RFC 6902 JSON patch, with the liberties that the real server's library takes.
//!
//! `replace` sets a field that is not there, and a negative index counts from the end of a list.

use serde_json::Value;

use super::PatchError;

/// Applies a list of operations, all or nothing.
pub fn json(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed("a JSON patch is a list of operations".into()));
    };
    let mut document = target.clone();
    for operation in operations {
        apply(&mut document, operation)?;
    }
    Ok(document)
}

fn apply(document: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let path = place(operation, "path")?;
    // An absent value counts as null.
    let value = operation["value"].clone();
    match operation["op"].as_str().unwrap_or_default() {
        "add" => add(document, path, value),
        "remove" => remove(document, path).map(|_| ()),
        "replace" if path.is_empty() && (value.is_object() || value.is_array()) => {
            *document = value;
            Ok(())
        }
        "replace" => {
            let (parent, key) = parent(document, path)?;
            match parent {
                Value::Object(fields) => {
                    fields.insert(key, value);
                }
                Value::Array(items) => {
                    let at = index(&key, items.len())?;
                    items[at] = value;
                }
                _ => return Err(refused(format!("there is nothing below {path}"))),
            }
            Ok(())
        }
        "move" => {
            let moved = remove(document, place(operation, "from")?)?;
            add(document, path, moved)
        }
        "copy" => {
            let copied = get(document, place(operation, "from")?)?.unwrap_or_default();
            add(document, path, copied)
        }
        "test" => match get(document, path)?.unwrap_or_default() == value {
            true => Ok(()),
            false => Err(refused(format!("testing value {path} failed"))),
        },
        other => Err(refused(format!("Unexpected kind: {other}"))),
    }
}

fn place<'o>(operation: &'o Value, name: &str) -> Result<&'o str, PatchError> {
    operation[name]
        .as_str()
        .ok_or_else(|| refused(format!("operation failed to decode {name}")))
}

fn refused(text: String) -> PatchError {
    PatchError::Unprocessable(text)
}

/// What holds the last element of a path, and that element.
fn parent<'v>(document: &'v mut Value, path: &str) -> Result<(&'v mut Value, String), PatchError> {
    let missing = || refused(format!("doc is missing path: {path:?}"));
    let (parents, last) = path.rsplit_once('/').ok_or_else(missing)?;
    let mut at = document;
    for key in parents.split('/').skip(1) {
        let key = unescaped(key);
        at = match at {
            Value::Object(fields) => fields.get_mut(&key),
            Value::Array(items) => {
                let at = index(&key, items.len())?;
                items.get_mut(at)
            }
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    Ok((at, unescaped(last)))
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn index(key: &str, length: usize) -> Result<usize, PatchError> {
    let invalid = || refused(format!("Unable to access invalid index: {key}"));
    let at: i64 = key.parse().map_err(|_| invalid())?;
    let length = i64::try_from(length).map_err(|_| invalid())?;
    let at = if at < 0 { at + length } else { at };
    usize::try_from(at).ok().filter(|_| at < length).ok_or_else(invalid)
}

/// The value at a path; none for a field that is not there.
fn get(document: &mut Value, path: &str) -> Result<Option<Value>, PatchError> {
    if path.is_empty() {
        return Ok(Some(document.clone()));
    }
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(fields) => Ok(fields.get(&key).cloned()),
        Value::Array(items) => index(&key, items.len()).map(|at| Some(items[at].clone())),
        _ => Err(refused(format!("there is nothing below {path}"))),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&key, items.len() + 1)?;
            items.insert(at, value);
        }
        _ => return Err(refused(format!("there is nothing below {path}"))),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(fields) => fields
            .remove(&key)
            .ok_or_else(|| refused(format!("Unable to remove nonexistent key: {key}"))),
        Value::Array(items) => index(&key, items.len()).map(|at| items.remove(at)),
        _ => Err(refused(format!("there is nothing below {path}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_do_what_they_say() {
        let before = json!({"a": {"b": 1}, "list": [1, 2, 3], "x/y": 0});
        let rows = [
            (
                json!([{"op": "add", "path": "/a/c", "value": 2}]),
                json!({"a": {"b": 1, "c": 2}, "list": [1, 2, 3], "x/y": 0}),
            ),
            (
                json!([{"op": "add", "path": "/list/1", "value": 9}]),
                json!({"a": {"b": 1}, "list": [1, 9, 2, 3], "x/y": 0}),
            ),
            (
                json!([{"op": "add", "path": "/list/-", "value": 9}]),
                json!({"a": {"b": 1}, "list": [1, 2, 3, 9], "x/y": 0}),
            ),
            (
                json!([{"op": "remove", "path": "/list/-1"}]),
                json!({"a": {"b": 1}, "list": [1, 2], "x/y": 0}),
            ),
            (
                json!([{"op": "replace", "path": "/x~1y", "value": 1}]),
                json!({"a": {"b": 1}, "list": [1, 2, 3], "x/y": 1}),
            ),
            (
                json!([{"op": "replace", "path": "/new", "value": 1}]),
                json!({"a": {"b": 1}, "list": [1, 2, 3], "new": 1, "x/y": 0}),
            ),
            (
                json!([{"op": "move", "from": "/a/b", "path": "/b"}]),
                json!({"a": {}, "b": 1, "list": [1, 2, 3], "x/y": 0}),
            ),
            (
                json!([{"op": "copy", "from": "/a", "path": "/a/a"}]),
                json!({"a": {"a": {"b": 1}, "b": 1}, "list": [1, 2, 3], "x/y": 0}),
            ),
            (json!([{"op": "test", "path": "/a/b", "value": 1}]), before.clone()),
            (json!([{"op": "test", "path": "/none", "value": null}]), before.clone()),
        ];
        for (patch, after) in rows {
            assert_eq!(json(&before, &patch), Ok(after), "{patch}");
        }
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let before = json!({"a": {"b": 1}, "list": [1]});
        for patch in [
            json!([{"op": "remove", "path": "/none"}]),
            json!([{"op": "add", "path": "/none/below", "value": 1}]),
            json!([{"op": "add", "path": "/list/5", "value": 1}]),
            json!([{"op": "replace", "path": "/list/1", "value": 1}]),
            json!([{"op": "test", "path": "/a/b", "value": 2}]),
            json!([{"op": "add", "path": "/a/b/c", "value": 1}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "add"}]),
        ] {
            let refused = json(&before, &patch);
            assert!(matches!(refused, Err(PatchError::Unprocessable(_))), "{patch}");
        }
        assert!(matches!(json(&before, &json!({})), Err(PatchError::Malformed(_))));
    }
}
