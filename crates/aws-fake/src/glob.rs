//! Patterns with `*` and `?`, as filters, policies and scripts use them.

/// Whether the whole text fits the pattern.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where the last star stood and how much of the text it has swallowed: on a dead end it swallows one letter more.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, swallowed)) = star else { return false };
                star = Some((at, swallowed + 1));
                p = at + 1;
                t = swallowed + 1;
            }
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let table = [
            ("", "", true),
            ("*", "", true),
            ("*", "anything", true),
            ("m5.*", "m5.large", true),
            ("m5.*", "m5d.large", false),
            ("*.large", "m5.large", true),
            ("*ab*ab", "aababxab", true),
            ("us-west-2?", "us-west-2a", true),
            ("us-west-2?", "us-west-2", false),
            ("arn:*:instance/*", "arn:aws:ec2:r:1:instance/i-1", true),
            ("exact", "exactly", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
