//! The functions that expressions can call.

use std::{cmp::Ordering, sync::Arc};

use model::Quantity;
use regex::Regex;
use semver::Version;

use crate::{eval::Evaluation, value::Value};

/// Which functions an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those of the API server's libraries.
    Kubernetes,
    /// The language's own, and `min` and `max` of two numbers.
    Arithmetic,
}

/// Name, and the least and the largest number of arguments. Methods start with a dot; their target counts.
type Signature = (&'static str, usize, usize);

const OF_THE_LANGUAGE: [Signature; 13] = [
    ("size", 1, 1),
    (".size", 1, 1),
    ("int", 1, 1),
    ("uint", 1, 1),
    ("double", 1, 1),
    ("string", 1, 1),
    ("bool", 1, 1),
    ("dyn", 1, 1),
    (".contains", 2, 2),
    (".startsWith", 2, 2),
    (".endsWith", 2, 2),
    (".matches", 2, 2),
    ("matches", 2, 2),
];

const OF_ARITHMETIC: [Signature; 2] = [("max", 2, 2), ("min", 2, 2)];

const OF_KUBERNETES: [Signature; 45] = [
    (".find", 2, 2),
    (".findAll", 2, 3),
    (".charAt", 2, 2),
    (".indexOf", 2, 3),
    (".lastIndexOf", 2, 3),
    (".lowerAscii", 1, 1),
    (".upperAscii", 1, 1),
    (".replace", 3, 4),
    (".split", 2, 3),
    (".substring", 2, 3),
    (".trim", 1, 1),
    (".reverse", 1, 1),
    (".join", 1, 2),
    (".isSorted", 1, 1),
    (".sum", 1, 1),
    (".min", 1, 1),
    (".max", 1, 1),
    ("sets.contains", 2, 2),
    ("sets.equivalent", 2, 2),
    ("sets.intersects", 2, 2),
    ("optional.of", 1, 1),
    ("optional.none", 0, 0),
    (".orValue", 2, 2),
    (".or", 2, 2),
    (".hasValue", 1, 1),
    (".value", 1, 1),
    ("quantity", 1, 1),
    ("isQuantity", 1, 1),
    (".sign", 1, 1),
    (".isInteger", 1, 1),
    (".asInteger", 1, 1),
    (".asApproximateFloat", 1, 1),
    (".add", 2, 2),
    (".sub", 2, 2),
    ("semver", 1, 2),
    ("isSemver", 1, 2),
    (".major", 1, 1),
    (".minor", 1, 1),
    (".patch", 1, 1),
    (".compareTo", 2, 2),
    (".isGreaterThan", 2, 2),
    (".isLessThan", 2, 2),
    (".trimPrefix", 2, 2),
    (".trimSuffix", 2, 2),
    ("type", 1, 1),
];

pub(crate) fn known(functions: Functions, name: &str, arguments: usize) -> Option<&'static str> {
    let further: &[Signature] = match functions {
        Functions::Kubernetes => &OF_KUBERNETES,
        Functions::Arithmetic => &OF_ARITHMETIC,
    };
    let (name, ..) = OF_THE_LANGUAGE
        .iter()
        .chain(further)
        .find(|(known, least, most)| *known == name && (*least..=*most).contains(&arguments))?;
    Some(name)
}

/// `None` for arguments that the function does not take.
pub(crate) fn call(evaluation: &Evaluation, function: &str, arguments: &[Value]) -> Option<Value> {
    // Only `optional.none` takes nothing.
    let Some((first, rest)) = arguments.split_first() else {
        return Some(Value::Optional(None));
    };
    evaluation.pay(length(first) / 16)?;
    match first {
        _ if function == "dyn" => Some(first.clone()),
        _ if matches!(function, "max" | "min") => extreme(function, first, rest.first()?),
        _ if function == "optional.of" => Some(Value::Optional(Some(Arc::new(first.clone())))),
        Value::Optional(inner) => optional(function, inner.as_ref(), rest),
        Value::Quantity(amount) => quantity(function, *amount, rest),
        Value::Version(version) => released(function, version, rest),
        Value::Text(text) => self::text(evaluation, function, text, rest).or_else(|| convert(function, first)),
        Value::List(items) => list(function, items, rest),
        Value::Map(map) | Value::Domains(map) if function.ends_with("size") => count(map.len()),
        _ => convert(function, first),
    }
}

