//! The fields that the scale subresource reads have to hold what it can read.

use serde_json::Value;

use super::field_error::FieldError;
use crate::complaint;

/// Where the replica counts and the selector are, as the definition writes it: `.spec.replicas`.
pub(super) struct Paths {
    counts: Vec<String>,
    selector: Option<String>,
}

impl Paths {
    pub(super) fn read(scale: &Value) -> Option<Paths> {
        let text = |name: &str| scale[name].as_str().map(str::to_owned);
        Some(Paths {
            counts: vec![text("specReplicasPath")?, text("statusReplicasPath")?],
            selector: text("labelSelectorPath").filter(|path| !path.is_empty()),
        })
    }

    pub(super) fn errors(&self, object: &Value) -> Vec<FieldError> {
        let counts = self.counts.iter().filter_map(|path| count_error(object, path));
        let selector = self.selector.iter().filter_map(|path| {
            let wrong = match find(object, path) {
                Ok(None | Some(Value::String(_))) => return None,
                Ok(Some(found)) => type_error(path, found, "string"),
                Err(text) => text,
            };
            Some(complaint::invalid(path.as_str(), &"".into(), &wrong))
        });
        counts.chain(selector).collect()
    }
}

fn count_error(object: &Value, path: &str) -> Option<FieldError> {
    let found = match find(object, path) {
        Ok(found) => found?,
        Err(text) => return Some(complaint::invalid(path, &0.into(), &text)),
    };
    let detail = match found.as_i64() {
        None => return Some(complaint::invalid(path, &0.into(), &type_error(path, found, "int64"))),
        Some(count) if count < 0 => "should be a non-negative integer".to_owned(),
        Some(count) if count > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        Some(_) => return None,
    };
    Some(complaint::invalid(path, found, &detail))
}

fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut at = object;
    for key in path.trim_start_matches('.').split('.') {
        match at {
            Value::Object(fields) => match fields.get(key) {
                Some(below) => at = below,
                None => return Ok(None),
            },
            other => return Err(type_error(path, other, "map[string]interface{}")),
        }
    }
    Ok(Some(at))
}

/// The complaint of the accessor that the real server uses.
fn type_error(path: &str, found: &Value, expected: &str) -> String {
    let (text, kind) = match found {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) if number.is_f64() => (number.to_string(), "float64"),
        Value::Number(number) => (number.to_string(), "int64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => ("[]".to_owned(), "[]interface {}"),
        Value::Object(_) => ("map[]".to_owned(), "map[string]interface {}"),
    };
    format!("{path} accessor error: {text} is of the type {kind}, expected {expected}")
}
