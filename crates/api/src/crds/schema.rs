//! The machinery behind the schema tables: a derived manifest, cleaned, with facts added by path.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use super::columns::Column;
use super::patterns;

const VALIDATIONS: &str = "x-kubernetes-validations";

/// One keyword of a schema, or one CEL rule.
pub enum Fact {
    Keyword(&'static str, Value),
    Without(&'static str),
    Rule { rule: String, message: String },
}

pub fn description(text: &str) -> Fact {
    Fact::Keyword("description", json!(text))
}

pub fn pattern(regex: &str) -> Fact {
    Fact::Keyword("pattern", json!(regex))
}

pub fn default(value: Value) -> Fact {
    Fact::Keyword("default", value)
}

pub fn required(fields: &[&str]) -> Fact {
    Fact::Keyword("required", json!(fields))
}

pub fn one_of(words: &[&str]) -> Fact {
    Fact::Keyword("enum", json!(words))
}

pub fn minimum(bound: i64) -> Fact {
    Fact::Keyword("minimum", json!(bound))
}

pub fn maximum(bound: i64) -> Fact {
    Fact::Keyword("maximum", json!(bound))
}

pub fn min_length(bound: u32) -> Fact {
    Fact::Keyword("minLength", json!(bound))
}

pub fn max_length(bound: u32) -> Fact {
    Fact::Keyword("maxLength", json!(bound))
}

pub fn min_items(bound: u32) -> Fact {
    Fact::Keyword("minItems", json!(bound))
}

pub fn max_items(bound: u32) -> Fact {
    Fact::Keyword("maxItems", json!(bound))
}

pub fn max_properties(bound: u32) -> Fact {
    Fact::Keyword("maxProperties", json!(bound))
}

/// `atomic` is replaced as a whole, `set` refuses duplicates.
pub fn list_type(kind: &str) -> Fact {
    Fact::Keyword("x-kubernetes-list-type", json!(kind))
}

pub fn list_map_keys(keys: &[&str]) -> Fact {
    Fact::Keyword("x-kubernetes-list-map-keys", json!(keys))
}

pub fn map_type(kind: &str) -> Fact {
    Fact::Keyword("x-kubernetes-map-type", json!(kind))
}

/// Fields that the schema does not name are kept as they are.
pub fn open() -> Fact {
    Fact::Keyword("x-kubernetes-preserve-unknown-fields", json!(true))
}

pub fn without(keyword: &'static str) -> Fact {
    Fact::Without(keyword)
}

/// A CEL rule. Rules of one path are evaluated, and reported, in the order they are added.
pub fn cel(rule: impl Into<String>, message: impl Into<String>) -> Fact {
    Fact::Rule {
        rule: rule.into(),
        message: message.into(),
    }
}

/// A manifest whose schema is being completed.
pub struct Schema {
    crd: CustomResourceDefinition,
    root: Value,
}

impl Schema {
    /// The manifest that the type derives, reduced to what can be taken from a type.
    ///
    /// # Panics
    ///
    /// If the derived manifest lacks a schema, which `kube` rules out.
    pub fn of<K: CustomResourceExt>() -> Self {
        let mut crd = K::crd();
        crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
        let schema = crd.spec.versions[0]
            .schema
            .take()
            .and_then(|validation| validation.open_api_v3_schema)
            .expect("a derived manifest has a schema");
        let mut root = serde_json::to_value(schema).expect("a schema is plain data");
        clean(&mut root);
        let properties = root["properties"].as_object_mut().expect("the root is an object");
        properties.insert("apiVersion".into(), json!({ "type": "string" }));
        properties.insert("kind".into(), json!({ "type": "string" }));
        properties.insert("metadata".into(), json!({ "type": "object" }));
        Schema { crd, root }
    }

    /// Adds facts to the schema at a path such as `spec.template.metadata.labels{}`.
    ///
    /// `[]` steps into the items of a list, `{}` into the values of a map; the empty path is the
    /// root.
    ///
    /// # Panics
    ///
    /// If there is no schema at the path. The tables are constant, so building any manifest once
    /// shows such a mistake.
    pub fn at(mut self, path: &str, facts: impl IntoIterator<Item = Fact>) -> Self {
        let node = resolve(&mut self.root, path);
        for fact in facts {
            match fact {
                Fact::Keyword(keyword, value) => {
                    node.insert(keyword.to_owned(), value);
                }
                Fact::Without(keyword) => {
                    node.remove(keyword);
                }
                Fact::Rule { rule, message } => {
                    let rules = node.entry(VALIDATIONS).or_insert_with(|| json!([]));
                    let rules = rules.as_array_mut().expect("rules are a list");
                    rules.push(json!({ "rule": rule, "message": message }));
                }
            }
        }
        self
    }

    /// Removes keywords from every schema of the manifest.
    pub fn without_anywhere(mut self, keywords: &[&str]) -> Self {
        strip(&mut self.root, keywords);
        self
    }

    /// The columns that `kubectl get` shows, in order.
    pub fn columns(mut self, columns: impl IntoIterator<Item = Column>) -> Self {
        self.crd.spec.versions[0].additional_printer_columns = Some(columns.into_iter().collect());
        self
    }

    pub fn into_crd(mut self) -> CustomResourceDefinition {
        let schema = serde_json::from_value(self.root).expect("the tables hold schema keywords");
        self.crd.spec.versions[0]
            .schema
            .get_or_insert_default()
            .open_api_v3_schema = Some(schema);
        self.crd
    }
}

fn resolve<'a>(root: &'a mut Value, path: &str) -> &'a mut Map<String, Value> {
    let mut node = root;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        let name_end = segment.find(['[', '{']).unwrap_or(segment.len());
        let (name, mut steps) = segment.split_at(name_end);
        node = &mut node["properties"][name];
        while !steps.is_empty() {
            let (step, rest) = steps.split_at(2);
            node = match step {
                "[]" => &mut node["items"],
                _ => &mut node["additionalProperties"],
            };
            steps = rest;
        }
    }
    node.as_object_mut().unwrap_or_else(|| panic!("no schema at {path:?}"))
}

fn strip(schema: &mut Value, keywords: &[&str]) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.retain(|keyword, _| !keywords.contains(&keyword.as_str()));
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword) {
            strip(inner, keywords);
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| strip(property, keywords));
    }
}

/// Removes what the derivation adds and upstream's schemas do not have.
///
/// `nullable` would keep an explicit null instead of pruning it, and the default would then not be applied. Defaults
/// come from the tables only. A quantity is an integer or a string that looks like one.
fn clean(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    for keyword in ["nullable", "default", "title"] {
        schema.remove(keyword);
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        schema.remove("description");
        schema.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
        schema.insert("pattern".into(), json!(patterns::QUANTITY));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword) {
            clean(inner);
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(clean);
    }
}
