//! From objects to sets of fields: which an object has, and which differ between two.

use serde_json::{Map, Value};

use super::set::{FieldSet, Path, field};
use crate::schema::{Form, ListKind, ListType, MapType, NodeId, TypeSchema};

/// What tells an item of a list from the others, as a path element.
///
/// *Errors*: why the item has no such identity.
pub(crate) fn item_element(types: &TypeSchema, list: &ListType, item: &Value) -> Result<String, String> {
    match &list.kind {
        ListKind::Atomic => Err("invalid indexing of non-associative list".into()),
        ListKind::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            scalar => Ok(format!("v:{}", escaped(scalar))),
        },
        ListKind::Keyed(names) => keyed_element(types, list, names, item),
    }
}

fn keyed_element(types: &TypeSchema, list: &ListType, names: &[String], item: &Value) -> Result<String, String> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let declared = types.node(list.items).map.as_ref();
    let default = |name: &String| declared?.fields.get(name)?.default.as_ref();
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    let mut parts = Vec::new();
    for name in &names {
        if let Some(value) = fields.get(*name).or_else(|| default(name)) {
            parts.push(format!("{}:{}", Value::from(name.as_str()), escaped(value)));
        }
    }
    if parts.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(format!("k:{{{}}}", parts.join(",")))
}

/// JSON with the characters escaped that Go's encoder escapes, so that path elements look as on a real server.
fn escaped(value: &Value) -> String {
    let text = value.to_string();
    if text.contains(['<', '>', '&']) {
        return text
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026");
    }
    text
}

/// Every leaf and every item that the object mentions: what applying it claims.
pub(crate) fn field_set(types: &TypeSchema, object: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(types, types.root(), object, &mut Path::new(), &mut set);
    set
}

