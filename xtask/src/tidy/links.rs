//! Links in Markdown that lead nowhere, be it a file or a heading.

use std::{collections::BTreeMap, path::Path};

use super::source::{Source, normal};

pub fn check(root: &Path, files: &[Source]) -> Vec<String> {
    let pages: BTreeMap<&Path, &Source> = files
        .iter()
        .filter(|file| file.has_extension("md"))
        .map(|file| (file.path.as_path(), file))
        .collect();
    let mut complaints = Vec::new();
    for file in pages.values() {
        let directory = file.path.parent().unwrap_or(Path::new(""));
        for (number, line) in prose(file) {
            for target in targets(line) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let here = format!("{}:{number}", file.path.display());
                if !path.is_empty() && !root.join(directory).join(path).exists() {
                    complaints.push(format!("{here}: no such file: {target}"));
                }
                let page = match path {
                    "" => file.path.clone(),
                    path => normal(&directory.join(path)),
                };
                let page = pages.get(page.as_path()).filter(|_| !anchor.is_empty());
                if page.is_some_and(|page| !anchors(page).any(|found| found == anchor)) {
                    complaints.push(format!("{here}: no such heading: {target}"));
                }
            }
        }
    }
    complaints
}

/// Lines outside of code blocks, with their numbers.
fn prose(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The names by which the headings of a page can be linked to.
fn anchors(page: &Source) -> impl Iterator<Item = String> {
    prose(page).filter_map(|(_, line)| {
        let heading = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
        let kept = heading.to_lowercase().replace(' ', "-");
        Some(
            kept.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect(),
        )
    })
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
    fn links_to_headings_need_the_heading() {
        let page = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            page(
                "README.md",
                "[a](xtask/b.md#the-way-back), [c](#here)\n## Here\n```\n# not a heading\n```",
            ),
            page("xtask/b.md", "# A\n## The way, back\n[x](../README.md#not-a-heading)"),
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let complaints = check(&root, &files);
        // The second page does not exist on disk; only headings matter here.
        let headings: Vec<&String> = complaints
            .iter()
            .filter(|line| line.contains("no such heading"))
            .collect();
        assert_eq!(headings, ["xtask/b.md:3: no such heading: ../README.md#not-a-heading"]);
    }

    #[test]
    fn only_links_to_files_are_followed() {
        let line = "[a](b.md#c), [x](https://example.com), [y](#here) and ![z](pic.svg \"title\")";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["b.md#c", "#here", "pic.svg"]);
    }
}
