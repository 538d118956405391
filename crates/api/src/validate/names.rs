//! Kubernetes' rules for label keys and values.

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

/// Why a text is not a qualified name such as `example.com/team`.
pub fn qualified_name(text: &str) -> Result<(), String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix {
        if prefix.len() > LONGEST_PREFIX {
            return Err(format!("the prefix is longer than {LONGEST_PREFIX} characters"));
        }
        if !is_subdomain(prefix) {
            return Err(format!("prefix {prefix:?} is not a lower-case DNS name"));
        }
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("the name is longer than {LONGEST_NAME} characters"));
    }
    if is_word(name) {
        Ok(())
    } else {
        Err(format!(
            "{name:?} is not a name: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        ))
    }
}

/// Why a text is not a label value.
pub fn label_value(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_NAME {
        return Err(format!("value {text:?} is longer than {LONGEST_NAME} characters"));
    }
    if text.is_empty() || is_word(text) {
        Ok(())
    } else {
        Err(format!(
            "{text:?} is not a label value: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        ))
    }
}

fn is_word(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_subdomain(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split('.').all(|label| {
        let ends = [label.bytes().next(), label.bytes().next_back()];
        ends.iter().all(|end| end.is_some_and(is_alphanumeric))
            && label.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_are_those_of_kubernetes() {
        for name in [
            "a",
            "Test",
            "test.com/Test",
            "test.com.com/test",
            "key-only",
            "a_b.c",
            "k8s.io",
        ] {
            assert_eq!(qualified_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(64);
        let long_prefix = format!("{}/x", "a.".repeat(127) + "a");
        for name in [
            "",
            "test.com.com}",
            "Test.com/test",
            "test/test/test",
            "test/",
            "/test",
            "-a",
            "a b",
            &long,
            &long_prefix,
        ] {
            assert!(qualified_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn label_values_may_be_empty_and_have_63_characters() {
        for value in ["", "a", "A-b_c.9", &"a".repeat(63)] {
            assert_eq!(label_value(value), Ok(()), "{value}");
        }
        for value in ["/ is not allowed", "-", "a-", &"a".repeat(64)] {
            assert!(label_value(value).is_err(), "{value}");
        }
    }
}
