//! The printer columns of a custom resource.

use jiff::Timestamp;
use serde_json::Value;

use super::columns::definition;
use super::json_path::JsonPath;
use super::show::{age, int, list, name, since, text};

/// The columns after the name. A version without any prints the age.
pub(super) struct CustomColumns<'a>(Vec<CustomColumn<'a>>);

struct CustomColumn<'a> {
    name: &'a str,
    kind: &'a str,
    format: &'a str,
    description: String,
    priority: i64,
    path: Option<JsonPath>,
}

impl<'a> CustomColumns<'a> {
    /// Reads an entry of a definition's `spec.versions`.
    pub(super) fn read(version: &'a Value) -> Self {
        let columns = list(&version["additionalPrinterColumns"]);
        CustomColumns(columns.iter().map(CustomColumn::read).collect())
    }

    pub(super) fn definitions(&self) -> Value {
        let name = definition("Name", "string", "name", "", 0);
        let own = self.0.iter().map(|column| {
            definition(
                column.name,
                column.kind,
                column.format,
                &column.description,
                column.priority,
            )
        });
        let default = self.0.is_empty().then(|| definition("Age", "date", "", "", 0));
        [name].into_iter().chain(own).chain(default).collect()
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let own = self.0.iter().map(|column| column.cell(object, now));
        let default = self.0.is_empty().then(|| age(object, now));
        [name(object)].into_iter().chain(own).chain(default).collect()
    }
}

impl<'a> CustomColumn<'a> {
    fn read(column: &'a Value) -> Self {
        let path = text(&column["jsonPath"]);
        let description = match text(&column["description"]) {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        CustomColumn {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            description,
            priority: int(&column["priority"]),
            path: JsonPath::parse(path),
        }
    }

    /// The first value at the path, in the column's type; null where the two do not fit.
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object).first().copied());
        match (self.kind, found) {
            (_, None | Some(Value::Null)) => Value::Null,
            ("string", Some(Value::String(text))) => text.clone().into(),
            ("string", Some(other)) => other.to_string().into(),
            ("integer", Some(number @ Value::Number(_))) => number
                .as_i64()
                .or_else(|| number.as_f64().map(|number| number as i64))
                .into(),
            ("number", Some(number @ Value::Number(_))) => number.as_f64().into(),
            ("boolean", Some(Value::Bool(flag))) => (*flag).into(),
            ("date", Some(time @ Value::String(_))) => match since(time, now).as_str() {
                "<unknown>" => "<invalid>".into(),
                age => age.into(),
            },
            _ => Value::Null,
        }
    }
}
