//! The schema as a whole, against what kube-apiserver 1.35 answered to the same objects (`rows.json`).

use serde_json::{Value, json};

use super::{CrdSchema, FieldError};

fn widget() -> CrdSchema {
    let version: Value = serde_json::from_str(include_str!("widget.json")).expect("the fixture is JSON");
    CrdSchema::compile(&version).expect("the schema compiles")
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

/// Reason, place and text of each error. The real server finds fields in random order, so the order says nothing.
fn shown(errors: &[FieldError]) -> Vec<String> {
    let mut lines: Vec<String> = errors
        .iter()
        .map(|error| format!("{} {error}", error.reason.cause()))
        .collect();
    lines.sort();
    lines
}

fn admitted(schema: &CrdSchema, mut object: Value, old: Option<&Value>) -> Result<Value, Vec<String>> {
    schema.prune(&mut object);
    schema.default(&mut object);
    let errors = schema.validate(&object, old);
    if errors.is_empty() {
        Ok(object)
    } else {
        Err(shown(&errors))
    }
}

#[test]
fn verdicts_and_texts_are_those_of_the_real_server() {
    let schema = widget();
    let rows: Vec<Value> = serde_json::from_str(include_str!("rows.json")).expect("the fixture is JSON");
    for row in rows {
        let expected = match row.get("stored") {
            Some(stored) => Ok(object(stored.clone())),
            None => {
                let errors = row["errors"].as_array().into_iter().flatten();
                let mut lines: Vec<String> = errors.filter_map(Value::as_str).map(str::to_owned).collect();
                lines.sort();
                Err(lines)
            }
        };
        assert_eq!(
            admitted(&schema, object(row["spec"].clone()), None),
            expected,
            "{}",
            row["spec"]
        );
    }
}

#[test]
fn transition_rules_run_on_update_only() {
    let schema = widget();
    let old = object(json!({"size": "S", "name": "abc"}));
    assert!(schema.validate(&old, None).is_empty());
    let renamed = object(json!({"size": "S", "name": "xyz"}));
    assert_eq!(
        shown(&schema.validate(&renamed, Some(&old))),
        ["FieldValueInvalid spec.name: Invalid value: \"xyz\": immutable"]
    );
    let removed = object(json!({"size": "S"}));
    assert_eq!(
        shown(&schema.validate(&removed, Some(&old))),
        ["FieldValueInvalid spec: Invalid value: name is immutable"]
    );
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_let_through() {
    let schema = widget();
    let old = object(json!({"size": "X", "replicas": 99, "ports": [{"name": "a", "port": 0}]}));
    let new = object(json!({"size": "X", "replicas": 99, "ports": [{"name": "a", "port": 0}], "low": 1}));
    assert_eq!(shown(&schema.validate(&new, Some(&old))), Vec::<String>::new());
    let worse = object(json!({"size": "X", "replicas": 98, "ports": [{"name": "a", "port": 0}]}));
    assert_eq!(schema.validate(&worse, Some(&old)).len(), 1);
}

#[test]
fn pruning_tells_what_it_removed() {
    let mut wanted = object(json!({"size": "S", "colour": 1, "ports": [{"name": "a", "x": 1}], "free": {"any": 1}}));
    wanted["extra"] = 1.into();
    assert_eq!(widget().prune(&mut wanted), ["extra", "spec.colour", "spec.ports[0].x"]);
    assert_eq!(
        wanted,
        object(json!({"size": "S", "ports": [{"name": "a"}], "free": {"any": 1}}))
    );
}

#[test]
fn a_schema_that_cannot_work_is_refused_with_its_place() {
    let check = |properties: Value, expected: &str| {
        let version = json!({"schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}});
        let error = CrdSchema::compile(&version)
            .err()
            .expect("the schema is refused")
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        json!({"spec": {}}),
        "spec.validation.openAPIV3Schema.properties[spec].type: Required value",
    );
    check(
        json!({"a": {"type": "list"}}),
        "spec.validation.openAPIV3Schema.properties[a].type: Unsupported value",
    );
    check(
        json!({"a": {"type": "array"}}),
        "spec.validation.openAPIV3Schema.properties[a].items: Required value",
    );
    check(
        json!({"a": {"type": "string", "pattern": "("}}),
        "spec.validation.openAPIV3Schema.properties[a].pattern: Invalid value: \"(\"",
    );
    check(
        json!({"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}}),
        "spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule: Invalid value: \"self ==\": \
         compilation failed",
    );
}

/// AP1.2: a rule whose evaluation errors rejects; an old value that may be missing is an optional.
#[test]
fn rules_reach_times_durations_maps_and_an_optional_old_value() {
    let check = |property: Value, value: Value, old: Option<Value>, broken: bool| {
        let schema = json!({"type": "object", "properties": {"x": property}});
        let schema = CrdSchema::compile(&json!({"schema": {"openAPIV3Schema": schema}})).expect("the schema compiles");
        let errors = schema.validate(&json!({"x": value}), old.map(|old| json!({"x": old})).as_ref());
        assert_eq!(!errors.is_empty(), broken, "{errors:?}");
    };
    let rule = |kind: &str, format: &str, rule: &str| json!({"type": kind, "format": format, "x-kubernetes-validations": [{"rule": rule}]});
    let time = rule("string", "date-time", "self > timestamp('2024-01-01T00:00:00Z')");
    check(time.clone(), json!("2025-01-01T00:00:00Z"), None, false);
    check(time, json!("2023-01-01T00:00:00Z"), None, true);
    check(
        rule("string", "duration", "self < duration('1h')"),
        json!("30m"),
        None,
        false,
    );
    check(rule("number", "", "self >= 1.0"), json!(1), None, false);
    check(rule("string", "", "int(self) > 0"), json!("abc"), None, true);
    let map = json!({
        "type": "object", "additionalProperties": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(k, k.startsWith('a-'))"}],
    });
    check(map.clone(), json!({"a-x": "1"}), None, false);
    check(map, json!({"b": "1"}), None, true);
    let optional = json!({
        "type": "string",
        "x-kubernetes-validations": [{"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true}],
    });
    check(optional.clone(), json!("a"), None, false);
    check(optional.clone(), json!("a"), Some(json!("a")), false);
    check(optional, json!("b"), Some(json!("a")), true);
}
