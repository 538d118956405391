//! What merging and field ownership need to know about a type.
//!
//! A schema is an arena of nodes, because definitions refer to each other and some to themselves. It is read from the
//! OpenAPI form of a built-in kind (`types`) or of a custom resource (`structural`), both by [`Builder`].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::managed_fields::FieldSet;

/// Merge keys, list types and map types of one kind.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    nodes: Vec<Node>,
    root: NodeId,
    has_status: bool,
    /// A write to the status leaves the labels alone; most kinds let it change them.
    fixed_labels: bool,
    custom: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

/// What a value may be; more than one where the type is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub scalar: Option<Scalar>,
    pub meaning: Meaning,
    pub list: Option<ListType>,
    pub map: Option<MapType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

/// What a scalar stands for. Merging does not care; reading and writing do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Meaning {
    #[default]
    Plain,
    Int32,
    Int64,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    /// A whole number or a text.
    IntOrString,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListType {
    pub items: NodeId,
    pub kind: ListKind,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    Keyed(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapType {
    /// Declared fields. All others are keys of a map and have the type `values`.
    pub fields: BTreeMap<String, Field>,
    pub values: Option<NodeId>,
    pub atomic: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub node: NodeId,
    pub default: Option<Value>,
    /// The field is there in every object of a built-in kind, if need be with this value. Go writes such fields even
    /// when nobody has set them, which shows in who owns their parents.
    pub zero: Option<Value>,
    /// Go leaves the field out when it is empty, and cannot tell empty from absent.
    pub omit_empty: bool,
    pub patch: PatchFacts,
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchFacts {
    pub merge: bool,
    pub replace: bool,
    pub merge_key: Option<String>,
}

/// Scalars, lists and maps of anything, each atomic.
const UNTYPED: NodeId = NodeId(0);
/// Maps merge key by key down to scalars and atomic lists.
pub(crate) const DEDUCED: NodeId = NodeId(1);

impl TypeSchema {
    /// A type about which nothing is known: maps merge key by key, lists are atomic.
    pub fn deduced() -> Self {
        Builder::new(&|_| None).finish(DEDUCED)
    }

    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// True for custom resources, whose objects hold exactly what was written.
    pub(crate) fn is_custom(&self) -> bool {
        self.custom
    }

    /// What a write to this subresource (or to the object itself) does not change, whatever it says.
    pub(crate) fn reset_fields(&self, subresource: Option<&str>) -> FieldSet {
        let paths: &[&'static str] = match subresource {
            None if self.has_status => &["status"],
            Some("status") if self.fixed_labels => &["spec", "metadata.labels"],
            Some("status") => &["spec"],
            _ => &[],
        };
        FieldSet::of(paths.iter().map(|path| path.split('.').collect::<Vec<_>>()))
    }

    pub(crate) fn with_status(mut self, has_status: bool) -> Self {
        self.has_status = has_status;
        self
    }

    pub(crate) fn with_fixed_labels(mut self, fixed_labels: bool) -> Self {
        self.fixed_labels = fixed_labels;
        self
    }

    pub(crate) fn of_custom_resource(mut self) -> Self {
        self.custom = true;
        self
    }
}

impl Node {
    /// The alternatives that fit the form of `value`; all of them if none does or the value is null.
    pub(crate) fn fitting(&self, value: &Value) -> Form<'_> {
        match value {
            Value::Array(_) if self.list.is_some() => self.list.as_ref().map_or(Form::Invalid, Form::List),
            Value::Object(_) if self.map.is_some() => self.map.as_ref().map_or(Form::Invalid, Form::Map),
            Value::Bool(_) | Value::Number(_) | Value::String(_) if self.scalar.is_some() => {
                self.scalar.map_or(Form::Invalid, Form::Scalar)
            }
            _ => match self {
                Node { map: Some(map), .. } => Form::Map(map),
                Node {
                    scalar: Some(scalar), ..
                } => Form::Scalar(*scalar),
                Node { list: Some(list), .. } => Form::List(list),
                _ => Form::Invalid,
            },
        }
    }
}

/// One alternative of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form<'a> {
    Scalar(Scalar),
    List(&'a ListType),
    Map(&'a MapType),
    Invalid,
}

impl MapType {
    pub(crate) fn type_of(&self, key: &str) -> Option<NodeId> {
        self.fields.get(key).map(|field| field.node).or(self.values)
    }

    pub(crate) fn zero_of(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).and_then(|field| field.zero.as_ref())
    }
}

/// Reads schemas into nodes; `resolve` finds the definition behind a reference.
pub(crate) struct Builder<'a> {
    resolve: &'a dyn Fn(&str) -> Option<&'static Value>,
    nodes: Vec<Node>,
    named: BTreeMap<String, NodeId>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(resolve: &'a dyn Fn(&str) -> Option<&'static Value>) -> Self {
        let atomic_list = || ListType {
            items: UNTYPED,
            kind: ListKind::Atomic,
        };
        let open = |values, atomic| MapType {
            fields: BTreeMap::new(),
            values: Some(values),
            atomic,
        };
        let nodes = vec![
            Node {
                scalar: Some(Scalar::Any),
                meaning: Meaning::Plain,
                list: Some(atomic_list()),
                map: Some(open(UNTYPED, true)),
            },
            Node {
                scalar: Some(Scalar::Any),
                meaning: Meaning::Plain,
                list: Some(atomic_list()),
                map: Some(open(DEDUCED, false)),
            },
        ];
        Builder {
            resolve,
            nodes,
            named: BTreeMap::new(),
        }
    }

    pub(crate) fn finish(self, root: NodeId) -> TypeSchema {
        TypeSchema {
            nodes: self.nodes,
            root,
            has_status: false,
            fixed_labels: false,
            custom: false,
        }
    }

    /// The node of a definition. It is entered before it is read, so that it may refer to itself.
    pub(crate) fn named(&mut self, name: &str) -> NodeId {
        if let Some(&id) = self.named.get(name) {
            return id;
        }
        let id = self.add(Node::default());
        self.named.insert(name.to_owned(), id);
        let node = match (self.resolve)(name) {
            Some(_) if name == "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
                scalar(Scalar::Any, Meaning::Quantity)
            }
            Some(_) if name.ends_with(".IntOrString") => scalar(Scalar::Any, Meaning::IntOrString),
            Some(_) if name.ends_with(".v1.Time") => scalar(Scalar::Any, Meaning::Time),
            Some(_) if name.ends_with(".v1.MicroTime") => scalar(Scalar::Any, Meaning::MicroTime),
            Some(_) if name == "io.k8s.apimachinery.pkg.runtime.RawExtension" => self.nodes[0].clone(),
            Some(definition) => self.read(definition, false),
            None => self.nodes[1].clone(),
        };
        self.nodes[id.0 as usize] = node;
        id
    }

    /// The node of a schema that stands in a field, an item or a map's value.
    pub(crate) fn inline(&mut self, schema: &Value, preserve: bool) -> NodeId {
        let Some(name) = schema.get("$ref").and_then(Value::as_str) else {
            let node = self.read(schema, preserve);
            return self.add(node);
        };
        let id = self.named(name);
        // A field may make atomic what its type leaves granular.
        let Some(kind) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) else {
            return id;
        };
        let mut node = self.nodes[id.0 as usize].clone();
        if let Some(map) = &mut node.map {
            map.atomic = kind == "atomic";
        }
        self.add(node)
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = u32::try_from(self.nodes.len()).expect("a schema has fewer than four thousand million nodes");
        self.nodes.push(node);
        NodeId(id)
    }

    fn read(&mut self, schema: &Value, preserve: bool) -> Node {
        let flag = |name: &str| schema[name] == Value::Bool(true);
        let preserve = preserve || flag("x-kubernetes-preserve-unknown-fields");
        if flag("x-kubernetes-int-or-string") {
            return scalar(Scalar::Any, Meaning::Plain);
        }
        match schema["type"].as_str() {
            Some("object") => {
                let map = self.map(schema, preserve);
                Node {
                    map: Some(map),
                    ..Node::default()
                }
            }
            Some("array") => {
                let list = self.list(schema, preserve);
                Node {
                    list: Some(list),
                    ..Node::default()
                }
            }
            Some("integer") if schema["format"] == "int32" => scalar(Scalar::Numeric, Meaning::Int32),
            Some("integer") => scalar(Scalar::Numeric, Meaning::Int64),
            Some("number") => scalar(Scalar::Numeric, Meaning::Plain),
            Some("boolean") => scalar(Scalar::Boolean, Meaning::Plain),
            Some("string") => match schema["format"].as_str() {
                None => scalar(Scalar::String, Meaning::Plain),
                Some("byte") => scalar(Scalar::String, Meaning::Bytes),
                Some(_) => scalar(Scalar::Any, Meaning::Plain),
            },
            _ => {
                let (list, map) = (self.list(schema, preserve), self.map(schema, preserve));
                Node {
                    scalar: Some(Scalar::Any),
                    meaning: Meaning::Plain,
                    list: Some(list),
                    map: Some(map),
                }
            }
        }
    }

    fn map(&mut self, schema: &Value, preserve: bool) -> MapType {
        let no_fields = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&no_fields);
        let mut fields = BTreeMap::new();
        for (name, property) in properties {
            let node = self.inline(property, preserve);
            let field = Field {
                node,
                default: property.get("default").filter(|value| !value.is_object()).cloned(),
                zero: self.zero(property),
                omit_empty: GoFacts::of(property).is_some_and(|go| go.omit_empty && !go.pointer),
                patch: patch_facts(property),
            };
            fields.insert(name.clone(), field);
        }
        let values = match &schema["additionalProperties"] {
            values @ Value::Object(_) => Some(self.inline(values, preserve)),
            Value::Bool(false) => None,
            Value::Bool(true) => Some(DEDUCED),
            _ => (preserve || fields.is_empty()).then_some(DEDUCED),
        };
        MapType {
            fields,
            values,
            atomic: schema["x-kubernetes-map-type"] == "atomic",
        }
    }

    fn list(&mut self, schema: &Value, preserve: bool) -> ListType {
        let items = match schema.get("items") {
            Some(items) => self.inline(items, preserve),
            None => UNTYPED,
        };
        ListType {
            items,
            kind: list_kind(schema),
        }
    }

    /// What Go writes for a field that nobody has set, or nothing if it leaves the field out.
    fn zero(&self, property: &Value) -> Option<Value> {
        let go = GoFacts::of(property)?;
        if go.pointer {
            return (!go.omit_empty).then_some(Value::Null);
        }
        let Some(name) = property.get("$ref").and_then(Value::as_str) else {
            let zero = match property["type"].as_str() {
                Some("string") if property["format"] != "byte" => "".into(),
                Some("integer" | "number") => 0.into(),
                Some("boolean") => false.into(),
                _ => Value::Null,
            };
            return (!go.omit_empty).then_some(zero);
        };
        // A struct is written even if it is empty; some have a form of their own for that.
        match name.rsplit('.').next() {
            _ if go.omit_zero => None,
            Some("Time" | "MicroTime") => Some(Value::Null),
            Some("Quantity") => Some("0".into()),
            Some("IntOrString") => Some(0.into()),
            _ if (self.resolve)(name).is_some_and(|definition| definition["properties"].is_object()) => Some(json!({})),
            _ => None,
        }
    }
}

