//! Whether every statement of the founding documents is answered by a test or a page that exists.

use std::{collections::BTreeMap, path::Path};

use super::source::Source;

const PAGE: &str = "docs/seed-coverage.md";
/// The rows of the founding documents, by id.
const ROWS: &str = include_str!("seed-rows.txt");

pub fn check(root: &Path, files: &[Source]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == Path::new(PAGE)) else {
        return vec![format!("{PAGE}: is missing")];
    };
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    complaints(ROWS, &page.text, read)
}

fn complaints(rows: &str, page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut answers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| 0")) {
        let mut cells = line.split(" | ");
        let id = cells.next().unwrap_or_default().trim_start_matches("| ");
        let answer = cells.last().unwrap_or_default().trim_end_matches('|').trim();
        answers.entry(id).or_default().push(answer);
    }
    let mut complaints = Vec::new();
    for id in rows.lines() {
        match answers.remove(id).as_deref() {
            None => complaints.push(format!("{PAGE}: row {id} is missing")),
            Some([answer]) => complaints.extend(unfounded(id, answer, &read)),
            Some(_) => complaints.push(format!("{PAGE}: row {id} stands there more than once")),
        }
    }
    complaints.extend(answers.keys().map(|id| format!("{PAGE}: there is no row {id}")));
    complaints
}

/// A link is followed elsewhere; a test has to be in its file.
fn unfounded(id: &str, answer: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    if answer.is_empty() {
        return vec![format!("{PAGE}: row {id} has no answer")];
    }
    let mut complaints = Vec::new();
    for part in answer.split("; ") {
        let Some((path, test)) = part.strip_prefix('`').and_then(|rest| rest.split_once("` ")) else {
            if !part.starts_with('[') {
                complaints.push(format!("{PAGE}: row {id}: neither a link nor a test: {part}"));
            }
            continue;
        };
        match read(path) {
            None => complaints.push(format!("{PAGE}: row {id}: no such file: {path}")),
            Some(text) if !text.contains(&format!("fn {test}(")) => {
                complaints.push(format!("{PAGE}: row {id}: no test {test} in {path}"));
            }
            Some(_) => {}
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_answered_by_something_that_exists() {
        let page = "| 000-01 | x | [page](a.md) |\n| 000-02 | x | `t.rs` holds |\n| 000-03 | x | `t.rs` fails |\n\
                    | 000-05 | x | words |\n| 000-09 | x | [page](a.md) |\n";
        let read = |path: &str| (path == "t.rs").then(|| "fn holds() {}".to_owned());
        assert_eq!(
            complaints("000-01\n000-02\n000-03\n000-04\n000-05", page, read),
            [
                "docs/seed-coverage.md: row 000-03: no test fails in t.rs",
                "docs/seed-coverage.md: row 000-04 is missing",
                "docs/seed-coverage.md: row 000-05: neither a link nor a test: words",
                "docs/seed-coverage.md: there is no row 000-09",
            ]
        );
    }
}
