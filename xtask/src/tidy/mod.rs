//! Checks that no compiler makes. Each answers with complaints, one line each.

mod book;
mod coverage;
mod length;
mod links;
mod markers;
mod orphans;
mod phrases;
pub mod source;

use std::path::Path;

use anyhow::Result;

pub fn run(root: &Path) -> Result<Vec<String>> {
    let files = source::tracked(root)?;
    let mut complaints = markers::check(&files);
    complaints.extend(length::check(&files));
    complaints.extend(links::check(root, &files));
    complaints.extend(book::check(&files));
    complaints.extend(coverage::check(root, &files));
    complaints.extend(phrases::check(&files));
    complaints.extend(orphans::check(&files));
    Ok(complaints)
}
