//! Small pieces that cells are made of.

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// A string, or the empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A string, or other words where there is none.
pub(super) fn text_or<'v>(value: &'v Value, none: &'v str) -> &'v str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(none)
}

pub(super) fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// How long ago the object was made.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// How long ago a point in time was.
pub(super) fn since(time: &Value, now: Timestamp) -> String {
    match text(time).parse::<Timestamp>() {
        Ok(time) => duration(now.as_second() - time.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A span in at most two units, the finer one only where it matters: `45s`, `3m5s`, `2h`, `5d3h`.
pub(super) fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |big: i64, unit: &str, small: i64, subunit: &str| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{subunit}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// `a=1,b=2` in the order of the keys.
pub(super) fn labels(map: &Value) -> String {
    let pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    if pairs.is_empty() {
        "<none>".into()
    } else {
        pairs.join(",")
    }
}

/// A label selector in the syntax of `kubectl -l`; empty if it selects everything.
pub(super) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flat_map(Map::iter) {
        parts.push((key.clone(), format!("{key}={}", text(value))));
    }
    for expression in list(&selector["matchExpressions"]) {
        let key = text(&expression["key"]);
        let mut values: Vec<&str> = list(&expression["values"]).iter().map(text).collect();
        values.sort_unstable();
        let values = values.join(",");
        let shown = match text(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), shown));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, shown)| shown).collect::<Vec<_>>().join(",")
}

pub(super) fn selector_or_none(value: &Value) -> String {
    let shown = selector(value);
    if shown.is_empty() { "<none>".into() } else { shown }
}

/// The names and the images of a pod template's containers.
pub(super) fn containers(template: &Value) -> [Value; 2] {
    let join = |field: &str| -> Value {
        let words: Vec<&str> = list(&template["spec"]["containers"])
            .iter()
            .map(|container| text(&container[field]))
            .collect();
        words.join(",").into()
    };
    [join("name"), join("image")]
}

/// The first few of many.
pub(super) fn few(words: &[String], most: usize) -> String {
    let mut shown = words[..words.len().min(most)].join(",");
    if words.len() > most {
        write!(shown, " + {} more...", words.len() - most).expect("writing to a string cannot fail");
    }
    shown
}

/// Whether a condition of this type is there and true.
pub(super) fn has_condition(object: &Value, kind: &str) -> bool {
    let condition = list(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == kind);
    condition.is_some_and(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_keep_two_units_at_most() {
        let rows = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (49 * 3600, "2d1h"),
            (9 * 86400, "9d"),
            (800 * 86400, "2y70d"),
            (9 * 365 * 86400, "9y"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn selectors_are_shown_in_the_syntax_of_kubectl() {
        let value = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"},
                {"key": "d", "operator": "Exists"},
            ],
        });
        assert_eq!(selector(&value), "a in (x,y),b=1,!c,d");
        assert_eq!(selector_or_none(&json!({})), "<none>");
    }
}
