//! A set of field paths, in the form in which `fieldsV1` writes it.
//!
//! The set is a tree of JSON objects. A key is a path element: `f:` with a field's name, `k:` with the keys of a list's
//! item, `v:` with an item of a set. A path is in the set if its node is empty or holds the key `.`; a node without
//! either only leads to others:
//!
//! ```text
//! {"f:spec": {"f:replicas": {}, "f:labels": {".": {}, "f:app": {}}}}   .spec.replicas  .spec.labels  .spec.labels.app
//! ```
//!
//! Working on this form saves every update of an object from reading and writing all of its managers' sets.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::schema::{ListKind, NodeId, TypeSchema};

const SELF: &str = ".";

/// A set of field paths. The empty path is never in it: nobody owns an object as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSet(Map<String, Value>);

/// The elements from an object's root to a field, as `fieldsV1` writes them.
pub(crate) type Path = Vec<String>;

impl FieldSet {
    pub(crate) fn from_json(fields: Map<String, Value>) -> Self {
        FieldSet(fields)
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn of<P: AsRef<[&'static str]>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Path = path.as_ref().iter().map(|name| field(name)).collect();
            set.insert(&path);
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn insert(&mut self, path: &[String]) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut node = &mut self.0;
        for element in parents {
            let entry = node.entry(element.clone());
            // A leaf that gets children has to say that it is a member itself.
            let is_new = matches!(entry, serde_json::map::Entry::Vacant(_));
            let Value::Object(below) = entry.or_insert_with(|| Value::Object(Map::new())) else {
                return;
            };
            if !is_new && below.is_empty() {
                below.insert(SELF.into(), Value::Object(Map::new()));
            }
            node = below;
        }
        match node.get_mut(last) {
            Some(Value::Object(below)) if !below.is_empty() => {
                below.insert(SELF.into(), Value::Object(Map::new()));
            }
            Some(_) => {}
            None => {
                node.insert(last.clone(), Value::Object(Map::new()));
            }
        }
    }

    pub(crate) fn contains(&self, path: &[String]) -> bool {
        let Some((last, parents)) = path.split_last() else {
            return false;
        };
        let mut node = &self.0;
        for element in parents {
            let Some(Value::Object(below)) = node.get(element) else {
                return false;
            };
            node = below;
        }
        node.get(last).is_some_and(is_member)
    }

    /// The paths that begin with `element`, without it.
    pub(crate) fn below(&self, element: &str) -> FieldSet {
        match self.0.get(element) {
            Some(Value::Object(below)) => FieldSet(
                below
                    .iter()
                    .filter(|(key, _)| *key != SELF)
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            ),
            _ => FieldSet::default(),
        }
    }

    pub(crate) fn add_all(&mut self, other: &FieldSet) {
        unite(&mut self.0, &other.0);
    }

    /// Removes the paths of `other`, but not what lies below them.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        subtract(&mut self.0, &other.0);
    }

    /// Removes the paths of `other` and all that lies below them.
    pub(crate) fn subtract_trees(&mut self, other: &FieldSet) {
        subtract_trees(&mut self.0, &other.0);
    }

    pub(crate) fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet(intersect(&self.0, &other.0))
    }

    /// Adds the declared fields on the way to each path, so that removing a path can remove an emptied parent.
    pub(crate) fn with_named_parents(&self, types: &TypeSchema, root: NodeId) -> FieldSet {
        FieldSet(name_parents(&self.0, types, Some(root)))
    }

    /// All paths: those that end at a level before those that go on, each in the order of their elements.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        collect(&self.0, &mut Vec::new(), &mut found);
        found
    }
}

/// The path element of a field.
pub(crate) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// A path as messages show it: `.spec.containers[name="web"].image`.
pub(crate) fn shown(path: &[String]) -> String {
    let mut text = String::new();
    for element in path {
        text.push_str(&shown_element(element));
    }
    text
}

pub(crate) fn shown_element(element: &str) -> String {
    let (kind, rest) = element.split_at(element.len().min(2));
    match kind {
        "f:" => format!(".{rest}"),
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
            let mut text = String::from("[");
            for (at, (name, value)) in keys.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(text, "{comma}{name}={value}").expect("writing to a string cannot fail");
            }
            text + "]"
        }
        "v:" => format!("[={rest}]"),
        _ => format!("[{rest}]"),
    }
}

fn is_member(node: &Value) -> bool {
    node.as_object()
        .is_some_and(|below| below.is_empty() || below.contains_key(SELF))
}

fn unite(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (element, theirs) in from {
        let (Some(Value::Object(ours)), Value::Object(below)) = (into.get_mut(element), theirs) else {
            into.insert(element.clone(), theirs.clone());
            continue;
        };
        if element == SELF {
            continue;
        }
        let member = ours.is_empty() || below.is_empty() || ours.contains_key(SELF);
        unite(ours, below);
        if member && !ours.is_empty() {
            ours.insert(SELF.into(), Value::Object(Map::new()));
        }
    }
}

fn subtract(from: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, theirs) in other {
        let (Some(node), Value::Object(below)) = (from.get_mut(element), theirs) else {
            continue;
        };
        let (member, gone) = (is_member(node), is_member(theirs));
        let Value::Object(ours) = node else { continue };
        ours.remove(SELF);
        subtract(ours, below);
        settle(from, element, member && !gone);
    }
}

fn subtract_trees(from: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, theirs) in other {
        let (Some(node), Value::Object(below)) = (from.get_mut(element), theirs) else {
            continue;
        };
        if is_member(theirs) {
            from.remove(element);
            continue;
        }
        let member = is_member(node);
        let Value::Object(ours) = node else { continue };
        ours.remove(SELF);
        subtract_trees(ours, below);
        settle(from, element, member);
    }
}