/// Of two whole numbers a whole one; otherwise a fraction, whichever of the two is the answer.
fn extreme(function: &str, first: &Value, second: &Value) -> Option<Value> {
    let second_wins = match function {
        "max" => second.order(first)?.is_gt(),
        _ => second.order(first)?.is_lt(),
    };
    let chosen = if second_wins { second } else { first };
    match (first, second) {
        (Value::Int(_), Value::Int(_)) => Some(chosen.clone()),
        _ => chosen.number().map(Value::Double),
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.len() * 16,
        _ => 0,
    }
}

fn count(number: usize) -> Option<Value> {
    i64::try_from(number).ok().map(Value::Int)
}

fn convert(function: &str, value: &Value) -> Option<Value> {
    Some(match (function, value) {
        ("int", Value::Text(text)) => Value::Int(text.parse().ok()?),
        ("int", Value::Double(number)) if number.abs() < 9.2e18 => Value::Int(*number as i64),
        ("int", number) => Value::Int(i64::try_from(number.whole()?).ok()?),
        ("uint", Value::Text(text)) => Value::Uint(text.parse().ok()?),
        ("uint", Value::Double(number)) if (0.0..1.8e19).contains(number) => Value::Uint(*number as u64),
        ("uint", number) => Value::Uint(u64::try_from(number.whole()?).ok()?),
        ("double", Value::Double(number)) => Value::Double(*number),
        ("double", Value::Text(text)) => Value::Double(text.parse().ok()?),
        ("double", number) => Value::Double(number.whole()? as f64),
        ("string", Value::Text(text)) => Value::Text(text.clone()),
        ("string", Value::Bool(value)) => Value::text(&value.to_string()),
        ("string", Value::Double(number)) => Value::text(&number.to_string()),
        ("string", number) => Value::text(&number.whole()?.to_string()),
        ("bool", Value::Bool(value)) => Value::Bool(*value),
        ("bool", Value::Text(text)) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Value::Bool(true),
            "false" | "False" | "FALSE" | "f" | "0" => Value::Bool(false),
            _ => return None,
        },
        _ => return None,
    })
}

fn optional(function: &str, inner: Option<&Arc<Value>>, rest: &[Value]) -> Option<Value> {
    match (function, inner, rest) {
        (".hasValue", inner, []) => Some(Value::Bool(inner.is_some())),
        (".value" | ".orValue", Some(value), _) => Some((**value).clone()),
        (".orValue", None, [other]) => Some(other.clone()),
        (".or", Some(value), _) => Some(Value::Optional(Some(value.clone()))),
        (".or", None, [other @ Value::Optional(_)]) => Some(other.clone()),
        _ => None,
    }
}

fn quantity(function: &str, amount: Quantity, rest: &[Value]) -> Option<Value> {
    let whole = || {
        let rounded = amount.value_ceil();
        (Quantity::from_int(rounded) == amount).then_some(rounded)
    };
    match (function, rest) {
        (".sign", []) => Some(Value::Int(amount.cmp(&Quantity::ZERO) as i64)),
        (".isInteger", []) => Some(Value::Bool(whole().is_some())),
        (".asInteger", []) => whole().map(Value::Int),
        (".asApproximateFloat", []) => Some(Value::Double(amount.as_f64())),
        (".add", [Value::Quantity(other)]) => Some(Value::Quantity(amount.saturating_add(*other))),
        (".add", [Value::Int(other)]) => Some(Value::Quantity(amount.saturating_add(Quantity::from_int(*other)))),
        (".sub", [Value::Quantity(other)]) => Some(Value::Quantity(amount.saturating_sub(*other))),
        (".sub", [Value::Int(other)]) => Some(Value::Quantity(amount.saturating_sub(Quantity::from_int(*other)))),
        (_, [Value::Quantity(other)]) => compared(function, amount.cmp(other)),
        _ => None,
    }
}

fn released(function: &str, version: &Version, rest: &[Value]) -> Option<Value> {
    let part = |number: u64| i64::try_from(number).ok().map(Value::Int);
    match (function, rest) {
        (".major", []) => part(version.major),
        (".minor", []) => part(version.minor),
        (".patch", []) => part(version.patch),
        (_, [Value::Version(other)]) => compared(function, version.cmp_precedence(other)),
        _ => None,
    }
}

