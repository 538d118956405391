//! Strategic merge patch: a merge patch that knows how the lists of the built-in kinds are merged.
//!
//! Directives inside the patch steer it:
//!
//! ```text
//! $patch: replace | delete                    on a map or on an item of a merged list
//! $retainKeys: [...]                          the map keeps these keys only
//! $setElementOrder/LIST: [...]                the order of the merged list
//! $deleteFromPrimitiveList/LIST: [...]        values to take out of a list of scalars
//! ```

use serde_json::{Map, Value};

use super::PatchError;
use super::go_text::go_text;
use crate::registry::Gvk;
use crate::schema::{NodeId, PatchFacts, TypeSchema};
use crate::types;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in kind.
pub fn strategic(gvk: &Gvk, target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("the patch is not a JSON object".into()));
    };
    let types = types::of(gvk).ok_or_else(|| PatchError::Internal(format!("no patch strategy for {}", gvk.kind)))?;
    let original = target.as_object().cloned().unwrap_or_default();
    let merge = Merge { types: &types };
    merge
        .maps(Some(types.root()), original, patch.clone())
        .map(Value::Object)
}

struct Merge<'a> {
    types: &'a TypeSchema,
}

impl Merge<'_> {
    fn maps(&self, node: Option<NodeId>, mut original: Object, mut patch: Object) -> Result<Object, PatchError> {
        match patch.remove(PATCH) {
            None => {}
            Some(directive) if directive == "replace" => return Ok(patch),
            Some(directive) if directive == "delete" => return Ok(Object::new()),
            Some(directive) => return Err(unknown_directive(&directive, &patch)),
        }
        retain_keys(&mut original, &mut patch)?;
        self.ordered_lists(node, &mut original, &mut patch)?;
        for (key, change) in patch {
            if let Some(list) = key.strip_prefix(DELETE_FROM_LIST) {
                let list = list.strip_prefix('/').ok_or_else(|| bad_format("primitive list"))?;
                delete_scalars(&mut original, list, &change);
                continue;
            }
            let (below, facts) = self.field(node, &key);
            let merged = match (original.remove(&key), change) {
                (_, Value::Null) => None,
                (Some(Value::Object(_)), change @ Value::Object(_)) if facts.replace => Some(change),
                (Some(Value::Object(original)), Value::Object(change)) => {
                    Some(Value::Object(self.maps(below, original, change)?))
                }
                (Some(Value::Array(original)), Value::Array(change)) => {
                    Some(Value::Array(self.lists(below, &facts, original, change)?))
                }
                (_, change) => without_directives(without_nulls(change)),
            };
            if let Some(merged) = merged {
                original.insert(key, merged);
            }
        }
        Ok(original)
    }

    /// Lists whose order the patch states are merged first and leave the patch.
    fn ordered_lists(&self, node: Option<NodeId>, original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
        let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
        for directive in directives {
            let Some(Value::Array(order)) = patch.remove(&directive) else {
                return Err(bad_format("setElementOrder list"));
            };
            let list = directive[ORDER.len()..]
                .strip_prefix('/')
                .ok_or_else(|| bad_format("setElementOrder list"))?;
            let (below, facts) = self.field(node, list);
            let key = facts.merge_key.as_deref();
            let (live, change) = (list_of(original, list)?, list_of(patch, list)?);
            if let Some(change) = &change {
                check_order(change, &order, key)?;
            }
            let merged = match (live.clone(), change) {
                (None, None) => continue,
                (Some(live), None) => live,
                (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
                (Some(live), Some(change)) => self.lists(below, &facts, live, change)?,
            };
            let ordered = in_order(merged, &order, &live.unwrap_or_default(), key)?;
            original.insert(list.to_owned(), Value::Array(ordered));
            patch.remove(list);
        }
        Ok(())
    }

    fn lists(
        &self,
        node: Option<NodeId>,
        facts: &PatchFacts,
        original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, PatchError> {
        if !facts.merge {
            return Ok(patch);
        }
        let Some(first) = original.first().or(patch.first()) else {
            return Ok(original);
        };
        if first.is_array() {
            return Err(PatchError::Unprocessable("lists of lists are not supported".into()));
        }
        if !first.is_object() {
            let mut merged = original.clone();
            merged.extend(patch.iter().filter(|value| !original.contains(value)).cloned());
            return in_order(merged, &patch, &original, None);
        }
        let Some(key) = facts.merge_key.as_deref() else {
            return Err(PatchError::Internal("cannot merge lists without merge key".into()));
        };
        let items = node
            .and_then(|node| self.types.node(node).list.as_ref())
            .map(|list| list.items);
        self.keyed_lists(items, key, original, patch)
    }

    fn keyed_lists(
        &self,
        items: Option<NodeId>,
        key: &str,
        mut original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, PatchError> {
        let mut changes: Vec<Object> = Vec::new();
        let mut replace = false;
        for item in patch {
            let Value::Object(mut item) = item else {
                return Err(PatchError::Internal(format!(
                    "expected an object in a merged list, got {item}"
                )));
            };
            match item.remove(PATCH) {
                None => changes.push(item),
                Some(directive) if directive == "replace" => replace = true,
                Some(directive) if directive == "delete" => {
                    let gone = item.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                    original.retain(|item| item.get(key) != Some(gone));
                }
                Some(directive) if directive == "merge" => {
                    return Err(PatchError::Internal(
                        "merging lists cannot yet be specified in the patch".into(),
                    ));
                }
                Some(directive) => return Err(unknown_directive(&directive, &item)),
            }
        }
        if replace {
            return Ok(changes.into_iter().map(Value::Object).collect());
        }
        let order: Vec<Value> = changes.iter().cloned().map(Value::Object).collect();
        let before = original.clone();
        for change in changes {
            let id = change.get(key).cloned().ok_or_else(|| no_merge_key(&change, key))?;
            match original.iter_mut().find(|item| item.get(key) == Some(&id)) {
                Some(Value::Object(item)) => *item = self.maps(items, std::mem::take(item), change)?,
                _ => original.push(Value::Object(change)),
            }
        }
        in_order(original, &order, &before, Some(key))
    }

    fn field(&self, node: Option<NodeId>, key: &str) -> (Option<NodeId>, PatchFacts) {
        let map = node.and_then(|node| self.types.node(node).map.as_ref());
        match map.and_then(|map| map.fields.get(key)) {
            Some(field) => (Some(field.node), field.patch.clone()),
            None => (map.and_then(|map| map.values), PatchFacts::default()),
        }
    }
}

fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = retained else {
        return Err(bad_format("retainKeys"));
    };
    let is_retained = |key: &String| retained.iter().any(|name| name == key);
    let is_directive = |key: &String| key.starts_with(ORDER) || key.starts_with(DELETE_FROM_LIST);
    if patch
        .iter()
        .any(|(key, change)| !change.is_null() && !is_directive(key) && !is_retained(key))
    {
        return Err(bad_format("retainKeys"));
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

fn delete_scalars(original: &mut Object, list: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (original.get_mut(list), gone) {
        items.retain(|item| !gone.contains(item));
    }
}

fn list_of(object: &Object, key: &str) -> Result<Option<Vec<Value>>, PatchError> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(PatchError::Internal(format!("expected a list at {key}, got {other}"))),
    }
}

/// Every item of a patch list has to stand in the stated order, in that order.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let mut places = order.iter();
    let kept = patch.iter().filter(|item| item.get(PATCH).is_none());
    for item in kept {
        if !order.is_empty() && !places.any(|place| is_same(item, place, key)) {
            let (patch, order) = (go_text(&patch.to_vec().into()), go_text(&order.to_vec().into()));
            return Err(PatchError::Internal(format!(
                "The order in patch list:\n{patch}\n doesn't match {ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

fn is_same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    }
}

/// Items that the patch names stand in its order; the others keep the server's order, and come before a named item
/// only if they did so before.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    if let Some(key) = key
        && let Some(Value::Object(item)) = merged.iter().find(|item| item.get(key).is_none())
    {
        return Err(no_merge_key(item, key));
    }
    let place = |list: &[Value], item: &Value| list.iter().position(|other| is_same(other, item, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item).unwrap_or(usize::MAX));
    let mut all = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let next = match (others.peek(), named.peek()) {
            (None, None) => return Ok(all),
            (Some(_), None) => others.next(),
            (None, Some(_)) => named.next(),
            (Some(other), Some(name)) => match (place(before, other), place(before, name)) {
                (Some(a), Some(b)) if a < b => others.next(),
                _ => named.next(),
            },
        };
        all.extend(next);
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, below)| !below.is_null())
            .map(|(key, below)| (key, without_nulls(below)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

/// What a patch adds where nothing was: a map with a directive adds nothing.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => Some(
            fields
                .into_iter()
                .filter_map(|(key, below)| Some((key, without_directives(below)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        scalar => Some(scalar),
    }
}

fn bad_format(what: &str) -> PatchError {
    PatchError::Malformed(format!("invalid patch format of {what}"))
}

fn unknown_directive(directive: &Value, item: &Object) -> PatchError {
    let (directive, item) = (go_text(directive), go_text(&Value::Object(item.clone())));
    PatchError::Internal(format!("unknown patch type: {directive} in map: {item}"))
}

fn no_merge_key(item: &Object, key: &str) -> PatchError {
    let item = go_text(&Value::Object(item.clone()));
    PatchError::Internal(format!("map: {item} does not contain declared merge key: {key}"))
}

#[cfg(test)]
mod tests;