fn collect(types: &TypeSchema, node: NodeId, value: &Value, path: &mut Path, set: &mut FieldSet) {
    match (types.node(node).fitting(value), value) {
        (Form::List(list), Value::Array(items)) if list.kind != ListKind::Atomic => {
            collect_items(types, list, items, path, set);
        }
        (Form::Map(map), Value::Object(fields)) if !map.atomic => {
            for (key, below) in fields {
                path.push(field(key));
                if let Some(node) = map.type_of(key) {
                    collect(types, node, below, path, set);
                }
                let is_empty = below.is_null() || below.as_object().is_some_and(Map::is_empty);
                if is_empty || !map.fields.contains_key(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Form::List(list), Value::Null) if list.kind != ListKind::Atomic => {}
        (Form::Map(map), Value::Null) if !map.atomic => {}
        _ => set.insert(path),
    }
}

fn collect_items(types: &TypeSchema, list: &ListType, items: &[Value], path: &mut Path, set: &mut FieldSet) {
    let elements: Vec<Option<String>> = items.iter().map(|item| item_element(types, list, item).ok()).collect();
    for (item, element) in items.iter().zip(&elements) {
        let Some(element) = element else { continue };
        path.push(element.clone());
        set.insert(path);
        // Of items that cannot be told apart only the shared identity is owned.
        if elements.iter().flatten().filter(|other| *other == element).count() == 1 {
            collect(types, list.items, item, path, set);
        }
        path.pop();
    }
}

/// The fields in which two objects differ.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// Fields that are new or have another value.
    pub changed: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    pub(crate) fn is_same(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Compares everything but `metadata.managedFields`.
pub(crate) fn compare(types: &TypeSchema, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk {
        types,
        path: Path::new(),
        found: Comparison::default(),
    };
    walk.values(types.root(), Some(old), Some(new));
    walk.found
}

struct Walk<'a> {
    types: &'a TypeSchema,
    path: Path,
    found: Comparison,
}

impl Walk<'_> {
    fn values(&mut self, node: NodeId, old: Option<&Value>, new: Option<&Value>) {
        let types = self.types;
        let node = types.node(node);
        let forms = (
            old.map(|value| node.fitting(value)),
            new.map(|value| node.fitting(value)),
        );
        let is_leaf = match forms {
            (Some(form), None) | (None, Some(form)) => self.form(form, old, new),
            (Some(a), Some(b)) if a == b => self.form(b, old, new),
            // A null takes the form of its counterpart.
            (Some(a), Some(_)) if new.is_some_and(Value::is_null) => self.form(a, old, new),
            (Some(_), Some(b)) if old.is_some_and(Value::is_null) => self.form(b, old, new),
            (Some(_), Some(_)) => self.leaf(old, new),
            (None, None) => return,
        };
        if !is_leaf {
            match (old, new) {
                (None, _) => self.found.changed.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares as one form; true if both sides were taken as a whole.
    fn form(&mut self, form: Form<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        match form {
            Form::List(list) if list.kind != ListKind::Atomic => {
                let [a, b] = [old, new].map(|side| side.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
                // Two empty sides are compared whole, which keeps null and empty apart.
                if a.is_empty() && b.is_empty() {
                    return self.leaf(old, new);
                }
                self.items(list, a, b);
                false
            }
            Form::Map(map) if !map.atomic => {
                let [a, b] = [old, new].map(|side| side.and_then(Value::as_object));
                if a.is_none_or(Map::is_empty) && b.is_none_or(Map::is_empty) {
                    return self.leaf(old, new);
                }
                self.fields(map, a, b);
                false
            }
            _ => self.leaf(old, new),
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (_, Some(_)) => self.found.changed.insert(&self.path),
            _ => self.found.removed.insert(&self.path),
        }
        true
    }

    fn fields(&mut self, map: &MapType, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        let in_metadata = self.path.len() == 1 && self.path[0] == "f:metadata";
        let only_new = new
            .into_iter()
            .flat_map(Map::keys)
            .filter(|key| old.is_none_or(|old| !old.contains_key(*key)));
        for key in old.into_iter().flat_map(Map::keys).chain(only_new) {
            if in_metadata && key == "managedFields" {
                continue;
            }
            let Some(node) = map.type_of(key) else { continue };
            // What Go always writes into a struct counts as present even where our objects leave it out.
            let [a, b] = [old, new].map(|side| side.and_then(|fields| fields.get(key).or_else(|| map.zero_of(key))));
            if a != b {
                self.path.push(field(key));
                self.values(node, a, b);
                self.path.pop();
            }
        }
    }

    fn items<'v>(&mut self, list: &ListType, old: &'v [Value], new: &'v [Value]) {
        let (old, new) = (self.by_identity(list, old), self.by_identity(list, new));
        let find = |groups: &[(String, Vec<&'v Value>)], element: &String| -> Vec<&'v Value> {
            groups
                .iter()
                .find(|(other, _)| other == element)
                .map(|(_, items)| items.clone())
                .unwrap_or_default()
        };
        let only_new = new
            .iter()
            .filter(|(element, _)| !old.iter().any(|(other, _)| other == element));
        for (element, _) in old.iter().chain(only_new) {
            let (before, after) = (find(&old, element), find(&new, element));
            if before == after {
                continue;
            }
            self.path.push(element.clone());
            match (before.as_slice(), after.as_slice()) {
                ([_, _, ..], [_, _, ..]) => self.found.changed.insert(&self.path),
                ([_, _, ..], rest) => {
                    self.values(list.items, None, rest.first().copied());
                    self.found.removed.insert(&self.path);
                }
                (rest, [_, _, ..]) => {
                    self.values(list.items, rest.first().copied(), None);
                    self.found.changed.insert(&self.path);
                }
                (before, after) => self.values(list.items, before.first().copied(), after.first().copied()),
            }
            self.path.pop();
        }
    }

    /// The items by their identity, in order of appearance. Items that share one cannot be told apart.
    fn by_identity<'v>(&self, list: &ListType, items: &'v [Value]) -> Vec<(String, Vec<&'v Value>)> {
        let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
        for item in items {
            let Ok(element) = item_element(self.types, list, item) else {
                continue;
            };
            match groups.iter_mut().find(|(other, _)| *other == element) {
                Some((_, same)) => same.push(item),
                None => groups.push((element, vec![item])),
            }
        }
        groups
    }
}
