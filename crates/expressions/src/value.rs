//! The values that expressions are about.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use model::Quantity;
use semver::Version;

/// A value of an expression.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    List(Arc<[Value]>),
    Map(Arc<BTreeMap<Key, Value>>),
    /// A map in which a domain that is not there is empty, rather than an error.
    Domains(Arc<BTreeMap<Key, Value>>),
    Quantity(Quantity),
    Version(Arc<Version>),
    Optional(Option<Arc<Value>>),
}

/// The key of a map. A whole number is one key, whichever its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Bool(bool),
    Int(i128),
    Text(Arc<str>),
}

impl Value {
    pub fn text(text: &str) -> Self {
        Value::Text(text.into())
    }

    pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key::Text(key.into()), value));
        Value::Map(Arc::new(entries.collect()))
    }

    pub fn key(&self) -> Option<Key> {
        match self {
            Value::Bool(value) => Some(Key::Bool(*value)),
            Value::Int(number) => Some(Key::Int(i128::from(*number))),
            Value::Uint(number) => Some(Key::Int(i128::from(*number))),
            Value::Text(text) => Some(Key::Text(text.clone())),
            _ => None,
        }
    }

    /// `None` for what cannot be indexed by this, or has nothing there.
    pub fn at(&self, index: &Value) -> Option<Value> {
        match self {
            Value::Map(map) => map.get(&index.key()?).cloned(),
            Value::Domains(map) => Some(map.get(&index.key()?).cloned().unwrap_or_else(|| Value::map([]))),
            Value::List(list) => {
                let Key::Int(place) = index.key()? else { return None };
                list.get(usize::try_from(place).ok()?).cloned()
            }
            _ => None,
        }
    }

    /// Whether a map has the key, or a list the value.
    pub fn contains(&self, wanted: &Value) -> Option<bool> {
        match self {
            Value::Map(map) | Value::Domains(map) => Some(wanted.key().is_some_and(|key| map.contains_key(&key))),
            Value::List(list) => Some(list.iter().any(|value| value == wanted)),
            _ => None,
        }
    }

    /// What a loop runs over: the values of a list, the keys of a map.
    pub fn items(&self) -> Option<Vec<Value>> {
        match self {
            Value::List(list) => Some(list.to_vec()),
            Value::Map(map) | Value::Domains(map) => Some(map.keys().map(Key::value).collect()),
            _ => None,
        }
    }

    /// `None` for values that have no order between them.
    pub fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Double(a), b) => a.partial_cmp(&b.number()?),
            (a, Value::Double(b)) => a.number()?.partial_cmp(b),
            (a, b) => Some(a.whole()?.cmp(&b.whole()?)),
        }
    }

    /// A whole number of either type.
    pub fn whole(&self) -> Option<i128> {
        match self {
            Value::Int(number) => Some(i128::from(*number)),
            Value::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Double(number) => Some(*number),
            value => Some(value.whole()? as f64),
        }
    }
}

impl Key {
    pub fn value(&self) -> Value {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Uint(u64::try_from(*number).unwrap_or(u64::MAX)),
            },
            Key::Text(text) => Value::Text(text.clone()),
        }
    }
}

/// Values of different types are different, except that numbers are compared by what they mean.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a) | Value::Domains(a), Value::Map(b) | Value::Domains(b)) => a == b,
            (Value::Quantity(a), Value::Quantity(b)) => a == b,
            (Value::Version(a), Value::Version(b)) => a == b,
            (Value::Optional(a), Value::Optional(b)) => a == b,
            (a, b) => a.order(b) == Some(Ordering::Equal),
        }
    }
}
