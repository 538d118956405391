//! Links in Markdown that lead nowhere.

use std::path::Path;

use super::source::Source;

pub fn check(root: &Path, files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.has_extension("md")) {
        let directory = file.path.parent().unwrap_or(Path::new(""));
        let mut in_code = false;
        for (number, line) in file.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for target in targets(line) {
                let path = target.split_once('#').map_or(target, |(path, _)| path);
                if !path.is_empty() && !root.join(directory).join(path).exists() {
                    complaints.push(format!("{}:{number}: no such file: {target}", file.path.display()));
                }
            }
        }
    }
    complaints
}

/// The targets of inline links that name a file.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(move |(start, opening)| {
        let rest = &line[start + opening.len()..];
        let target = rest[..rest.find(')')?].split_whitespace().next()?;
        let is_url = target.contains("://") || target.starts_with("mailto:");
        (!is_url).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_followed() {
        let line = "[a](b.md#c), [x](https://example.com), [y](#here) and ![z](pic.svg \"title\")";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["b.md#c", "#here", "pic.svg"]);
    }
}