/// What only the Go type of a field tells; see the example `trim_openapi`.
struct GoFacts {
    pointer: bool,
    omit_empty: bool,
    omit_zero: bool,
}

impl GoFacts {
    fn of(property: &Value) -> Option<GoFacts> {
        let facts = property.get("x-go")?.as_str()?;
        Some(GoFacts {
            pointer: facts.contains('*'),
            omit_empty: facts.contains('?'),
            omit_zero: facts.contains('!'),
        })
    }
}

fn scalar(kind: Scalar, meaning: Meaning) -> Node {
    Node {
        scalar: Some(kind),
        meaning,
        ..Node::default()
    }
}

pub(super) fn list_kind(schema: &Value) -> ListKind {
    let words = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Keyed(words(&schema["x-kubernetes-list-map-keys"])),
        Some(_) => ListKind::Atomic,
        None if patch_facts(schema).merge => match schema["x-kubernetes-patch-merge-key"].as_str() {
            Some(key) => ListKind::Keyed(vec![key.to_owned()]),
            None => ListKind::Set,
        },
        None => ListKind::Atomic,
    }
}

fn patch_facts(property: &Value) -> PatchFacts {
    let strategies = property["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    let has = |word: &str| strategies.split(',').any(|strategy| strategy == word);
    PatchFacts {
        merge: has("merge"),
        replace: has("replace"),
        merge_key: property["x-kubernetes-patch-merge-key"].as_str().map(str::to_owned),
    }
}
