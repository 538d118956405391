//! The part of JSONPath that printer columns use: fields, indexes, wildcards and filters by equality.

use serde_json::Value;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// The items in which the path below the item holds this text.
    Where(Vec<String>, String),
}

impl JsonPath {
    pub(super) fn parse(text: &str) -> Option<JsonPath> {
        let mut rest = text
            .trim()
            .trim_start_matches('{')
            .trim_end_matches('}')
            .trim_start_matches('$');
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(bracket) = rest.strip_prefix('[') {
                let end = closing(bracket)?;
                steps.push(bracketed(&bracket[..end])?);
                rest = &bracket[end + 1..];
            } else {
                let (name, after) = dotted(rest.strip_prefix('.').unwrap_or(rest))?;
                steps.push(if name == "*" { Step::All } else { Step::Field(name) });
                rest = after;
            }
        }
        Some(JsonPath(steps))
    }

    /// All values that the path leads to.
    pub(super) fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.0.iter().fold(vec![root], |found, step| {
            found.into_iter().flat_map(|value| step.take(value)).collect()
        })
    }
}

impl Step {
    fn take<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Step::Field(name), value) => value.get(name).into_iter().collect(),
            (Step::Index(at), Value::Array(items)) => {
                let at = if *at < 0 {
                    *at + i64::try_from(items.len()).unwrap_or(0)
                } else {
                    *at
                };
                usize::try_from(at)
                    .ok()
                    .and_then(|at| items.get(at))
                    .into_iter()
                    .collect()
            }
            (Step::All, Value::Array(items)) => items.iter().collect(),
            (Step::All, Value::Object(fields)) => fields.values().collect(),
            (Step::Where(path, wanted), Value::Array(items)) => {
                let holds = |item: &&Value| {
                    let found = path.iter().try_fold(*item, |value, name| value.get(name));
                    found
                        .is_some_and(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned) == *wanted)
                };
                items.iter().filter(holds).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The end of a bracket's content, past quotes and brackets inside.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracketed(content: &str) -> Option<Step> {
    let content = content.trim();
    if content == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquoted(content) {
        return Some(Step::Field(name));
    }
    if let Some(filter) = content.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (path, wanted) = filter.split_once("==")?;
        let wanted = wanted.trim();
        let path = path.trim().strip_prefix('@')?;
        let names = JsonPath::parse(path)?.0.into_iter().map(|step| match step {
            Step::Field(name) => Some(name),
            _ => None,
        });
        return Some(Step::Where(
            names.collect::<Option<_>>()?,
            unquoted(wanted).unwrap_or_else(|| wanted.to_owned()),
        ));
    }
    content.parse().ok().map(Step::Index)
}

fn unquoted(text: &str) -> Option<String> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.to_owned())
    })
}

/// A field's name up to the next dot or bracket; a backslash takes the next character as it is.
fn dotted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => return (!name.is_empty()).then(|| (name, &text[at..])),
            c => name.push(c),
        }
    }
    (!name.is_empty()).then_some((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The paths of spec api.md §2.1 and their kin.
    #[test]
    fn paths_lead_to_their_values() {
        let object = json!({
            "metadata": {"labels": {"node.kubernetes.io/instance-type": "m5.large"}},
            "spec": {"replicas": 3, "list": ["a", "b"]},
            "status": {"conditions": [
                {"type": "Launched", "status": "True"}, {"type": "Ready", "status": "False"},
            ]},
        });
        let rows = [
            (".spec.replicas", json!([3])),
            (
                r".metadata.labels.node\.kubernetes\.io/instance-type",
                json!(["m5.large"]),
            ),
            (
                ".metadata.labels['node.kubernetes.io/instance-type']",
                json!(["m5.large"]),
            ),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["False"])),
            (".status.conditions[?(@.type == 'Ready')].status", json!(["False"])),
            (".status.conditions[*].type", json!(["Launched", "Ready"])),
            (".spec.list[-1]", json!(["b"])),
            (".spec.none.below", json!([])),
        ];
        for (path, expected) in rows {
            let path = JsonPath::parse(path).expect("the path is valid");
            assert_eq!(json!(path.find(&object)), expected, "{path:?}");
        }
    }

    #[test]
    fn broken_paths_are_refused() {
        for path in ["..", ".a[", ".a[?(@.b)]", ".a[x]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
