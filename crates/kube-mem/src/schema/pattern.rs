//! Go's regular expressions in Rust's dialect.

use regex::Regex;

/// Compiles a pattern of a schema. It is searched for, not matched whole.
///
/// Go's `\d`, `\w` and `\s` know ASCII only and Rust's know Unicode, so these are spelled out.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    let mut rust = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    rust.push(c);
                    break;
                };
                let ascii = match escaped {
                    'd' => "0-9",
                    'w' => "0-9A-Za-z_",
                    's' => r"\t\n\f\r ",
                    _ => "",
                };
                match (ascii, in_class) {
                    ("", _) => rust.extend([c, escaped]),
                    (ascii, true) => rust.push_str(ascii),
                    (ascii, false) => rust.extend(["[", ascii, "]"]),
                }
            }
            '[' if in_class => {
                // A bracket inside a class is a character to Go and a nested class to Rust.
                let is_named = chars.as_str().starts_with(':');
                rust.push_str(if is_named { "[" } else { r"\[" });
            }
            '[' => {
                in_class = true;
                rust.push(c);
                // A closing bracket in first place is a character of the class.
                if let Some(rest) = chars.as_str().strip_prefix('^') {
                    rust.push('^');
                    chars = rest.chars();
                }
                if let Some(rest) = chars.as_str().strip_prefix(']') {
                    rust.push_str(r"\]");
                    chars = rest.chars();
                }
            }
            ']' if in_class => {
                // The end of a named class such as `[:alpha:]` is not the end of the class around it.
                in_class = rust.ends_with(':') && rust.rfind("[:").is_some_and(|start| rust[start..].len() > 2);
                rust.push(c);
            }
            '&' | '~' if in_class => rust.extend(['\\', c]),
            _ => rust.push(c),
        }
    }
    Regex::new(&rust)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, accepted: &[&str], rejected: &[&str]) {
        let regex = compile(pattern).expect("the pattern compiles");
        accepted
            .iter()
            .for_each(|text| assert!(regex.is_match(text), "{pattern} should match {text:?}"));
        rejected
            .iter()
            .for_each(|text| assert!(!regex.is_match(text), "{pattern} should not match {text:?}"));
    }

    #[test]
    fn a_pattern_is_searched_for() {
        check("b+", &["abc"], &["ac"]);
        check("^b+$", &["bb"], &["abb", "b\n"]);
    }

    #[test]
    fn digits_words_and_spaces_are_ascii() {
        check(r"^\d+$", &["12"], &["٣"]);
        check(r"^[\w-]+$", &["a_b-9"], &["é"]);
    }

    #[test]
    fn brackets_in_classes_are_characters() {
        check(r"^[[a]+$", &["[a["], &["]"]);
        check(r"^[]a]+$", &["]a"], &["["]);
        check(r"^[[:alpha:]_]+$", &["ab_"], &["1"]);
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
    }

    /// The quantity and qualified name patterns of spec api.md §3.1.
    #[test]
    fn the_patterns_of_karpenters_schemas_compile() {
        check(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            &["1", "1.5Gi", "100m", "1e3", ".5"],
            &["", "1GiB", "x"],
        );
        check(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
            &["karpenter.sh/nodepool", "zone"],
            &["", "a/b/c", "-x"],
        );
    }
}
