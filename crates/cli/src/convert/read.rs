//! From files to documents that remember their text.

use legacy::Input;
use serde_json::Value;

use crate::exit::Failure;
use crate::input::{BadInput, Depth, Place, files, has_content, texts};

/// The documents of all files, in their order.
#[derive(Debug, Default)]
pub struct Documents {
    pub documents: Vec<Document>,
    /// Comments after the last document.
    pub tail: String,
}

#[derive(Debug)]
pub struct Document {
    place: Place,
    object: Value,
    /// The text as it was written; items of a list have none of their own.
    pub text: Option<String>,
    /// Comments that stand above the document.
    pub head: String,
}

impl Documents {
    pub fn inputs(&self) -> Vec<Input> {
        let inputs = self.documents.iter().map(|document| Input {
            place: document.place.to_string(),
            object: document.object.clone(),
        });
        inputs.collect()
    }
}

pub fn documents(names: &[String], depth: Depth) -> Result<Documents, Failure> {
    let mut read = Documents::default();
    for file in &files(names, depth)? {
        for (place, text) in texts(file) {
            let text = text.trim_start_matches(['\r', '\n']).trim_end();
            if has_content(text) {
                take(&mut read, place, text).map_err(|bad| Failure::Input(bad.into()))?;
            } else if !text.trim().is_empty() {
                append(&mut read.tail, text.trim_start());
            }
        }
    }
    Ok(read)
}

fn append(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn take(read: &mut Documents, place: Place, text: &str) -> Result<(), BadInput> {
    let object: Value = serde_saphyr::from_str(text).map_err(|error| BadInput::of(&place, "", "", error))?;
    if !object.is_object() {
        return Err(BadInput::of(&place, "", "", "is not an object"));
    }
    let before = std::mem::take(&mut read.tail);
    let Some(items) = items(&object) else {
        if !is_recognizable(&object) {
            let field = if object.get("kind").is_none() {
                "kind"
            } else {
                "apiVersion"
            };
            return Err(BadInput::of(&place, "", field, "is missing"));
        }
        let mut head = before.clone();
        // In values the first comment is about the first value, which need not come first again.
        if object.get("kind").is_some() {
            for line in text.lines().take_while(|line| !has_content(line)) {
                append(&mut head, line.trim_start());
            }
        }
        read.documents.push(Document {
            place,
            object,
            text: Some(before + text),
            head,
        });
        return Ok(());
    };
    for (index, item) in items.into_iter().enumerate() {
        let place = Place {
            item: Some(index + 1),
            ..place.clone()
        };
        if !item.is_object() {
            return Err(BadInput::of(&place, "", "", "is not an object"));
        }
        let head = if index == 0 { before.clone() } else { String::new() };
        read.documents.push(Document {
            place,
            object: item,
            text: None,
            head,
        });
    }
    Ok(())
}

/// Objects say what they are; Helm values and descriptions of launch templates are known by their fields.
fn is_recognizable(document: &Value) -> bool {
    let typed = document.get("kind").is_some() && document.get("apiVersion").is_some();
    typed || legacy::values::is_values(document) || document.get("LaunchTemplateVersions").is_some()
}

/// The items of a list. Items of a `PodList` need not repeat what they are.
fn items(document: &Value) -> Option<Vec<Value>> {
    let of = document.get("kind")?.as_str()?.strip_suffix("List")?;
    let items = document.get("items").and_then(Value::as_array);
    let mut items = match (of, items) {
        ("", None) => Vec::new(),
        (_, items) => items?.clone(),
    };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if !of.is_empty() {
            item.entry("kind").or_insert_with(|| of.into());
        }
        if let Some(version) = document.get("apiVersion") {
            item.entry("apiVersion").or_insert_with(|| version.clone());
        }
    }
    Some(items)
}