fn compared(function: &str, order: Ordering) -> Option<Value> {
    match function {
        ".compareTo" => Some(Value::Int(order as i64)),
        ".isGreaterThan" => Some(Value::Bool(order.is_gt())),
        ".isLessThan" => Some(Value::Bool(order.is_lt())),
        _ => None,
    }
}

fn text(evaluation: &Evaluation, function: &str, text: &Arc<str>, rest: &[Value]) -> Option<Value> {
    let between = |from: i64, to: i64| text.get(byte_of(text, from)?..byte_of(text, to)?).map(Value::text);
    let regex = |pattern: &Arc<str>| {
        evaluation.pay(pattern.len())?;
        Regex::new(pattern).ok()
    };
    Some(match (function, rest) {
        ("size" | ".size", []) => return count(text.chars().count()),
        (".contains", [Value::Text(part)]) => Value::Bool(text.contains(&**part)),
        (".startsWith", [Value::Text(part)]) => Value::Bool(text.starts_with(&**part)),
        (".endsWith", [Value::Text(part)]) => Value::Bool(text.ends_with(&**part)),
        (".matches" | "matches", [Value::Text(pattern)]) => Value::Bool(regex(pattern)?.is_match(text)),
        (".find", [Value::Text(pattern)]) => {
            let regex = regex(pattern)?;
            Value::text(regex.find(text).map_or("", |found| found.as_str()))
        }
        (".findAll", [Value::Text(pattern), limit @ ..]) => {
            let regex = regex(pattern)?;
            let all = regex.find_iter(text).map(|found| Value::text(found.as_str()));
            Value::List(all.take(limit_of(limit)?).collect())
        }
        (".charAt", [Value::Int(place)]) => {
            let from = byte_of(text, *place)?;
            Value::text(
                text[from..]
                    .chars()
                    .next()
                    .map_or("", |c| &text[from..from + c.len_utf8()]),
            )
        }
        (".indexOf", [Value::Text(part), from @ ..]) => return index_of(text, part, from),
        (".lastIndexOf", [Value::Text(part), to @ ..]) => return last_index_of(text, part, to),
        (".lowerAscii", []) => Value::text(&text.to_ascii_lowercase()),
        (".upperAscii", []) => Value::text(&text.to_ascii_uppercase()),
        (".trim", []) => Value::text(text.trim()),
        (".trimPrefix", [Value::Text(part)]) => Value::text(text.strip_prefix(&**part).unwrap_or(text)),
        (".trimSuffix", [Value::Text(part)]) => Value::text(text.strip_suffix(&**part).unwrap_or(text)),
        (".reverse", []) => Value::text(&text.chars().rev().collect::<String>()),
        (".replace", [Value::Text(from), Value::Text(to), limit @ ..]) => {
            evaluation.pay((text.len() + 1) * (to.len() + 1))?;
            Value::text(&text.replacen(&**from, to, limit_of(limit)?))
        }
        (".split", [Value::Text(separator), limit @ ..]) => {
            evaluation.pay(text.len())?;
            Value::List(split(text, separator, limit_of(limit)?).into())
        }
        (".substring", [Value::Int(from)]) => Value::text(&text[byte_of(text, *from)?..]),
        (".substring", [Value::Int(from), Value::Int(to)]) => return between(*from, *to),
        ("quantity", []) => Value::Quantity(Quantity::parse(text).ok()?),
        ("isQuantity", []) => Value::Bool(Quantity::parse(text).is_ok()),
        ("semver", lenient) => Value::Version(Arc::new(version(text, lenient)?)),
        ("isSemver", lenient) => Value::Bool(version(text, lenient).is_some()),
        _ => return None,
    })
}

/// A negative limit is none.
fn limit_of(limit: &[Value]) -> Option<usize> {
    match limit {
        [] => Some(usize::MAX),
        [Value::Int(limit)] => Some(usize::try_from(*limit).unwrap_or(usize::MAX)),
        _ => None,
    }
}

