//! Types, bounds, formats and the like, worded as the real server words them.

use serde_json::{Map, Value};

use super::field_error::{FieldError, Reason};
use super::structural::{Additional, Bound, Schema};
use super::type_schema::ListKind;
use crate::complaint;

/// What a value was found to be. `matches` counts the checks that applied: of several alternatives that all fail, the
/// one that came closest is reported.
#[derive(Default)]
struct Findings {
    errors: Vec<FieldError>,
    matches: usize,
}

impl Findings {
    fn merge(&mut self, other: Findings) {
        self.errors.extend(other.errors);
        self.matches += other.matches;
    }
}

/// Everything wrong with `new`. What has not changed since `old` is not held against it.
pub(super) fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check(schema, new, old, "").errors
}

fn check(schema: &Schema, value: &Value, old: Option<&Value>, path: &str) -> Findings {
    let mut found = Findings::default();
    if old == Some(value) {
        return found;
    }
    let applies_type = !schema.types.is_empty() || schema.checks.format.is_some();
    if applies_type {
        found.errors.extend(type_error(schema, value, path));
        found.matches += 2;
    }
    if value.is_null() {
        found.errors.extend(enum_error(schema, value, path));
        return found;
    }
    alternatives(schema, value, path, &mut found);
    match value {
        Value::String(text) => {
            found.errors.extend(string_error(schema, text, path));
            found.errors.extend(format_error(schema, text, path));
        }
        Value::Number(number) => found.errors.extend(number_errors(schema, value, number, path)),
        Value::Array(items) => check_items(schema, items, old, path, &mut found),
        Value::Object(fields) => check_fields(schema, fields, old, path, &mut found),
        Value::Null | Value::Bool(_) => {}
    }
    found.errors.extend(enum_error(schema, value, path));
    found.matches += 4;
    found
}

/// Messages name the place with the part of the request it came from.
fn named(path: &str) -> String {
    format!("{path} in body")
}

fn field(path: &str) -> String {
    match path.trim_start_matches('.') {
        "" => "<nil>".into(),
        path => path.into(),
    }
}

fn error(path: &str, reason: Reason, message: String) -> FieldError {
    FieldError {
        field: field(path),
        reason,
        message,
    }
}

fn invalid(path: &str, value: &Value, detail: &str) -> FieldError {
    complaint::invalid(field(path), value, &format!("{} {detail}", named(path)))
}

fn type_error(schema: &Schema, value: &Value, path: &str) -> Option<FieldError> {
    let found = match value {
        Value::Null if schema.nullable || schema.types.is_empty() => return None,
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let expects = |name: &str| schema.types.contains(&name);
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = schema.types.is_empty()
        || expects(found)
        || (found == "number" && is_whole && expects("integer"))
        || (found == "integer" && expects("number"));
    if fits {
        return None;
    }
    let detail = format!("{} must be of type {}: {found:?}", named(path), schema.types.join(","));
    Some(error(
        path,
        Reason::TypeInvalid,
        format!("Invalid value: {found:?}: {detail}"),
    ))
}

fn format_error(schema: &Schema, text: &str, path: &str) -> Option<FieldError> {
    let (name, format) = schema.checks.format.as_ref()?;
    if format.admits(text) {
        return None;
    }
    let detail = format!("{} must be of type {name}: {text:?}", named(path));
    Some(error(
        path,
        Reason::TypeInvalid,
        format!("Invalid value: {text:?}: {detail}"),
    ))
}

fn enum_error(schema: &Schema, value: &Value, path: &str) -> Option<FieldError> {
    let values = &schema.checks.values;
    if values.is_empty() || values.contains(value) {
        return None;
    }
    let shown: Vec<String> = values
        .iter()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    Some(complaint::not_supported(field(path), value, &shown))
}

/// The first of the string's conditions that fails.
fn string_error(schema: &Schema, text: &str, path: &str) -> Option<FieldError> {
    let checks = &schema.checks;
    let length = text.chars().count() as u64;
    if let Some(max) = checks.max_length
        && length > max
    {
        let unit = if max == 1 { "byte" } else { "bytes" };
        return Some(error(
            path,
            Reason::TooLong,
            format!("Too long: may not be more than {max} {unit}"),
        ));
    }
    if let Some(min) = checks.min_length
        && length < min
    {
        return Some(invalid(
            path,
            &text.into(),
            &format!("should be at least {min} chars long"),
        ));
    }
    match &checks.pattern {
        Some((pattern, regex)) if !regex.is_match(text) => {
            Some(invalid(path, &text.into(), &format!("should match '{pattern}'")))
        }
        _ => None,
    }
}

fn number_errors(schema: &Schema, value: &Value, number: &serde_json::Number, path: &str) -> Vec<FieldError> {
    let checks = &schema.checks;
    let amount = number.as_f64().unwrap_or_default();
    let shown = |limit: f64| {
        if number.is_f64() || limit.fract() != 0.0 {
            go_float(limit)
        } else {
            format!("{limit:.0}")
        }
    };
    let mut errors = Vec::new();
    // The real server rounds the factor for whole numbers and then stumbles over a factor below one.
    if let Some(factor) = checks
        .multiple_of
        .map(|factor| if number.is_f64() { factor } else { factor.trunc() })
    {
        if factor <= 0.0 {
            let detail = format!(
                "factor MultipleOf declared for {path} must be positive: {}",
                shown(factor)
            );
            errors.push(complaint::invalid(field(path), &Value::from(0), &detail));
        } else if (amount / factor).fract() != 0.0 {
            errors.push(invalid(
                path,
                value,
                &format!("should be a multiple of {}", shown(factor)),
            ));
        }
    }
    if let Some(Bound { limit, exclusive }) = checks.minimum
        && (amount < limit || (exclusive && amount <= limit))
    {
        let words = if exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        errors.push(invalid(path, value, &format!("should be {words} {}", shown(limit))));
    }
    if let Some(Bound { limit, exclusive }) = checks.maximum
        && (amount > limit || (exclusive && amount >= limit))
    {
        let words = if exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        errors.push(invalid(path, value, &format!("should be {words} {}", shown(limit))));
    }
    errors
}

/// A float as Go prints it: with an exponent from 21 digits on.
fn go_float(number: f64) -> String {
    if number != 0.0 && (number.abs() >= 1e21 || number.abs() < 1e-4) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

fn check_items(schema: &Schema, items: &[Value], old: Option<&Value>, path: &str, found: &mut Findings) {
    let checks = &schema.checks;
    if let Some(below) = &schema.items {
        for (at, item) in items.iter().enumerate() {
            found.merge(check(
                below,
                item,
                counterpart(schema, item, old),
                &format!("{path}[{at}]"),
            ));
        }
    }
    let count = items.len() as u64;
    if let Some(min) = checks.min_items
        && count < min
    {
        found.errors.push(invalid(
            path,
            &count.into(),
            &format!("should have at least {min} items"),
        ));
    }
    if let Some(max) = checks.max_items
        && count > max
    {
        found.errors.push(too_many(path, count, max));
    }
    if checks.unique_items && items.iter().enumerate().any(|(at, item)| items[..at].contains(item)) {
        found
            .errors
            .push(invalid(path, &"".into(), "shouldn't contain duplicates"));
    }
    found.matches += 1;
}

/// The item of the old list with the same keys. Items of other lists have no counterpart.
pub(super) fn counterpart<'v>(schema: &Schema, item: &Value, old: Option<&'v Value>) -> Option<&'v Value> {
    let Some(ListKind::Keyed(keys)) = &schema.list else {
        return None;
    };
    let is_same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
    old?.as_array()?.iter().find(is_same)
}

