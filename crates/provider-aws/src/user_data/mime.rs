//! MIME archives of several parts: what cloud-init reads. Written and read as Go's `mime/multipart` does.

use std::collections::BTreeMap;

const BOUNDARY: &str = "//";
pub(super) const SHELL_SCRIPT: &str = r#"text/x-shellscript; charset="us-ascii""#;
pub(super) const NODE_CONFIG: &str = "application/node.eks.aws";

/// One part: headers by name, and the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    headers: BTreeMap<String, String>,
    content: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedArchive {
    #[error("the archive has no Content-Type header")]
    NoContentType,
    #[error("the archive's Content-Type is not multipart with a boundary")]
    NotMultipart,
    #[error("line {0:?} of a header has no colon")]
    BadHeader(String),
    #[error("the archive has no part")]
    NoParts,
}

impl Part {
    pub(super) fn new(content_type: &str, content: &str) -> Self {
        Self {
            headers: BTreeMap::from([("Content-Type".to_owned(), content_type.to_owned())]),
            content: content.to_owned(),
        }
    }
}

/// Whether a text is an archive already.
pub(super) fn is_archive(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("MIME-Version:") || text.starts_with("Content-Type:")
}

pub(super) fn write(parts: &[Part]) -> String {
    let mut text = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for (index, part) in parts.iter().enumerate() {
        let before = if index == 0 { "" } else { "\n" };
        text += &format!("{before}--{BOUNDARY}\n");
        for (name, value) in &part.headers {
            text += &format!("{name}: {value}\n");
        }
        text += &format!("\n{}", part.content);
    }
    text += &format!("\n--{BOUNDARY}--\n");
    // Parts may bring carriage returns along; shells choke on them.
    text.replace('\r', "")
}

/// The parts of an archive. The line that ends it may be missing.
pub(super) fn read(text: &str) -> Result<Vec<Part>, MalformedArchive> {
    let text = text.trim_start().replace('\r', "");
    let (headers, body) = split_headers(&text)?;
    let content_type = headers.get("Content-Type").ok_or(MalformedArchive::NoContentType)?;
    let boundary = boundary(content_type).ok_or(MalformedArchive::NotMultipart)?;
    let delimiter = format!("--{boundary}");
    let end = format!("--{boundary}--");
    let mut parts = Vec::new();
    let mut current: Option<Vec<&str>> = None;
    for line in body.split('\n') {
        let line_end = line.trim_end();
        if line_end != delimiter && line_end != end {
            if let Some(lines) = &mut current {
                lines.push(line);
            }
            continue;
        }
        if let Some(lines) = current.take() {
            parts.push(part(&lines.join("\n"))?);
        }
        if line_end == end {
            return finished(parts);
        }
        current = Some(Vec::new());
    }
    // What follows the last delimiter is a part of its own, unless there is nothing.
    if let Some(rest) = current
        .map(|lines| lines.join("\n"))
        .filter(|rest| !rest.trim().is_empty())
    {
        parts.push(part(&rest)?);
    }
    finished(parts)
}

fn finished(parts: Vec<Part>) -> Result<Vec<Part>, MalformedArchive> {
    if parts.is_empty() {
        return Err(MalformedArchive::NoParts);
    }
    Ok(parts)
}

fn part(text: &str) -> Result<Part, MalformedArchive> {
    let (headers, content) = split_headers(text)?;
    Ok(Part {
        headers,
        content: content.to_owned(),
    })
}

/// Headers up to the first empty line, and the rest. A line that starts with a blank continues the one above.
fn split_headers(text: &str) -> Result<(BTreeMap<String, String>, &str), MalformedArchive> {
    let (head, body) = match text.strip_prefix('\n') {
        Some(body) => ("", body),
        None => text.split_once("\n\n").unwrap_or((text, "")),
    };
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in head.lines() {
        if let (true, Some(name)) = (line.starts_with([' ', '\t']), &last) {
            let value = headers.entry(name.clone()).or_default();
            *value += " ";
            *value += line.trim();
            continue;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| MalformedArchive::BadHeader(line.to_owned()))?;
        let name = canonical(name.trim());
        headers.insert(name.clone(), value.trim().to_owned());
        last = Some(name);
    }
    Ok((headers, body))
}

/// `Content-Type` for `content-type`; MIME keeps its capitals.
fn canonical(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        first + &letters.as_str().to_lowercase()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

fn boundary(content_type: &str) -> Option<String> {
    let mut fields = content_type.split(';');
    let media_type = fields.next()?.trim().to_lowercase();
    if !media_type.starts_with("multipart/") {
        return None;
    }
    let boundary = fields.find_map(|field| {
        let (name, value) = field.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("boundary")
            .then(|| value.trim().trim_matches('"').to_owned())
    });
    boundary.filter(|boundary| !boundary.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let parts = vec![
            Part::new(SHELL_SCRIPT, "#!/bin/sh\necho 1\n"),
            Part::new(NODE_CONFIG, "a: b"),
        ];
        assert_eq!(read(&write(&parts)).unwrap(), parts);
    }

    #[test]
    fn archives_may_lack_their_end_and_name_their_own_boundary() {
        let text = "Content-Type: multipart/mixed; boundary=\"BOUNDARY\"\nMIME-Version: 1.0\n\n--BOUNDARY\n\
                    content-type: text/x\nContent-Transfer-Encoding: base64\n\nYQ==\n\n--BOUNDARY--";
        let parts = read(text).unwrap();
        assert_eq!(parts[0].headers["Content-Transfer-Encoding"], "base64");
        assert_eq!(parts[0].content, "YQ==\n");
        let open =
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: t\n\nx\n--//\n";
        assert_eq!(read(open).unwrap(), [Part::new("t", "x")]);
    }

    #[test]
    fn what_is_no_archive_is_refused_with_the_reason() {
        let table = [
            ("MIME-Version: 1.0\n\nx", MalformedArchive::NoContentType),
            ("Content-Type: text/plain\n\nx", MalformedArchive::NotMultipart),
            ("Content-Type: multipart/mixed\n\nx", MalformedArchive::NotMultipart),
            (
                "Content-Type: multipart/mixed; boundary=b\nnonsense\n\nx",
                MalformedArchive::BadHeader("nonsense".to_owned()),
            ),
            (
                "Content-Type: multipart/mixed; boundary=b\n\nx",
                MalformedArchive::NoParts,
            ),
        ];
        for (text, error) in table {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }
}
