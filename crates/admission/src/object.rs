//! Objects that are about to be written: what is added to them, and what is wrong with them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use legacy::admission::{defaults, problems};
use model::LabelKey;
use serde_json::{Value, json};

use crate::{Rules, review::Admission};

/// The answer with a patch that appends what is missing.
pub fn defaulted(asked: &Admission, rules: &Rules) -> Value {
    let mut response = allowed(asked);
    if let Some(patch) = changed(asked).and_then(|object| patch(object, rules)) {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    response
}

fn patch(object: &Value, rules: &Rules) -> Option<Value> {
    let mut added = defaults(object);
    added.retain(|requirement| {
        rules
            .words
            .well_known
            .contains(&LabelKey::from(requirement.key.as_str()))
    });
    if added.is_empty() {
        return None;
    }
    let add = |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
    let has_list = object.pointer("/spec/requirements").is_some_and(Value::is_array);
    let has_spec = object.get("spec").is_some_and(Value::is_object);
    Some(match (has_spec, has_list) {
        (true, true) => added
            .iter()
            .map(|one| add("/spec/requirements/-", json!(one)))
            .collect(),
        (true, false) => json!([add("/spec/requirements", json!(added))]),
        (false, _) => json!([add("/spec", json!({ "requirements": added }))]),
    })
}

/// The answer with all that is wrong.
pub fn validated(asked: &Admission, rules: &Rules) -> Value {
    let mut response = allowed(asked);
    let problems = changed(asked).map_or_else(Vec::new, |object| problems(object, &rules.options));
    if !problems.is_empty() {
        let problems: Vec<String> = problems.iter().map(legacy::Refusal::problem).collect();
        response["allowed"] = false.into();
        response["status"] = json!({ "code": 422, "reason": "Invalid", "message": problems.join("; ") });
    }
    response
}

/// The object, unless its content is what it was: labels and finalizers can be written on objects that came before the
/// webhook, whatever is missing from them or wrong with them.
fn changed(asked: &Admission) -> Option<&Value> {
    let content = |object: &Value| (object.get("spec").cloned(), object.get("data").cloned());
    let object = asked.object.as_ref()?;
    let is_same = |old: &Value| content(old) == content(object);
    (!asked.old_object.as_ref().is_some_and(is_same)).then_some(object)
}

fn allowed(asked: &Admission) -> Value {
    json!({ "uid": asked.uid, "allowed": true })
}

#[cfg(test)]
mod tests;
