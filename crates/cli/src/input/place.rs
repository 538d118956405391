//! Where in the input something stands, and what is wrong with it.

use std::{fmt, sync::Arc};

/// A document of a file, or an item of a list in it. Both are counted from one, as people do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub document: usize,
    pub item: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// Something in the input that cannot be read: one line that leads there.
#[derive(Debug, thiserror::Error)]
#[error("{place}{}{object}: {}{problem}", separator(object, ", "), path(field))]
pub struct BadInput {
    pub place: Place,
    /// `Pod default/web-1`; empty while it is not known.
    pub object: String,
    /// Empty for the object as a whole.
    pub field: String,
    pub problem: String,
}

fn separator(text: &str, separator: &'static str) -> &'static str {
    if text.is_empty() { "" } else { separator }
}

fn path(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

impl BadInput {
    pub fn of(place: &Place, object: impl Into<String>, field: impl Into<String>, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        Self {
            place: place.clone(),
            object: object.into(),
            field: field.into(),
            // Readers of YAML draw a picture below the first line.
            problem: problem
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        }
    }
}
