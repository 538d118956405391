//! Documents for files and for people.

use anyhow::{Context as _, anyhow};
use legacy::{Conversion, Output};
use serde_json::{Value, json};
use serde_saphyr::SerializerOptions;

use super::read::Documents;
use crate::exit::Failure;

/// YAML documents. What is kept has its text and its comments; what is new has comments that say what changed.
pub fn yaml(read: &Documents, conversion: &Conversion) -> Result<String, Failure> {
    let mut documents = Vec::new();
    let mut headed = None;
    for output in &conversion.outputs {
        documents.push(match output {
            Output::Kept { input, object } => match &read.documents[*input].text {
                Some(text) => text.clone() + "\n",
                None => written(object)?,
            },
            Output::Made {
                input,
                object,
                comments,
            } => {
                // Comments above a document belong to the first of what it becomes.
                let head = &read.documents[*input].head;
                let head = if headed.replace(*input) == Some(*input) {
                    ""
                } else {
                    head
                };
                let comments: String = comments
                    .iter()
                    .map(|comment| format!("# convert: {comment}\n"))
                    .collect();
                format!("{head}{comments}{}", written(object)?)
            }
        });
    }
    if !read.tail.is_empty() {
        documents.push(read.tail.clone());
    }
    Ok(documents.join("---\n"))
}

fn written(object: &Value) -> Result<String, Failure> {
    let mut options = SerializerOptions::default();
    // Long lines stay lines, as kubectl writes them.
    options.folded_wrap_chars = usize::MAX;
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, object, options)
        .context("an object cannot be written as YAML")
        .map_err(Failure::No)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The object, or a list of the objects.
pub fn json(conversion: &Conversion) -> Result<String, Failure> {
    let objects: Vec<&Value> = conversion.objects().collect();
    if objects.len() > 1 && objects.iter().any(|object| legacy::values::is_values(object)) {
        let problem = "-o json: Helm values cannot stand in a list with objects; use -o yaml";
        return Err(Failure::Input(anyhow!(problem)));
    }
    let value = match objects.as_slice() {
        [object] => (*object).clone(),
        objects => json!({ "apiVersion": "v1", "kind": "List", "items": objects }),
    };
    let text = serde_json::to_string_pretty(&value)
        .context("the objects as JSON")
        .map_err(Failure::No)?;
    Ok(text + "\n")
}

pub fn names(conversion: &Conversion) -> String {
    conversion.objects().map(|object| name(object) + "\n").collect()
}

/// The names of what is not the same as in the input.
pub fn changed_names(conversion: &Conversion) -> Vec<String> {
    let made = conversion
        .outputs
        .iter()
        .filter(|output| matches!(output, Output::Made { .. }));
    made.map(|output| name(output.object())).collect()
}

/// `nodepool.karpenter.sh/default`, as kubectl prints it.
fn name(object: &Value) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text(object.get("kind")).to_lowercase();
    if kind.is_empty() {
        return "Helm values".to_owned();
    }
    let version = text(object.get("apiVersion"));
    let group = version
        .split_once('/')
        .map_or(String::new(), |(group, _)| format!(".{group}"));
    let name = text(object.pointer("/metadata/name"));
    format!("{kind}{group}/{name}")
}
