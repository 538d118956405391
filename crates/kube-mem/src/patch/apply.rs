//! Server-side apply: a manager states the fields it wants; the server merges, removes what the manager no longer
//! states, and refuses to take what others own with another value.

use serde_json::{Value, json};

use super::typed::{merged, violations, without};
use crate::managed_fields::{
    BEFORE_FIRST_APPLY, Comparison, Entry, FieldSet, Managers, Operation, compare, field_set, managers_of,
    put_managed_fields, shown, take_managed_fields, unowned,
};
use crate::schema::TypeSchema;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Who applies, and how.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions<'a> {
    pub manager: &'a str,
    pub force: bool,
    pub subresource: Option<&'a str>,
    /// RFC 3339 with seconds, as the server writes it.
    pub now: &'a str,
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager as the message shows it: `"kubectl" with subresource "status" using apps/v1`.
    pub manager: String,
    /// `.spec.replicas`
    pub field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409 Conflict with one cause per field.
    #[error("Apply failed with {} conflicts", .0.len())]
    Conflicts(Vec<Conflict>),
    /// The applied object carries what it must not: 400 BadRequest.
    #[error("{0}")]
    Malformed(String),
    /// The applied object does not fit its type: 500, as on a real server.
    #[error("{0}")]
    Untyped(String),
}

/// Gives the object after the apply, with its `managedFields` brought up to date.
///
/// *Guarantees*: without conflicts every field of `applied` holds and is owned by the manager; a field that the
/// manager applied before and does not mention now is gone, unless somebody else owns it too.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    options: ApplyOptions<'_>,
    types: &TypeSchema,
) -> Result<Value, ApplyError> {
    if !applied["metadata"]["managedFields"].is_null() {
        return Err(ApplyError::Malformed("metadata.managedFields must be nil".into()));
    }
    let wrong = violations(types, applied);
    if !wrong.is_empty() {
        return Err(ApplyError::Untyped(untyped_message(applied, &wrong)));
    }
    let mut state = State::of(live, applied, options, types);
    let conflicts = match state.apply(applied, options.force) {
        Ok(object) => return Ok(object),
        Err(conflicts) => conflicts,
    };
    // kubectl takes over without conflicts what its client-side apply put there before.
    let mine = match options.manager {
        "kubectl" => last_applied_fields(&state.live, types),
        _ => FieldSet::default(),
    };
    let serious: Vec<Conflict> = conflicts
        .into_iter()
        .flat_map(|(manager, fields)| fields.paths().into_iter().map(move |path| (manager.clone(), path)))
        .filter(|(_, path)| !mine.contains(path))
        .map(|(manager, path)| Conflict {
            manager,
            field: shown(&path),
        })
        .collect();
    if serious.is_empty() {
        return state.apply(applied, true).map_err(|_| ApplyError::Conflicts(serious));
    }
    Err(ApplyError::Conflicts(serious))
}

/// The live object apart from its managers, and who comes now.
struct State<'a> {
    types: &'a TypeSchema,
    options: ApplyOptions<'a>,
    live: Value,
    managers: Managers,
    applier: Entry,
}

/// Other managers as messages show them, with the fields that they would lose.
type Conflicts = Vec<(String, FieldSet)>;

impl<'a> State<'a> {
    fn of(live: Option<&Value>, applied: &Value, options: ApplyOptions<'a>, types: &'a TypeSchema) -> Self {
        let empty = json!({"apiVersion": applied["apiVersion"], "kind": applied["kind"]});
        let mut managers = managers_of(live);
        let mut live = live.unwrap_or(&empty).clone();
        take_managed_fields(&mut live);
        if managers.is_empty() {
            let before = Entry::new(BEFORE_FIRST_APPLY, Operation::Update, applied, options.subresource);
            managers.update(&compare(types, &empty, &live), &before, options.now);
        }
        let applier = Entry::new(options.manager, Operation::Apply, applied, options.subresource);
        State {
            types,
            options,
            live,
            managers,
            applier,
        }
    }