/// Gives a changed node its canonical form: a bare leaf, a member with children, a mere branch, or nothing.
fn settle(parent: &mut Map<String, Value>, element: &str, member: bool) {
    let Some(Value::Object(node)) = parent.get_mut(element) else {
        return;
    };
    match (node.is_empty(), member) {
        (true, false) => {
            parent.remove(element);
        }
        (false, true) => {
            node.insert(SELF.into(), Value::Object(Map::new()));
        }
        _ => {}
    }
}

fn intersect(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> Map<String, Value> {
    let mut both = Map::new();
    for (element, a) in ours {
        let (Value::Object(a_below), Some(b)) = (a, theirs.get(element)) else {
            continue;
        };
        let Value::Object(b_below) = b else { continue };
        if element == SELF {
            continue;
        }
        let member = is_member(a) && is_member(b);
        let mut below = intersect(a_below, b_below);
        if !below.is_empty() || member {
            if member && !below.is_empty() {
                below.insert(SELF.into(), Value::Object(Map::new()));
            }
            both.insert(element.clone(), Value::Object(below));
        }
    }
    both
}

fn name_parents(set: &Map<String, Value>, types: &TypeSchema, node: Option<NodeId>) -> Map<String, Value> {
    let node = node.map(|id| types.node(id));
    let mut named = Map::new();
    for (element, below) in set {
        let Value::Object(children) = below else { continue };
        if element == SELF {
            named.insert(element.clone(), below.clone());
            continue;
        }
        let map = node.and_then(|node| node.map.as_ref());
        let list = node.and_then(|node| node.list.as_ref());
        let name = element.strip_prefix("f:");
        let type_below = match (name, map, list) {
            (Some(name), Some(map), _) => map.type_of(name),
            (None, _, Some(list)) if list.kind != ListKind::Set => Some(list.items),
            _ => None,
        };
        let declared = name.zip(map).is_some_and(|(name, map)| map.fields.contains_key(name));
        let mut children = name_parents(children, types, type_below);
        if declared && !children.is_empty() {
            children.insert(SELF.into(), Value::Object(Map::new()));
        }
        named.insert(element.clone(), Value::Object(children));
    }
    named
}

fn collect(set: &Map<String, Value>, prefix: &mut Path, found: &mut Vec<Path>) {
    let elements = || set.iter().filter(|(element, _)| *element != SELF);
    for (element, node) in elements() {
        if is_member(node) {
            found.push(prefix.iter().chain([element]).cloned().collect());
        }
    }
    for (element, node) in elements() {
        if let Value::Object(below) = node {
            prefix.push(element.clone());
            collect(below, prefix, found);
            prefix.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(fields: Value) -> FieldSet {
        FieldSet(fields.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_leaf_that_gets_children_stays_a_member() {
        let mut labels = FieldSet::of([["labels"]]);
        labels.insert(&[field("labels"), field("app")]);
        assert_eq!(labels, set(json!({"f:labels": {".": {}, "f:app": {}}})));
        labels.subtract(&FieldSet::of([["labels", "app"]]));
        assert_eq!(labels, set(json!({"f:labels": {}})));
    }

    #[test]
    fn subtracting_a_parent_keeps_its_children_and_subtracting_a_tree_does_not() {
        let full = || set(json!({"f:spec": {".": {}, "f:replicas": {}}, "f:status": {}}));
        let mut plain = full();
        plain.subtract(&FieldSet::of([["spec"]]));
        assert_eq!(plain, set(json!({"f:spec": {"f:replicas": {}}, "f:status": {}})));
        let mut trees = full();
        trees.subtract_trees(&FieldSet::of([["spec"]]));
        assert_eq!(trees, set(json!({"f:status": {}})));
    }

    #[test]
    fn paths_are_shown_as_in_messages() {
        let path = ["f:spec", "f:ports", "k:{\"port\":80,\"protocol\":\"TCP\"}", "f:name"].map(str::to_owned);
        assert_eq!(shown(&path), ".spec.ports[port=80,protocol=\"TCP\"].name");
        assert_eq!(
            shown(&["f:finalizers".to_owned(), "v:\"a/b\"".to_owned()]),
            ".finalizers[=\"a/b\"]"
        );
    }

    fn paths() -> impl Strategy<Value = Vec<Path>> {
        let name = prop::sample::select(vec!["f:a", "f:b", "f:c"]).prop_map(str::to_owned);
        prop::collection::vec(prop::collection::vec(name, 1..4), 0..8)
    }

    fn from_paths(paths: &[Path]) -> FieldSet {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets_of_paths(a in paths(), b in paths(), probe in paths()) {
            let (left, right) = (from_paths(&a), from_paths(&b));
            let mut union = left.clone();
            union.add_all(&right);
            let mut difference = left.clone();
            difference.subtract(&right);
            let intersection = left.intersection(&right);
            for path in a.iter().chain(&b).chain(&probe) {
                let (l, r) = (a.contains(path), b.contains(path));
                prop_assert_eq!(left.contains(path), l);
                prop_assert_eq!(union.contains(path), l || r);
                prop_assert_eq!(difference.contains(path), l && !r);
                prop_assert_eq!(intersection.contains(path), l && r);
            }
            prop_assert_eq!(from_paths(&union.paths()), union);
            prop_assert_eq!(from_paths(&difference.paths()), difference);
        }
    }
}
