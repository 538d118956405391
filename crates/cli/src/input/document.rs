//! From files to documents: YAML or JSON, one object or many, lists opened up.

use std::{
    borrow::Cow,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::place::{BadInput, Place};
use crate::exit::Failure;

/// A file and its text.
pub struct File {
    name: Arc<str>,
    text: String,
}

/// How far a directory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The files in it.
    Folder,
    /// The files in it and in all directories below.
    Tree,
}

/// Reads all files; a directory stands for the YAML and JSON files in it, in the order of their names.
pub fn files(names: &[String], depth: Depth) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    for name in names {
        let read = if name == "-" {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map(|_| files.push(File::new("stdin", text)))
        } else {
            paths(Path::new(name), depth).and_then(|paths| {
                for path in paths {
                    files.push(File::new(&path.display().to_string(), fs::read_to_string(path)?));
                }
                Ok(())
            })
        };
        read.with_context(|| format!("{name}: cannot be read"))
            .map_err(Failure::Input)?;
    }
    Ok(files)
}

fn paths(path: &Path, depth: Depth) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = fs::read_dir(path)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if depth == Depth::Tree && path.is_dir() {
            found.extend(paths(&path, depth)?);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
    Ok(found)
}

impl File {
    pub fn new(name: &str, text: String) -> Self {
        Self {
            name: name.into(),
            text,
        }
    }
}

/// One object, not yet read.
pub struct Document<'a> {
    pub place: Place,
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub namespace: Option<Cow<'a, str>>,
    body: Body<'a>,
}

/// JSON stays text until its kind is known and is then read at once; that is what makes large files fast.
enum Body<'a> {
    Text(&'a str),
    Tree(Value),
}

impl Document<'_> {
    /// Group and kind.
    pub fn gk(&self) -> (&str, &str) {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        (group, &self.kind)
    }

    /// `Pod default/web-1`.
    pub fn object(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }

    /// Namespaced objects live in this namespace where they name none.
    pub fn default_namespace(&mut self, namespace: &str) {
        let namespaced = matches!(
            self.gk(),
            (
                "",
                "Pod" | "PersistentVolumeClaim" | "Service" | "ReplicationController"
            ) | ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
                | ("policy", "PodDisruptionBudget")
                | ("resource.k8s.io", "ResourceClaim")
        );
        if namespaced && self.namespace.is_none() {
            self.namespace = Some(Cow::Owned(namespace.to_owned()));
        }
    }

    pub fn complain(&self, field: impl Into<String>, problem: impl std::fmt::Display) -> BadInput {
        BadInput::of(&self.place, self.object(), field, problem)
    }

    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, BadInput> {
        let read = match &self.body {
            Body::Text(text) => serde_json::from_str(text),
            Body::Tree(tree) => T::deserialize(tree),
        };
        read.or_else(|_| self.decode_again())
    }

    /// A second reading, for objects with something odd in them. It knows the path at hand and puts up with times that
    /// Go programs leave empty, both of which take longer.
    fn decode_again<T: DeserializeOwned>(&self) -> Result<T, BadInput> {
        let mut tree = match &self.body {
            Body::Text(text) => serde_json::from_str(text).map_err(|error| self.complain("", in_object(&error)))?,
            Body::Tree(tree) => tree.clone(),
        };
        let conditions = tree.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Some(time) = condition.get_mut("lastTransitionTime").filter(|time| time.is_null()) {
                *time = Value::from("1970-01-01T00:00:00Z");
            }
        }
        serde_path_to_error::deserialize(tree).map_err(|error| {
            let path = error.path().to_string();
            self.complain(if path == "." { String::new() } else { path }, error.inner())
        })
    }
}

/// Lines and columns are counted from the start of the object, which helps nobody.
fn in_object(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((problem, _)) => problem.to_owned(),
        None => text,
    }
}

/// What tells an object's kind, and the items of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Header<'a, Item> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: Option<Meta<'a>>,
    #[serde(default = "Option::default")]
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
}

/// The documents of a file, lists opened up.
pub fn documents(file: &File) -> Result<Vec<Document<'_>>, BadInput> {
    let mut documents = Vec::new();
    for (place, text) in texts(file).filter(|(_, text)| has_content(text)) {
        if text.trim_start().starts_with('{')
            && let Ok(header) = serde_json::from_str::<Header<'_, &RawValue>>(text)
        {
            open_text(place, text, header, &mut documents)?;
            continue;
        }
        let tree: Value = serde_saphyr::from_str(text).map_err(|error| BadInput::of(&place, "", "", error))?;
        open_tree(place, tree, &mut documents)?;
    }
    Ok(documents)
}

/// The texts of a file's documents, with their places.
pub fn texts(file: &File) -> impl Iterator<Item = (Place, &str)> {
    split(&file.text).enumerate().map(|(index, text)| {
        let place = Place {
            file: file.name.clone(),
            document: index + 1,
            item: None,
        };
        (place, text)
    })
}

