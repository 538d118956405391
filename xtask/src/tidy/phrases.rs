//! Whether the troubleshooting page quotes the program as it speaks: a heading that is nothing but code is a message, and people
//! search for it.

use std::path::Path;

use super::source::Source;

const PAGE: &str = "docs/troubleshooting.md";

pub fn check(files: &[Source]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == Path::new(PAGE)) else {
        return vec![format!("{PAGE}: is missing")];
    };
    let sources: Vec<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates") && file.has_extension("rs"))
        .map(|file| file.text.as_str())
        .collect();
    let is_said = |part: &str| sources.iter().any(|text| text.contains(part));
    page.lines()
        .filter_map(|(number, line)| Some((number, quoted(line)?)))
        .flat_map(|(number, message)| parts(message).map(move |part| (number, part)))
        .filter(|(_, part)| !is_said(part))
        .map(|(number, part)| format!("{PAGE}:{number}: the program does not say {part:?}"))
        .collect()
}

/// The message of a heading.
fn quoted(line: &str) -> Option<&str> {
    let message = line.strip_prefix("### `")?.strip_suffix('`')?;
    (!message.contains('`')).then_some(message)
}

/// What stands between the places that differ from one message to the next.
fn parts(message: &str) -> impl Iterator<Item = &str> {
    message.split('…').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_of_code_is_something_that_the_program_says() {
        let file = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.to_owned(),
        };
        let page = "## `any`\n### Words\n### `none` and words\n### `its limit of … nodes is reached`\n### `its end of … nodes`\n";
        let files = [
            file(PAGE, page),
            file("crates/a/src/lib.rs", "\"its limit of {limit} nodes is reached\""),
            file("docs/other.md", "its end of"),
        ];
        assert_eq!(
            check(&files),
            ["docs/troubleshooting.md:5: the program does not say \"its end of\""]
        );
    }
}
