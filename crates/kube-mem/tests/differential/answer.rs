//! Answers without what has to differ: identities, versions and times.

use std::fmt::Write;

use serde_json::{Map, Value};

/// What a server said to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

/// The differences between two answers, line by line, or nothing.
pub fn difference(real: &Answer, memory: &Answer) -> Option<String> {
    let (real, memory) = (comparable(real), comparable(memory));
    if real == memory {
        return None;
    }
    let lines = |answer: &Answer| -> Vec<String> {
        let body = serde_json::to_string_pretty(&answer.body).expect("a value can be printed");
        let head = [format!("code {}", answer.code)];
        let warnings = answer.warnings.iter().map(|warning| format!("warning {warning}"));
        head.into_iter()
            .chain(warnings)
            .chain(body.lines().map(str::to_owned))
            .collect()
    };
    Some(diff(&lines(&real), &lines(&memory)))
}

/// `-` is the real server, `+` is ours; a few common lines around each change.
fn diff(real: &[String], memory: &[String]) -> String {
    // The longest common subsequence; answers have a few hundred lines.
    let mut common = vec![vec![0_usize; memory.len() + 1]; real.len() + 1];
    for r in (0..real.len()).rev() {
        for m in (0..memory.len()).rev() {
            common[r][m] = if real[r] == memory[m] {
                common[r + 1][m + 1] + 1
            } else {
                common[r + 1][m].max(common[r][m + 1])
            };
        }
    }
    let (mut r, mut m) = (0, 0);
    let mut marked: Vec<(char, &str)> = Vec::new();
    while r < real.len() || m < memory.len() {
        if r < real.len() && m < memory.len() && real[r] == memory[m] {
            marked.push((' ', &real[r]));
            (r, m) = (r + 1, m + 1);
        } else if m == memory.len() || (r < real.len() && common[r + 1][m] >= common[r][m + 1]) {
            marked.push(('-', &real[r]));
            r += 1;
        } else {
            marked.push(('+', &memory[m]));
            m += 1;
        }
    }
    let near = |at: usize| {
        let window = at.saturating_sub(3)..(at + 4).min(marked.len());
        marked[window].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    for (at, (mark, line)) in marked.iter().enumerate().filter(|(at, _)| near(*at)) {
        let gap = if at > 0 && !near(at - 1) { "   ...\n" } else { "" };
        writeln!(text, "{gap}{mark} {line}").expect("writing to a string cannot fail");
    }
    text
}

fn comparable(answer: &Answer) -> Answer {
    let mut body = answer.body.clone();
    if body["kind"] == "Status" {
        sort_causes(&mut body);
        cut_decoder(&mut body);
    }
    // Hints about questionable but valid objects are not sent by this server.
    let mut warnings = answer.warnings.clone();
    warnings.retain(|warning| warning.contains("unknown field") || warning.contains("duplicate field"));
    Answer {
        code: answer.code,
        warnings,
        body: blank(&body),
    }
}

/// The real server finds wrong fields in random order, so causes are sorted and the message that lists them is cut.
fn sort_causes(status: &mut Value) {
    let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) else {
        return;
    };
    for cause in causes.iter_mut().filter(|cause| cause["field"] == "patch") {
        cause["message"] = "Invalid value: ...".into();
    }
    // It also says some things twice.
    causes.sort_by_key(Value::to_string);
    causes.dedup();
    if causes.len() > 1
        && let Some((head, _)) = status["message"]
            .as_str()
            .and_then(|message| message.split_once(" is invalid: ["))
    {
        status["message"] = format!("{head} is invalid: [...]").into();
    }
}

/// What a decoder of Go structs says about a value of the wrong type is not imitated to the last word.
fn cut_decoder(status: &mut Value) {
    let message = status["message"].as_str().unwrap_or_default();
    let complaints = [
        "patch: Invalid value",
        "unable to convert unstructured object",
        "json: cannot unmarshal",
        "json parse error",
        "parsing time",
        "illegal base64 data",
    ];
    for complaint in complaints {
        if let Some((head, _)) = message.split_once(complaint) {
            status["message"] = format!("{head}{complaint} ...").into();
            return;
        }
    }
}

/// Puts a mark in place of what identifies, numbers or dates.
fn blank(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let blanked: Map<String, Value> = fields
                .iter()
                .map(|(key, below)| (key.clone(), blank_field(key, below)))
                .collect();
            Value::Object(blanked)
        }
        Value::Array(items) => items.iter().map(blank).collect(),
        Value::String(text) => blank_text(text).into(),
        other => other.clone(),
    }
}

/// Entries written in the same second are sorted by name, others by time, and seconds pass when they like.
fn managers_by_name(entries: &Value) -> Value {
    let mut entries: Vec<Value> = entries.as_array().into_iter().flatten().map(blank).collect();
    entries.sort_by_key(|entry| ["operation", "manager", "subresource"].map(|field| entry[field].to_string()));
    entries.into()
}

fn blank_field(key: &str, value: &Value) -> Value {
    const BLANKED: [&str; 6] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "time",
        "continue",
    ];
    match value {
        Value::String(text) if BLANKED.contains(&key) && !text.is_empty() => format!("<{key}>").into(),
        value if key == "managedFields" => managers_by_name(value),
        value => blank(value),
    }
}

/// Identities inside texts.
fn blank_text(text: &str) -> String {
    let is_uid = |word: &str| {
        word.len() == 36
            && word.chars().enumerate().all(|(at, c)| {
                if [8, 13, 18, 23].contains(&at) {
                    c == '-'
                } else {
                    c.is_ascii_hexdigit()
                }
            })
    };
    let mut blanked = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_alphanumeric() || c == '-' {
            word.push(c);
            continue;
        }
        blanked.push_str(if is_uid(&word) { "<uid>" } else { &word });
        word.clear();
        if c != '\0' {
            blanked.push(c);
        }
    }
    blanked
}
