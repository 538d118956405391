//! MIME archives with several parts, as cloud-init takes them. What is no archive is one part.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::UserDataError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Without parameters, lower case; empty for user data that is no archive.
    pub kind: String,
    pub body: String,
}

pub fn parts(text: &str) -> Result<Vec<Part>, UserDataError> {
    let text = text.replace("\r\n", "\n");
    let start = text.trim_start().to_ascii_lowercase();
    if !start.starts_with("mime-version:") && !start.starts_with("content-type:") {
        return Ok(vec![Part {
            kind: String::new(),
            body: text,
        }]);
    }
    let bad = |why: &str| UserDataError::Mime(why.to_owned());
    let (head, body) = text
        .trim_start()
        .split_once("\n\n")
        .ok_or_else(|| bad("it has only headers"))?;
    let kind = header(head, "content-type").ok_or_else(|| bad("it has no Content-Type"))?;
    let boundary = parameter(&kind, "boundary").ok_or_else(|| bad("it has no boundary"))?;
    let (opening, closing) = (format!("--{boundary}"), format!("--{boundary}--"));
    let mut parts: Vec<String> = Vec::new();
    for line in body.lines() {
        if line.trim_end() == closing {
            break;
        }
        if line.trim_end() == opening {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    if parts.is_empty() {
        return Err(bad("it has no parts"));
    }
    parts.iter().map(|part| decode(part)).collect()
}

fn decode(text: &str) -> Result<Part, UserDataError> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let kind = header(head, "content-type").unwrap_or_else(|| "text/plain".to_owned());
    let plain = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let encoded = header(head, "content-transfer-encoding").is_some_and(|word| word.eq_ignore_ascii_case("base64"));
    let body = if encoded {
        let compact: String = body.split_whitespace().collect();
        let bytes = STANDARD
            .decode(compact)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        bytes.ok_or_else(|| UserDataError::Mime("a part is not the base64 that it says".to_owned()))?
    } else {
        body.to_owned()
    };
    Ok(Part { kind: plain, body })
}

fn header(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then_some(value)
    });
    line.map(|value| value.trim().to_owned())
}

fn parameter(value: &str, name: &str) -> Option<String> {
    let found = value.split(';').skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then_some(value)
    });
    found.map(|value| value.trim().trim_matches('"').to_owned())
}