fn split(text: &str, separator: &str, limit: usize) -> Vec<Value> {
    if separator.is_empty() {
        let characters: Vec<char> = text.chars().collect();
        let whole = characters.len().min(limit.saturating_sub(1));
        let single = characters[..whole].iter().map(char::to_string);
        let rest: String = characters[whole..].iter().collect();
        let rest = (limit > 0 && !rest.is_empty()).then_some(rest);
        return single.chain(rest).map(|part| Value::text(&part)).collect();
    }
    text.splitn(limit, separator).map(Value::text).collect()
}

/// Places are counted in characters.
fn index_of(text: &str, part: &str, from: &[Value]) -> Option<Value> {
    let from = match from {
        [] => 0,
        [Value::Int(from)] => byte_of(text, *from)?,
        _ => return None,
    };
    let found = text[from..].find(part);
    found.map_or(Some(Value::Int(-1)), |place| {
        count(text[..from + place].chars().count())
    })
}

fn last_index_of(text: &str, part: &str, to: &[Value]) -> Option<Value> {
    let to = match to {
        [] => text.len(),
        // The part may start there and reach beyond.
        [Value::Int(to)] => (byte_of(text, *to)? + part.len()).min(text.len()),
        _ => return None,
    };
    let found = text.get(..to).unwrap_or(text).rfind(part);
    found.map_or(Some(Value::Int(-1)), |place| count(text[..place].chars().count()))
}

fn byte_of(text: &str, character: i64) -> Option<usize> {
    let mut places = text.char_indices().map(|(place, _)| place).chain([text.len()]);
    places.nth(usize::try_from(character).ok()?)
}

/// With `true`, a leading `v`, missing parts and leading zeros are forgiven.
fn version(text: &str, lenient: &[Value]) -> Option<Version> {
    match lenient {
        [] | [Value::Bool(false)] => Version::parse(text).ok(),
        [Value::Bool(true)] => Version::parse(&normalized(text)).ok(),
        _ => None,
    }
}

fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts: Vec<&str> = numbers.split('.').collect();
    parts.resize(parts.len().max(3), "0");
    let without_zeros = |part: &&str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let parts: Vec<String> = parts.iter().map(without_zeros).collect();
    parts.join(".") + rest
}

fn list(function: &str, items: &Arc<[Value]>, rest: &[Value]) -> Option<Value> {
    let place = |found: Option<usize>| found.map_or(Some(Value::Int(-1)), count);
    let within = |outer: &[Value], inner: &[Value]| inner.iter().all(|value| outer.contains(value));
    match (function, rest) {
        ("size" | ".size", []) => count(items.len()),
        (".indexOf", [value]) => place(items.iter().position(|item| item == value)),
        (".lastIndexOf", [value]) => place(items.iter().rposition(|item| item == value)),
        (".reverse", []) => Some(Value::List(items.iter().rev().cloned().collect())),
        (".join", separator) => {
            let separator = match separator {
                [] => "",
                [Value::Text(separator)] => separator,
                _ => return None,
            };
            let texts = items.iter().map(|item| match item {
                Value::Text(text) => Some(&**text),
                _ => None,
            });
            Some(Value::text(&texts.collect::<Option<Vec<&str>>>()?.join(separator)))
        }
        (".isSorted", []) => {
            let mut sorted = true;
            for pair in items.windows(2) {
                sorted &= pair[0].order(&pair[1])?.is_le();
            }
            Some(Value::Bool(sorted))
        }
        (".sum", []) => items.iter().try_fold(Value::Int(0), |sum, item| match (sum, item) {
            (Value::Int(sum), Value::Int(item)) => sum.checked_add(*item).map(Value::Int),
            (Value::Int(0), Value::Double(item)) => Some(Value::Double(*item)),
            (Value::Double(sum), Value::Double(item)) => Some(Value::Double(sum + item)),
            _ => None,
        }),
        (".min" | ".max", []) => {
            let wanted = if function == ".min" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let (first, others) = items.split_first()?;
            let best = others.iter().try_fold(first, |best, item| {
                Some(if item.order(best)? == wanted { item } else { best })
            });
            best.cloned()
        }
        ("sets.contains", [Value::List(other)]) => Some(Value::Bool(within(items, other))),
        ("sets.equivalent", [Value::List(other)]) => Some(Value::Bool(within(items, other) && within(other, items))),
        ("sets.intersects", [Value::List(other)]) => Some(Value::Bool(other.iter().any(|value| items.contains(value)))),
        _ => None,
    }
}
