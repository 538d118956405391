//! Pages that the book does not list: nobody would find them.

use std::path::Path;

use super::source::Source;

const SUMMARY: &str = "docs/SUMMARY.md";

pub fn check(files: &[Source]) -> Vec<String> {
    let Some(summary) = files.iter().find(|file| file.path == Path::new(SUMMARY)) else {
        return vec![format!("{SUMMARY}: is missing")];
    };
    let pages = files
        .iter()
        .filter(|file| file.path.starts_with("docs") && file.has_extension("md"));
    pages
        .filter(|page| page.path != Path::new(SUMMARY))
        .filter_map(|page| {
            let name = page
                .path
                .strip_prefix("docs")
                .unwrap_or(&page.path)
                .display()
                .to_string();
            match summary.text.matches(&format!("]({name})")).count() {
                1 => None,
                0 => Some(format!("{SUMMARY}: does not list {name}")),
                _ => Some(format!("{SUMMARY}: lists {name} more than once")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_listed_once() {
        let file = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            file(SUMMARY, "- [A](a.md)\n- [B](x/b.md)\n- [B](x/b.md)"),
            file("docs/a.md", ""),
            file("docs/x/b.md", ""),
            file("docs/c.md", ""),
            file("crates/d.md", ""),
        ];
        let expected = [
            "docs/SUMMARY.md: lists x/b.md more than once",
            "docs/SUMMARY.md: does not list c.md",
        ];
        assert_eq!(check(&files), expected);
    }
}