    fn apply(&mut self, applied: &Value, force: bool) -> Result<Value, Conflicts> {
        let types = self.types;
        let reset = types.reset_fields(self.options.subresource);
        let mut claimed = field_set(types, applied);
        claimed.subtract_trees(&reset);
        let mut managers = self.managers.clone();
        let before = managers.position(&self.applier).map(|at| managers.0.remove(at));
        let others = managers.clone();

        let merged = merged(types, &self.live, applied);
        let object = match &before {
            Some(before) => self.pruned(&merged, &before.fields, &claimed, &others),
            None => merged,
        };

        let mut comparison = compare(types, &self.live, &object);
        comparison.changed.subtract_trees(&reset);
        comparison.removed.subtract_trees(&reset);
        let lost = |entry: &Entry| entry.fields.intersection(&comparison.changed);
        // Managers come in the order of their identity as the real server writes it.
        managers.0.sort_by_key(Entry::identity);
        let conflicts: Conflicts = managers
            .0
            .iter()
            .map(|entry| (entry.shown(), lost(entry)))
            .filter(|(_, lost)| !lost.is_empty())
            .collect();
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        for entry in &mut managers.0 {
            entry.fields.subtract(&comparison.changed);
            entry.fields.subtract(&comparison.removed);
        }
        claimed.subtract(unowned());
        let changed = !comparison.is_same();
        let time = match before {
            Some(before) if !changed => before.time,
            _ => changed.then(|| self.options.now.to_owned()),
        };
        managers.0.push(Entry {
            fields: claimed,
            time,
            ..self.applier.clone()
        });
        managers.drop_empty();
        Ok(self.finished(object, applied, managers))
    }

    /// Removes what the applier claimed before, unless it claims it again or somebody else owns it.
    fn pruned(&self, merged: &Value, before: &FieldSet, claimed: &FieldSet, others: &Managers) -> Value {
        let types = self.types;
        let named = |set: &FieldSet| set.with_named_parents(types, types.root());
        let fields = |object: &Value| named(&field_set(types, object));
        let last = named(before);
        let bare = without(types, merged, &last);

        let mut owned = claimed.clone();
        others.0.iter().for_each(|entry| owned.add_all(&entry.fields));
        let mut surplus = fields(merged);
        surplus.subtract(&fields(&bare));
        surplus.subtract(&named(&owned));
        let kept = without(types, merged, &surplus);

        // Removing a parent took everything below it along; only what the applier had goes in the end.
        let mut gone = fields(merged);
        gone.subtract(&fields(&kept));
        without(types, merged, &gone.intersection(&last))
    }

    fn finished(&self, mut object: Value, applied: &Value, managers: Managers) -> Value {
        // Go keeps no nulls; custom objects keep what was written until their schema has its say.
        if !self.types.is_custom() {
            drop_nulls(&mut object);
        }
        put_managed_fields(&mut object, managers);
        // The annotation of client-side apply follows, so that both ways can be used in turn.
        let annotations = object
            .pointer_mut("/metadata/annotations")
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations
            && self.options.manager == "kubectl"
            && annotations.get(LAST_APPLIED).is_some_and(|text| *text != "")
        {
            let mut bare = applied.clone();
            if let Some(annotations) = bare.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
            annotations.insert(LAST_APPLIED.into(), format!("{bare}\n").into());
        }
        object
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, below| !below.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The fields of client-side apply's annotation that still hold in the live object.
fn last_applied_fields(live: &Value, types: &TypeSchema) -> FieldSet {
    let annotation = live["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap_or_default();
    let Ok(last) = serde_json::from_str::<Value>(annotation) else {
        return FieldSet::default();
    };
    if last["apiVersion"] != live["apiVersion"] || !violations(types, &last).is_empty() {
        return FieldSet::default();
    }
    let mut fields = field_set(types, &last);
    let Comparison { changed, removed } = compare(types, &last, live);
    fields.subtract(&changed);
    fields.subtract(&removed);
    fields
}

fn untyped_message(applied: &Value, wrong: &[String]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &applied["metadata"];
    let place = format!(
        "{}/{}; {}, Kind={}",
        text(&metadata["namespace"]),
        text(&metadata["name"]),
        // The core group is shown by the slash after its empty name.
        if text(&applied["apiVersion"]).contains('/') {
            text(&applied["apiVersion"])
        } else {
            format!("/{}", text(&applied["apiVersion"]))
        },
        text(&applied["kind"])
    );
    let detail = match wrong {
        [only] => only.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    format!("failed to create typed patch object ({place}): {detail}")
}

#[cfg(test)]
mod tests;