/// Comments and empty documents are no objects.
pub fn has_content(text: &str) -> bool {
    text.lines()
        .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

/// YAML documents are separated by lines of three dashes.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut first = true;
    std::iter::from_fn(move || {
        let mut document = rest?;
        // A separator before the first document separates nothing.
        if first && let Some(after) = separator_at_start(document) {
            document = after;
        }
        first = false;
        let mut from = 0;
        while let Some(found) = document[from..].find("\n---") {
            let at = from + found;
            if let Some(after) = separator_at_start(&document[at + 1..]) {
                rest = Some(after);
                return Some(&document[..at]);
            }
            from = at + 1;
        }
        rest = None;
        Some(document)
    })
}

/// What follows on the line after a separator belongs to the document, such as a comment or a tag.
fn separator_at_start(text: &str) -> Option<&str> {
    let after = text.strip_prefix("---")?;
    (after.is_empty() || after.starts_with(char::is_whitespace)).then_some(after)
}

fn open_text<'a>(
    place: Place,
    text: &'a str,
    header: Header<'a, &'a RawValue>,
    documents: &mut Vec<Document<'a>>,
) -> Result<(), BadInput> {
    let Some((kind, items)) = list(&header.kind, header.items) else {
        documents.push(document(
            place,
            header.api_version,
            header.kind,
            header.metadata,
            Body::Text(text),
        )?);
        return Ok(());
    };
    for (index, item) in items.into_iter().enumerate() {
        let place = nth(&place, index);
        let inner: Header<'a, &RawValue> =
            serde_json::from_str(item.get()).map_err(|error| BadInput::of(&place, "", "", in_object(&error)))?;
        documents.push(document(
            place,
            inner.api_version.or_else(|| header.api_version.clone()),
            inner.kind.or_else(|| kind.clone()),
            inner.metadata,
            Body::Text(item.get()),
        )?);
    }
    Ok(())
}

fn open_tree(place: Place, tree: Value, documents: &mut Vec<Document<'_>>) -> Result<(), BadInput> {
    fn owned<'b>(tree: &Value, place: &Place) -> Result<Header<'b, Value>, BadInput> {
        let header = |error| BadInput::of(place, "", "", error);
        if !tree.is_object() {
            return Err(BadInput::of(place, "", "", "is not an object"));
        }
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(|text| Cow::Owned(text.to_owned()));
        let metadata = tree.get("metadata");
        let items = tree.get("items").filter(|_| tree.get("spec").is_none());
        Ok(Header {
            api_version: text(tree.get("apiVersion")),
            kind: text(tree.get("kind")),
            metadata: metadata.map(|metadata| Meta {
                name: text(metadata.get("name")),
                namespace: text(metadata.get("namespace")),
            }),
            items: items.map(Vec::deserialize).transpose().map_err(header)?,
        })
    }
    let header = owned(&tree, &place)?;
    let Some((kind, items)) = list(&header.kind, header.items) else {
        documents.push(document(
            place,
            header.api_version,
            header.kind,
            header.metadata,
            Body::Tree(tree),
        )?);
        return Ok(());
    };
    drop(tree);
    for (index, item) in items.into_iter().enumerate() {
        let place = nth(&place, index);
        let inner = owned(&item, &place)?;
        documents.push(document(
            place,
            inner.api_version.or_else(|| header.api_version.clone()),
            inner.kind.or_else(|| kind.clone()),
            inner.metadata,
            Body::Tree(item),
        )?);
    }
    Ok(())
}

/// The items of a `List`, or of a `PodList`, whose items need not repeat that they are Pods.
fn list<'a, Item>(kind: &Option<Cow<'a, str>>, items: Option<Vec<Item>>) -> Option<(Option<Cow<'a, str>>, Vec<Item>)> {
    match kind.as_ref()?.strip_suffix("List")? {
        "" => Some((None, items.unwrap_or_default())),
        of => Some((Some(Cow::Owned(of.to_owned())), items?)),
    }
}

fn nth(place: &Place, index: usize) -> Place {
    Place {
        item: Some(index + 1),
        ..place.clone()
    }
}

fn document<'a>(
    place: Place,
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    metadata: Option<Meta<'a>>,
    body: Body<'a>,
) -> Result<Document<'a>, BadInput> {
    let missing = |field: &str| BadInput::of(&place, "", field, "is missing");
    let kind = kind.ok_or_else(|| missing("kind"))?;
    let api_version = api_version.ok_or_else(|| missing("apiVersion"))?;
    let (name, namespace) = metadata.map_or((None, None), |metadata| (metadata.name, metadata.namespace));
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let field = "metadata.name";
        BadInput::of(&place, kind.clone(), field, "is missing")
    })?;
    Ok(Document {
        place,
        api_version,
        kind,
        name,
        namespace,
        body,
    })
}

#[cfg(test)]
mod tests;
