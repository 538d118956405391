//! What may be a name, a label key or a label value, with the real server's words for what may not.

use crate::registry::ResourceType;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// What is wrong with the name of an object of this type.
pub(crate) fn object_name_problems(ty: &ResourceType, name: &str) -> Vec<String> {
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Namespace") => dns_label_problems(name),
        ("", "Service") => dns_1035_label_problems(name),
        ("rbac.authorization.k8s.io", _) => path_segment_problems(name),
        _ => dns_subdomain_problems(name),
    }
}

pub(crate) fn dns_subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push(too_long(253));
    }
    if !is_dns_subdomain(name) {
        problems.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{LABEL}(\\.{LABEL})*')"
        ));
    }
    problems
}

pub(crate) fn dns_label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_dns_label(name) {
        problems.push(if is_dns_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '{LABEL}')"
            )
        });
    }
    problems
}

fn dns_1035_label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_dns_label(name) || name.starts_with(|char: char| char.is_ascii_digit()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

fn path_segment_problems(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ['/', '%']
            .into_iter()
            .filter(|char| name.contains(*char))
            .map(|char| format!("may not contain '{char}'"))
            .collect(),
    }
}

pub(crate) fn label_key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(
                    dns_subdomain_problems(prefix)
                        .iter()
                        .map(|problem| format!("prefix part {problem}")),
                );
            }
            name
        }
        Some(_) => {
            return vec![format!(
                "a valid label key {QUALIFIED_NAME} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_long(63)));
    }
    if name.is_empty() || !is_label_word(name) {
        problems.push(format!("name part {QUALIFIED_NAME}"));
    }
    problems
}

const QUALIFIED_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label_word(value) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    !bytes.is_empty() && bytes.iter().all(inner) && bytes[0] != b'-' && bytes[bytes.len() - 1] != b'-'
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Empty, or alphanumeric at both ends with dashes, dots and underscores between.
fn is_label_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    bytes.iter().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_their_kind() {
        assert!(dns_subdomain_problems("a.b-c.0").is_empty());
        for bad in ["Upper", "", "a..b", "-a"] {
            assert_eq!(dns_subdomain_problems(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns_label_problems("a.b"), ["must not contain dots"]);
        assert_eq!(dns_1035_label_problems("0a").len(), 1);
        assert!(path_segment_problems("system:node").is_empty());
        assert_eq!(path_segment_problems("a/b%").len(), 2);
    }

    #[test]
    fn label_keys_may_have_a_prefix_and_values_may_be_empty() {
        assert!(label_key_problems("karpenter.sh/nodepool").is_empty());
        assert_eq!(label_key_problems("/x"), ["prefix part must be non-empty"]);
        assert_eq!(label_key_problems("a/b/c").len(), 1);
        assert_eq!(label_key_problems("").len(), 2);
        assert!(label_value_problems("").is_empty());
        assert_eq!(label_value_problems("-a").len(), 1);
        assert_eq!(label_value_problems(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