fn check_fields(schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>, path: &str, found: &mut Findings) {
    let checks = &schema.checks;
    let count = fields.len() as u64;
    if let Some(min) = checks.min_properties
        && count < min
    {
        found.errors.push(invalid(
            path,
            &count.into(),
            &format!("should have at least {min} properties"),
        ));
    }
    if let Some(max) = checks.max_properties
        && count > max
    {
        found.errors.push(too_many(path, count, max));
    }
    for (key, value) in fields {
        let place = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let before = old.and_then(|old| old.get(key));
        match (schema.field(key), &schema.additional) {
            (Some(below), _) => found.merge(check(below, value, before, &place)),
            (None, Additional::Nothing) => {
                let detail = format!("{path}.{key} in body is a forbidden property");
                found
                    .errors
                    .push(complaint::invalid(field(path), &key.as_str().into(), &detail));
            }
            _ => {}
        }
    }
    for name in checks.required.iter().filter(|name| !fields.contains_key(*name)) {
        found
            .errors
            .push(complaint::required(field(&format!("{path}.{name}")), ""));
    }
}

fn too_many(path: &str, count: u64, max: u64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    error(
        path,
        Reason::TooMany,
        format!("Too many: {count}: must have at most {max} {unit}"),
    )
}

/// `anyOf`, `oneOf`, `allOf` and `not`.
fn alternatives(schema: &Schema, value: &Value, path: &str, found: &mut Findings) {
    let checks = &schema.checks;
    let complain = |found: &mut Findings, detail: &str| {
        found
            .errors
            .push(complaint::invalid("<nil>", &"".into(), &format!("{path:?} {detail}")));
    };
    let judge = |branches: &[Schema]| -> (usize, Option<Findings>) {
        let mut valid = 0;
        let mut closest: Option<Findings> = None;
        for branch in branches {
            let result = check(branch, value, None, path);
            if result.errors.is_empty() {
                valid += 1;
            } else if closest.as_ref().is_none_or(|best| result.matches > best.matches) {
                closest = Some(result);
            }
        }
        (valid, closest)
    };
    if !checks.any_of.is_empty()
        && let (0, closest) = judge(&checks.any_of)
    {
        complain(found, "must validate at least one schema (anyOf)");
        found.merge(closest.unwrap_or_default());
    }
    if !checks.one_of.is_empty() {
        match judge(&checks.one_of) {
            (1, _) => {}
            (0, closest) => {
                complain(found, "must validate one and only one schema (oneOf). Found none valid");
                found.merge(closest.unwrap_or_default());
            }
            (many, _) => {
                let detail = format!("must validate one and only one schema (oneOf). Found {many} valid alternatives");
                complain(found, &detail);
            }
        }
    }
    let results: Vec<Findings> = checks
        .all_of
        .iter()
        .map(|branch| check(branch, value, None, path))
        .collect();
    let valid = results.iter().filter(|result| result.errors.is_empty()).count();
    let total = results.len();
    results.into_iter().for_each(|result| found.merge(result));
    if valid < total {
        let none = if valid == 0 { ". None validated" } else { "" };
        complain(found, &format!("must validate all the schemas (allOf){none}"));
    }
    if let Some(not) = &checks.not
        && check(not, value, None, path).errors.is_empty()
    {
        complain(found, "must not validate the schema (not)");
    }
}
