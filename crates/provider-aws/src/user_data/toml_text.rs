//! TOML as Go's writer lays it out: plain values first, then tables, strings in single quotes.

use std::fmt::Write as _;

use toml_edit::{Item, Table, Value};

/// How keys of one table are ordered. Keys that a table's order does not name come after, sorted.
pub(super) type KeyOrder = fn(path: &[&str]) -> Option<&'static [&'static str]>;

pub(super) fn write(table: &Table, order: KeyOrder) -> String {
    let mut text = String::new();
    write_table(&mut text, table, &[], order);
    text
}

fn write_table(text: &mut String, table: &Table, path: &[&str], order: KeyOrder) {
    let mut entries: Vec<(&str, &Item)> = table.iter().filter(|(_, item)| !item.is_none()).collect();
    let known = order(path).unwrap_or_default();
    let place = |key: &str| known.iter().position(|known| *known == key).unwrap_or(known.len());
    entries.sort_by(|(a, _), (b, _)| (place(a), a).cmp(&(place(b), b)));
    let (tables, values): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|(_, item)| item.is_table() || item.is_array_of_tables() || item.is_inline_table());
    for (key, item) in &values {
        if let Some(value) = item.as_value() {
            let _ = writeln!(text, "{} = {}", key_text(key), value_text(value));
        }
    }
    let mut is_first = values.is_empty();
    for (key, item) in tables {
        let path = [path, &[key]].concat();
        if let Some(list) = item.as_array_of_tables() {
            for table in list {
                header(text, &format!("[[{}]]", path_text(&path)), is_first);
                is_first = false;
                write_table(text, table, &path, order);
            }
            continue;
        }
        // Go's reader makes no difference between a table and one written in a single line.
        let inline = item.as_inline_table().map(|inline| inline.clone().into_table());
        if let Some(table) = item.as_table().or(inline.as_ref()) {
            header(text, &format!("[{}]", path_text(&path)), is_first);
            is_first = false;
            write_table(text, table, &path, order);
        }
    }
}

/// A blank line goes before every header but the first of a table that holds nothing but tables.
fn header(text: &mut String, header: &str, is_first: bool) {
    if !is_first {
        text.push('\n');
    }
    text.push_str(header);
    text.push('\n');
}

fn path_text(path: &[&str]) -> String {
    path.iter().map(|key| key_text(key)).collect::<Vec<_>>().join(".")
}

fn key_text(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { key.to_owned() } else { string_text(key) }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => string_text(text.value()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(value_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::InlineTable(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} = {}", key_text(key), value_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => {
            let text = number.value().to_string();
            if text.contains(['.', 'e', 'n']) {
                text
            } else {
                text + ".0"
            }
        }
        Value::Boolean(value) => value.value().to_string(),
        Value::Datetime(moment) => moment.value().to_string(),
    }
}

/// Single quotes, which know no escapes, unless the text needs them.
fn string_text(text: &str) -> String {
    if !text.contains('\'') && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
