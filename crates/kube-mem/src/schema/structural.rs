//! A custom resource's schema, read once into a form that pruning, defaulting and validation walk.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::SchemaError;
use super::format::Format;
use super::pattern;
use super::rules::Rule;
use super::type_schema::{ListKind, list_kind};

/// One node of a schema.
#[derive(Default)]
pub(super) struct Schema {
    /// Empty where anything is allowed.
    pub types: Vec<&'static str>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub preserve_unknown: bool,
    /// An object with its own `apiVersion`, `kind` and `metadata`.
    pub embedded: bool,
    pub properties: BTreeMap<String, Schema>,
    pub additional: Additional,
    pub items: Option<Box<Schema>>,
    pub list: Option<ListKind>,
    pub checks: Checks,
    pub rules: Vec<Rule>,
    /// There are rules here or below.
    pub has_rules: bool,
}

/// What keys besides the declared ones may hold.
#[derive(Default)]
pub(super) enum Additional {
    #[default]
    Undeclared,
    Anything,
    Nothing,
    Typed(Box<Schema>),
}

/// The conditions on a value.
#[derive(Default)]
pub(super) struct Checks {
    pub format: Option<(String, Format)>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<(String, Regex)>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub required: Vec<String>,
    pub values: Vec<Value>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub limit: f64,
    pub exclusive: bool,
}

impl Schema {
    /// *Errors*: the place and the text of what cannot be compiled.
    pub(super) fn read(schema: &Value, path: &str) -> Result<Schema, SchemaError> {
        read(schema, path, Place::Spine)
    }

    /// The schema of a key: declared, or that of all other keys.
    pub(super) fn field(&self, key: &str) -> Option<&Schema> {
        self.properties.get(key).or(match &self.additional {
            Additional::Typed(schema) => Some(schema),
            _ => None,
        })
    }

    /// The word for the type in messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self.types.as_slice() {
            [only] => only,
            _ => "",
        }
    }
}

/// The spine declares fields and their types; `allOf` and its like only add conditions to it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Spine,
    Condition,
}

fn read(schema: &Value, path: &str, place: Place) -> Result<Schema, SchemaError> {
    let flag = |name: &str| schema[name] == Value::Bool(true);
    let int_or_string = flag("x-kubernetes-int-or-string");
    let types = match schema["type"].as_str() {
        _ if int_or_string => vec!["integer", "string"],
        None | Some("") => Vec::new(),
        Some(name) => vec![known_type(name, path)?],
    };
    let preserve_unknown = flag("x-kubernetes-preserve-unknown-fields");
    if place == Place::Spine {
        if types.is_empty() && !preserve_unknown {
            let message = "Required value: must not be empty for specified object fields";
            return Err(SchemaError::new(format!("{path}.type"), message));
        }
        if types == ["array"] && !schema["items"].is_object() {
            return Err(SchemaError::new(
                format!("{path}.items"),
                "Required value: must be specified",
            ));
        }
    }
    let mut properties = BTreeMap::new();
    for (name, property) in object(&schema["properties"]) {
        properties.insert(
            name.clone(),
            read(property, &format!("{path}.properties[{name}]"), place)?,
        );
    }
    let additional = match &schema["additionalProperties"] {
        Value::Null => Additional::Undeclared,
        Value::Bool(false) => Additional::Nothing,
        Value::Bool(true) => Additional::Anything,
        typed => Additional::Typed(Box::new(read(typed, &format!("{path}.additionalProperties"), place)?)),
    };
    let items = match &schema["items"] {
        Value::Object(_) => Some(Box::new(read(&schema["items"], &format!("{path}.items"), place)?)),
        _ => None,
    };
    let rules = rules(schema, path)?;
    let checks = checks(schema, path)?;
    let below = properties
        .values()
        .chain(items.as_deref())
        .chain(&checks.all_of)
        .chain(match &additional {
            Additional::Typed(values) => Some(&**values),
            _ => None,
        });
    let has_rules = !rules.is_empty() || below.into_iter().any(|schema| schema.has_rules);
    let is_keyed_list = schema["x-kubernetes-list-type"].is_string();
    Ok(Schema {
        types,
        nullable: flag("nullable"),
        default: schema.get("default").filter(|value| !value.is_null()).cloned(),
        preserve_unknown,
        embedded: flag("x-kubernetes-embedded-resource"),
        properties,
        additional,
        items,
        list: is_keyed_list.then(|| list_kind(schema)),
        checks,
        rules,
        has_rules,
    })
}

fn known_type(name: &str, path: &str) -> Result<&'static str, SchemaError> {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    TYPES.into_iter().find(|known| *known == name).ok_or_else(|| {
        let quoted: Vec<String> = TYPES.iter().map(|known| format!("{known:?}")).collect();
        let message = format!("Unsupported value: {name:?}: supported values: {}", quoted.join(", "));
        SchemaError::new(format!("{path}.type"), message)
    })
}

fn checks(schema: &Value, path: &str) -> Result<Checks, SchemaError> {
    let count = |name: &str| schema[name].as_u64();
    let bound = |name: &str, exclusive: &str| {
        let limit = schema[name].as_f64()?;
        Some(Bound {
            limit,
            exclusive: schema[exclusive] == Value::Bool(true),
        })
    };
    let branches = |name: &str| -> Result<Vec<Schema>, SchemaError> {
        list(&schema[name])
            .iter()
            .enumerate()
            .map(|(at, branch)| read(branch, &format!("{path}.{name}[{at}]"), Place::Condition))
            .collect()
    };
    let pattern = match schema["pattern"].as_str() {
        None | Some("") => None,
        Some(text) => {
            let regex = pattern::compile(text).map_err(|cause| {
                let message =
                    format!("Invalid value: {text:?}: must be a valid regular expression, but isn't: {cause}");
                SchemaError::new(format!("{path}.pattern"), message)
            })?;
            Some((text.to_owned(), regex))
        }
    };
    Ok(Checks {
        format: schema["format"]
            .as_str()
            .and_then(|name| Some((name.to_owned(), Format::named(name)?))),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern,
        minimum: bound("minimum", "exclusiveMinimum"),
        maximum: bound("maximum", "exclusiveMaximum"),
        multiple_of: schema["multipleOf"].as_f64(),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: schema["uniqueItems"] == Value::Bool(true),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        required: list(&schema["required"])
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        values: list(&schema["enum"]).to_vec(),
        all_of: branches("allOf")?,
        any_of: branches("anyOf")?,
        one_of: branches("oneOf")?,
        not: match &schema["not"] {
            Value::Object(_) => Some(Box::new(read(
                &schema["not"],
                &format!("{path}.not"),
                Place::Condition,
            )?)),
            _ => None,
        },
    })
}

fn rules(schema: &Value, path: &str) -> Result<Vec<Rule>, SchemaError> {
    list(&schema["x-kubernetes-validations"])
        .iter()
        .enumerate()
        .map(|(at, rule)| Rule::compile(rule, &format!("{path}.x-kubernetes-validations[{at}]")))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
