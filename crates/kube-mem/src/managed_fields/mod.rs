//! `metadata.managedFields`: which manager owns which fields.
//!
//! Creates, updates and patches take the fields that they change ([`record_update`]); server-side apply
//! (`patch/apply.rs`) claims what it mentions and gives up what it no longer mentions.

mod managers;
mod set;
mod typed;

use serde_json::{Value, json};

use crate::schema::TypeSchema;

pub(crate) use managers::{Entry, Managers, Operation, unowned};
pub(crate) use set::{FieldSet, field, shown, shown_element};
pub(crate) use typed::{Comparison, compare, field_set, item_element};

/// The manager that owns what was there before the first apply of an object without managers.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Records the fields that a create, update or patch changed as owned by `manager`.
///
/// *Assumptions*: `new` is defaulted, and what only the server writes into it (initial status, generation) comes after
/// this call, since nobody owns that. `now` is RFC 3339 in whole seconds.
///
/// *Guarantees*: nothing but `metadata.managedFields` of `new` changes.
pub fn record_update(
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
    subresource: Option<&str>,
    now: &str,
    types: &TypeSchema,
) {
    let sent = take_managed_fields(new);
    let mut managers = match (old, sent, subresource) {
        // An empty list is how a client says: forget who owned what.
        (_, Some(Value::Array(entries)), None) if entries.is_empty() || entries == [json!({})] => Managers::default(),
        (_, Some(sent), None) => match Managers::read(&sent) {
            Some(managers) if !managers.is_empty() => managers,
            _ => managers_of(old),
        },
        (old, _, _) => managers_of(old),
    };
    // An object that nobody tracks is tracked from its next apply on.
    if managers.is_empty() && old.is_some() {
        return;
    }
    let empty = json!({"apiVersion": new["apiVersion"], "kind": new["kind"]});
    let mut comparison = compare(types, old.unwrap_or(&empty), new);
    let reset = types.reset_fields(subresource);
    comparison.changed.subtract_trees(&reset);
    comparison.removed.subtract_trees(&reset);
    if !comparison.is_same() {
        managers.update(
            &comparison,
            &Entry::new(manager, Operation::Update, new, subresource),
            now,
        );
    }
    put_managed_fields(new, managers);
}

/// Records a write through the scale subresource, which owns no more than the number of replicas at `path`.
///
/// The real server keeps no time for such an entry, and none at all for zero replicas: `Scale` leaves out a zero, so
/// to its eyes the field has gone.
pub(crate) fn record_scale(old: &Value, new: &mut Value, manager: &str, path: &[String]) {
    let at = |object: &Value| path.iter().try_fold(object, |value, key| value.get(key)).cloned();
    let (before, after) = (at(old), at(new));
    let mut managers = managers_of(Some(old));
    if before == after || managers.is_empty() {
        return;
    }
    let mut replicas = FieldSet::default();
    replicas.insert(&path.iter().map(|key| field(key)).collect::<Vec<_>>());
    managers.0.iter_mut().for_each(|entry| entry.fields.subtract(&replicas));
    if after.is_some_and(|count| count != 0) {
        let writer = Entry::new(manager, Operation::Update, new, Some("scale"));
        match managers.position(&writer) {
            Some(at) => managers.0[at].fields.add_all(&replicas),
            None => managers.0.push(Entry {
                fields: replicas,
                ..writer
            }),
        }
    }
    managers.drop_empty();
    put_managed_fields(new, managers);
}

pub(crate) fn managers_of(object: Option<&Value>) -> Managers {
    object
        .and_then(|object| Managers::read(&object["metadata"]["managedFields"]))
        .unwrap_or_default()
}

pub(crate) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

pub(crate) fn put_managed_fields(object: &mut Value, managers: Managers) {
    if managers.is_empty() {
        return;
    }
    let Some(fields) = object.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    metadata["managedFields"] = managers.write();
}

#[cfg(test)]
mod tests;
