//! Operations on objects that know their types: check one, merge two, remove fields from one.

use serde_json::{Map, Value};

use super::go_text::{go_literal, go_text, go_type};
use crate::managed_fields::{FieldSet, field, item_element, shown_element};
use crate::schema::{Form, ListKind, ListType, NodeId, Scalar, TypeSchema};

/// What is wrong with an applied object, one text per place: `.spec.size: expected string, got ...`.
pub(super) fn violations(types: &TypeSchema, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(types, types.root(), object, String::new(), &mut found);
    found
}

fn check(types: &TypeSchema, node: NodeId, value: &Value, path: String, found: &mut Vec<String>) {
    let wrong = |text: String| {
        if path.is_empty() {
            text
        } else {
            format!("{path}: {text}")
        }
    };
    match (types.node(node).fitting(value), value) {
        (_, Value::Null) => {}
        (Form::Scalar(Scalar::Numeric), value) if !value.is_number() => {
            found.push(wrong(format!(
                "expected numeric (int or float), got {}",
                go_type(value)
            )));
        }
        (Form::Scalar(Scalar::String), value) if !value.is_string() => {
            found.push(wrong(format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go_literal(value)
            )));
        }
        (Form::Scalar(Scalar::Boolean), value) if !value.is_boolean() => {
            found.push(wrong(format!("expected boolean, got &{{{}}}", go_text(value))));
        }
        (Form::Scalar(_), _) => {}
        (Form::List(list), Value::Array(items)) => {
            let mut seen = Vec::new();
            for (at, item) in items.iter().enumerate() {
                let element = match list.kind {
                    ListKind::Atomic => format!("[{at}]"),
                    _ => match item_element(types, list, item) {
                        Ok(element) => shown_element(&element),
                        Err(text) => return found.push(wrong(format!("element {at}: {text}"))),
                    },
                };
                if seen.contains(&element) {
                    found.push(format!("{path}: duplicate entries for key {element}"));
                }
                check(types, list.items, item, format!("{path}{element}"), found);
                seen.push(element);
            }
        }
        (Form::Map(map), Value::Object(fields)) => {
            for (key, below) in fields {
                let path = format!("{path}.{key}");
                match map.type_of(key) {
                    Some(node) => check(types, node, below, path, found),
                    None => return found.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        (Form::List(_), value) => found.push(wrong(format!("expected list, got &{{{}}}", go_text(value)))),
        (Form::Map(_), value) => found.push(wrong(format!("expected map, got &{{{}}}", go_text(value)))),
        (Form::Invalid, _) => found.push(wrong("schema error: invalid atom".into())),
    }
}

/// Lays `applied` over `live`: fields of `applied` win, nothing is removed, items of lists are matched by identity.
pub(super) fn merged(types: &TypeSchema, live: &Value, applied: &Value) -> Value {
    merge(types, types.root(), Some(live), Some(applied)).unwrap_or_default()
}

fn merge(types: &TypeSchema, node: NodeId, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let schema = types.node(node);
    let whole = || applied.or(live).cloned();
    // A null takes the form of its counterpart.
    let form = match (live, applied) {
        (Some(live), Some(Value::Null)) => schema.fitting(live),
        (_, Some(applied)) => schema.fitting(applied),
        (Some(live), None) => schema.fitting(live),
        (None, None) => return None,
    };
    match form {
        Form::List(list) if list.kind != ListKind::Atomic => {
            let [a, b] = [live, applied].map(|side| side.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
            if a.is_empty() && b.is_empty() {
                return whole();
            }
            Some(Value::Array(merge_items(types, list, a, b)))
        }
        Form::Map(map) if !map.atomic => {
            let [a, b] = [live, applied].map(|side| side.and_then(Value::as_object));
            if a.is_none_or(Map::is_empty) && b.is_none_or(Map::is_empty) {
                return whole();
            }
            let mut fields = Map::new();
            let only_live = a
                .into_iter()
                .flat_map(Map::keys)
                .filter(|key| b.is_none_or(|b| !b.contains_key(*key)));
            for key in b.into_iter().flat_map(Map::keys).chain(only_live) {
                let [below_a, below_b] = [a, b].map(|side| side.and_then(|fields| fields.get(key)));
                let below = match map.type_of(key) {
                    Some(node) => merge(types, node, below_a, below_b),
                    None => below_b.or(below_a).cloned(),
                };
                if let Some(below) = below {
                    fields.insert(key.clone(), below);
                }
            }
            Some(Value::Object(fields))
        }
        _ => whole(),
    }
}

/// The items of both lists, in the order of `applied`; items that only `live` has stay where they stood among the
/// shared ones.
fn merge_items(types: &TypeSchema, list: &ListType, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let identities = |items: &[Value]| -> Vec<String> {
        items
            .iter()
            .map(|item| item_element(types, list, item).unwrap_or_default())
            .collect()
    };
    let (live_ids, applied_ids) = (identities(live), identities(applied));
    // An item that stands several times in the live list has no one counterpart.
    let counterpart = |id: &String| {
        let mut same = live_ids.iter().zip(live).filter(|(other, _)| *other == id);
        same.next().filter(|_| same.next().is_none()).map(|(_, item)| item)
    };
    let in_applied = |id: &String| applied_ids.contains(id);
    let mut shared = applied_ids.iter().filter(|id| live_ids.contains(id));
    let mut next_shared = shared.next();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    loop {
        match (live_ids.get(l), applied_ids.get(r)) {
            (None, None) => return out,
            // A shared item whose turn has not come: it is emitted at its place in `applied`.
            (Some(a), Some(b)) if a != b && in_applied(a) && next_shared.is_some_and(|next| next != a) => l += 1,
            (Some(a), _) if !in_applied(a) => {
                out.push(live[l].clone());
                l += 1;
            }
            (Some(_), None) => l += 1,
            (a, Some(b)) => {
                if a.is_some_and(|a| a == b || applied_ids[..r].contains(a)) {
                    l += 1;
                }
                out.extend(merge(types, list.items, counterpart(b), Some(&applied[r])));
                if next_shared == Some(b) {
                    next_shared = shared.next();
                }
                r += 1;
            }
        }
    }
}

/// The object without the fields and items of `set`. A map or list that loses all it had becomes a null.
pub(super) fn without(types: &TypeSchema, object: &Value, set: &FieldSet) -> Value {
    remove(types, types.root(), object, set).unwrap_or_default()
}

fn remove(types: &TypeSchema, node: NodeId, value: &Value, set: &FieldSet) -> Option<Value> {
    if set.is_empty() {
        return Some(value.clone());
    }
    let kept_below = |element: &str, node: Option<NodeId>, below: &Value| -> Option<Value> {
        if set.contains(&[element.to_owned()]) {
            return None;
        }
        match (set.below(element), node) {
            // What is emptied stays as a null for now: that its parent had it still counts.
            (set, Some(node)) if !set.is_empty() => Some(remove(types, node, below, &set).unwrap_or_default()),
            _ => Some(below.clone()),
        }
    };
    match (types.node(node).fitting(value), value) {
        (Form::List(list), Value::Array(items)) if list.kind != ListKind::Atomic => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| match item_element(types, list, item) {
                    Ok(element) => kept_below(&element, Some(list.items), item),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        (Form::Map(map), Value::Object(fields)) if !map.atomic => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(key, below)| Some((key.clone(), kept_below(&field(key), map.type_of(key), below)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Form::Scalar(_), value) => Some(value.clone()),
        _ => None,
    }
}
