//! Pages that are read away from the repository, as a preprocessor of mdBook: a link that leaves the book becomes the name of
//! the file that it leads to.

use std::{io, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tidy::source::normal;

/// Where the book lies.
const BOOK: &str = "docs";

/// mdBook first asks whether a renderer is supported, which all are, and then hands the book over.
pub fn run(question: &[String]) -> Result<Vec<String>> {
    if question.is_empty() {
        let (_, mut book): (Value, Value) =
            serde_json::from_reader(io::stdin().lock()).context("what mdBook hands over is a context and a book")?;
        mend(&mut book);
        println!("{book}");
    }
    Ok(Vec::new())
}

/// Whatever has a path and a content is a page, however deep it lies.
fn mend(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(mend),
        Value::Object(fields) => {
            let text = |field: &str| fields.get(field).and_then(Value::as_str);
            if let (Some(path), Some(content)) = (text("path"), text("content")) {
                let mended = without_ways_out(Path::new(path), content);
                fields.insert("content".to_owned(), mended.into());
            }
            fields.values_mut().for_each(mend);
        }
        _ => {}
    }
}

fn without_ways_out(page: &Path, content: &str) -> String {
    let mut in_code = false;
    let lines = content.split_inclusive('\n').map(|line| {
        in_code ^= line.trim_start().starts_with("```");
        match in_code {
            true => line.to_owned(),
            false => mended(page, line),
        }
    });
    lines.collect()
}

fn mended(page: &Path, line: &str) -> String {
    let mut done = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let link = before.rfind('[').zip(after.find(')'));
        let outside = link.and_then(|(open, close)| Some((open, close, outside(page, &after[..close])?)));
        if let Some((open, close, file)) = outside {
            let text = &before[open + 1..];
            done.push_str(&before[..open]);
            match text.trim_matches('`') == file {
                true => done.push_str(&format!("`{file}`")),
                false => done.push_str(&format!("{text} (`{file}`)")),
            }
            rest = &after[close + 1..];
        } else {
            done.push_str(before);
            done.push_str("](");
            rest = after;
        }
    }
    done + rest
}

/// The file that a link leads to, if that is none of the book's.
fn outside(page: &Path, target: &str) -> Option<String> {
    let (path, _) = target.split_once('#').unwrap_or((target, ""));
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let folder = Path::new(BOOK).join(page.parent()?);
    let file = normal(&folder.join(path));
    (!file.starts_with(BOOK)).then(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_links_that_leave_the_book_are_mended() {
        let page = Path::new("start/eks.md");
        let table = [
            (
                "see [roles](../../deploy/README.md#roles).",
                "see roles (`deploy/README.md`).",
            ),
            ("[`deny.toml`](../../deny.toml)", "`deny.toml`"),
            (
                "[a](../aws.md#x), [b](#here), [c](https://example.com/x)",
                "[a](../aws.md#x), [b](#here), [c](https://example.com/x)",
            ),
            (
                "![picture](flow.svg) of [x](../../a/b) and [y](../../a/c)",
                "![picture](flow.svg) of x (`a/b`) and y (`a/c`)",
            ),
            (
                "```\n[x](../../a)\n```\n[x](../../a)\n",
                "```\n[x](../../a)\n```\nx (`a`)\n",
            ),
        ];
        for (before, after) in table {
            assert_eq!(without_ways_out(page, before), after);
        }
    }

    #[test]
    fn pages_are_found_at_any_depth() {
        let page = |content: &str| json!({"name": "p", "path": "p.md", "content": content, "sub_items": []});
        let mut inner = page("[a](../b)");
        inner["sub_items"] = json!([{"Chapter": page("[c](../d)")}]);
        let mut book = json!({"items": [{"Chapter": inner}, "Separator"]});
        mend(&mut book);
        assert_eq!(book.pointer("/items/0/Chapter/content"), Some(&json!("a (`b`)")));
        let deeper = book.pointer("/items/0/Chapter/sub_items/0/Chapter/content");
        assert_eq!(deeper, Some(&json!("c (`d`)")));
    }
}
