//! Field selectors: a few fields of each kind can be compared for equality.

use serde_json::Value;

use crate::registry::ResourceType;

/// All terms have to hold. Without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Reads a selector for a kind.
    ///
    /// *Errors*: the real server's complaint about the syntax or about a field that the kind does not offer.
    pub(crate) fn parse(text: &str, ty: &ResourceType) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let (field, equal, value) =
                split_term(part).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            let field = selectable(ty, field)?;
            let path = field.split('.').map(str::to_owned).collect();
            terms.push(Term {
                path,
                value: unescaped(value)?,
                equal,
            });
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Narrows the selector to one object.
    pub(crate) fn require_name(&mut self, name: &str) {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.terms.push(Term {
            path,
            value: name.to_owned(),
            equal: true,
        });
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.terms
            .iter()
            .all(|term| is_value(lookup(object, &term.path), &term.value) == term.equal)
    }
}

fn lookup<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    // An event's source is its component, whichever of the two API groups wrote it.
    if path.len() == 1 && path[0] == "source" {
        let component = &object["source"]["component"];
        return if component.is_null() {
            &object["reportingComponent"]
        } else {
            component
        };
    }
    crate::meta::at(object, path)
}

fn is_value(found: &Value, wanted: &str) -> bool {
    match found {
        Value::Null => wanted.is_empty() || wanted == "false",
        Value::String(text) => text == wanted,
        Value::Bool(flag) => wanted == if *flag { "true" } else { "false" },
        Value::Number(number) => number.to_string() == wanted,
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// The path that a field label stands for, in the stored form of the object.
fn selectable<'a>(ty: &ResourceType, field: &'a str) -> Result<&'a str, String> {
    let not_supported = || Err(format!("field label not supported: {field}"));
    if let Some(custom) = &ty.custom {
        let known = field == "metadata.name"
            || (ty.namespaced && field == "metadata.namespace")
            || custom.selectable_fields.iter().any(|path| path == field);
        return if known { Ok(field) } else { not_supported() };
    }
    let fields: &[&str] = match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Pod") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Node") => &["metadata.name", "spec.unschedulable"],
        ("", "ReplicationController") => &["metadata.name", "metadata.namespace", "status.replicas"],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
            "metadata.namespace",
            "metadata.name",
        ],
        ("events.k8s.io", "Event") => return event_field(field).map_or_else(not_supported, Ok),
        ("", "Namespace") => &["status.phase", "metadata.name"],
        ("", "Secret") => &["type", "metadata.namespace", "metadata.name"],
        ("", "Service") => &["metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"],
        ("batch", "Job") if !["metadata.name", "metadata.namespace", "status.successful"].contains(&field) => {
            return Err(format!("field label {field:?} not supported for Job"));
        }
        ("batch", "Job") => {
            return Ok(if field == "status.successful" {
                "status.succeeded"
            } else {
                field
            });
        }
        ("resource.k8s.io", "ResourceSlice") => {
            if ["metadata.name", "spec.nodeName", "spec.driver"].contains(&field) {
                return Ok(field);
            }
            return Err(format!(
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}"
            ));
        }
        _ if field == "metadata.name" || field == "metadata.namespace" => return Ok(field),
        _ => {
            return Err(format!(
                "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ));
        }
    };
    match fields.contains(&field) {
        true => Ok(field),
        false if ty.kind == "Pod" && field == "spec.host" => Ok("spec.nodeName"),
        false => not_supported(),
    }
}

/// Events are stored in the core form; the newer group has other names for the same fields.
fn event_field(field: &str) -> Option<&str> {
    Some(match field {
        "reason" | "type" | "metadata.name" | "metadata.namespace" => field,
        "reportingController" => "reportingComponent",
        "regarding.kind" => "involvedObject.kind",
        "regarding.namespace" => "involvedObject.namespace",
        "regarding.name" => "involvedObject.name",
        "regarding.uid" => "involvedObject.uid",
        "regarding.apiVersion" => "involvedObject.apiVersion",
        "regarding.resourceVersion" => "involvedObject.resourceVersion",
        "regarding.fieldPath" => "involvedObject.fieldPath",
        _ => return None,
    })
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['!', '='])?;
    let rest = &term[at..];
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((&term[..at], false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((&term[..at], true, value))
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(char)
                ));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn parse(kind: (&str, &str, &str), text: &str) -> Result<FieldSelector, String> {
        let registry = Registry::default();
        FieldSelector::parse(text, registry.find(kind.0, kind.1, kind.2).expect("a built-in kind"))
    }

    #[test]
    fn a_pods_node_is_compared_and_a_missing_one_is_empty() {
        let bound =
            json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "n1" }, "status": { "phase": "Running" } });
        let free = json!({ "metadata": { "name": "b" }, "spec": {} });
        let on_node = parse(("", "v1", "pods"), "spec.nodeName=n1,status.phase!=Succeeded").expect("supported");
        assert!(on_node.matches(&bound) && !on_node.matches(&free));
        let unbound = parse(("", "v1", "pods"), "spec.nodeName=").expect("supported");
        assert!(!unbound.matches(&bound) && unbound.matches(&free));
    }

    #[test]
    fn an_unset_flag_is_false() {
        let selector = parse(("", "v1", "nodes"), "spec.unschedulable=false").expect("supported");
        assert!(selector.matches(&json!({ "spec": {} })));
        assert!(!selector.matches(&json!({ "spec": { "unschedulable": true } })));
    }

    #[test]
    fn unknown_fields_are_refused_in_the_servers_words() {
        assert_eq!(
            parse(("", "v1", "pods"), "spec.foo=1"),
            Err("field label not supported: spec.foo".to_owned())
        );
        assert_eq!(
            parse(("apps", "v1", "deployments"), "spec.replicas=1"),
            Err(
                "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    .to_owned()
            )
        );
        assert_eq!(
            parse(("", "v1", "pods"), "metadata.name"),
            Err("invalid selector: 'metadata.name'; can't understand 'metadata.name'".to_owned())
        );
    }

    #[test]
    fn the_newer_events_group_names_the_same_fields() {
        let event = json!({ "involvedObject": { "name": "p" }, "reason": "Killing" });
        let selector = parse(("events.k8s.io", "v1", "events"), "regarding.name=p,reason=Killing").expect("supported");
        assert!(selector.matches(&event));
    }
}
