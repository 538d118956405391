//! JSON as CEL sees it, with the schema's types.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kube_cel::cel::objects::{Key, Map as CelMap};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::{Map, Value};

use super::format::Format;
use super::structural::{Additional, Schema};

/// Converts a value. `is_root` is true for objects with their own `apiVersion`, `kind` and `metadata`.
pub(super) fn to_cel(schema: &Schema, value: &Value, is_root: bool, functions: &Context<'static>) -> Cel {
    match value {
        Value::Number(number) if schema.types == ["number"] => Cel::Float(number.as_f64().unwrap_or_default()),
        Value::String(text) => string(schema, text, functions),
        Value::Array(items) => {
            let item = |item: &Value| match &schema.items {
                Some(below) => to_cel(below, item, below.embedded, functions),
                None => untyped(item),
            };
            Cel::List(Arc::new(items.iter().map(item).collect()))
        }
        Value::Object(fields) => object(schema, fields, is_root, functions),
        scalar => untyped(scalar),
    }
}

fn object(schema: &Schema, fields: &Map<String, Value>, is_root: bool, functions: &Context<'static>) -> Cel {
    let mut map = HashMap::with_capacity(fields.len());
    for (name, value) in fields {
        let (key, value) = match (schema.properties.get(name), &schema.additional) {
            (Some(below), _) => (escaped(name), to_cel(below, value, below.embedded, functions)),
            // The keys of a map are data, so they stay as they are.
            (None, Additional::Typed(below)) => (name.clone(), to_cel(below, value, below.embedded, functions)),
            (None, _) if is_root && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) => {
                (name.clone(), untyped(value))
            }
            (None, _) if schema.preserve_unknown => (escaped(name), untyped(value)),
            _ => continue,
        };
        map.insert(Key::String(Arc::new(key)), value);
    }
    Cel::Map(CelMap { map: Arc::new(map) })
}

fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let map = fields
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), untyped(value)));
            Cel::Map(CelMap {
                map: Arc::new(map.collect()),
            })
        }
    }
}

/// Strings of some formats are times, durations and bytes to CEL.
fn string(schema: &Schema, text: &str, functions: &Context<'static>) -> Cel {
    static TIMESTAMP: LazyLock<Program> = LazyLock::new(|| compiled("timestamp(text)"));
    static DURATION: LazyLock<Program> = LazyLock::new(|| compiled("duration(text)"));
    static BYTES: LazyLock<Program> = LazyLock::new(|| compiled("base64.decode(text)"));
    let plain = || Cel::String(Arc::new(text.to_owned()));
    let (program, text) = match schema.checks.format.as_ref().map(|(_, format)| format) {
        Some(Format::DateTime) => (&TIMESTAMP, text.to_owned()),
        Some(Format::Date) => (&TIMESTAMP, format!("{text}T00:00:00Z")),
        Some(Format::Duration) => (&DURATION, text.to_owned()),
        Some(Format::Byte) => (&BYTES, text.to_owned()),
        _ => return plain(),
    };
    if schema.types != ["string"] {
        return plain();
    }
    let mut scope = functions.new_inner_scope();
    scope.add_variable_from_value("text", Cel::String(Arc::new(text)));
    program.execute(&scope).unwrap_or_else(|_| plain())
}

fn compiled(source: &str) -> Program {
    Program::compile(source).expect("the conversion compiles")
}

/// The name under which a rule reaches a field whose name is not an identifier or is a word of the language.
fn escaped(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let plain = |c: char| c.is_ascii_alphanumeric();
    if name.chars().all(plain) {
        return name.to_owned();
    }
    let name = name.replace("__", "__underscores__");
    name.replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_api_server_does() {
        let rows = [
            ("replicas", "replicas"),
            ("my_field", "my_field"),
            ("my__field", "my__underscores__field"),
            ("foo-bar.baz/x", "foo__dash__bar__dot__baz__slash__x"),
            ("namespace", "__namespace__"),
        ];
        for (name, expected) in rows {
            assert_eq!(escaped(name), expected);
        }
    }
}
