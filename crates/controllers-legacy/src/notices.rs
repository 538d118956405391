//! What is told about a source besides its conditions.

use controllers::outbox::{About, Notice};

use crate::{follow::Verdict, source::Document, status::conflict};

/// What its user has to do something about.
pub fn complaint(document: &Document, verdict: &Verdict) -> Option<Notice> {
    let about = About {
        api_version: document.source.api_version().into(),
        kind: document.source.kind(),
        namespace: String::new(),
        name: document.source.name().to_owned(),
        uid: document.meta.uid.clone().unwrap_or_default(),
    };
    match verdict {
        Verdict::Converted | Verdict::Adopted { .. } => None,
        Verdict::NameConflict { object } => Some(Notice::warning("NameConflict", about, conflict(object))),
        Verdict::ValidationFailed { problem } => {
            Some(Notice::warning("ValidationFailed", about, problem.clone()).told_apart_by(problem.clone()))
        }
    }
}
