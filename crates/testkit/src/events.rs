//! The list of a package's events, held against its sources.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Fails unless every reason that the sources of the package under test give to a notice is in its own list or in that of
/// others, and its own list is in the order of the alphabet.
pub fn assert_events_are_listed(own: &[&str], of_others: &[&str]) {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says whose tests these are");
    let named = reasons(&Path::new(&package).join("src"));
    assert!(!named.is_empty(), "the sources name no reason at all");
    let is_listed = |reason: &&String| own.iter().chain(of_others).any(|listed| listed == reason);
    let missing: Vec<&String> = named.iter().filter(|reason| !is_listed(reason)).collect();
    assert!(missing.is_empty(), "not in the list: {missing:?}");
    let is_sorted = own.is_sorted_by(|one, other| one.to_lowercase() <= other.to_lowercase());
    assert!(is_sorted, "not in the order of the alphabet: {own:?}");
}

/// Reasons that stand in the code below a folder where a notice is made.
fn reasons(folder: &Path) -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(folder, &mut files);
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source can be read"));
    texts.flat_map(|text| reasons_in(&text)).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn reasons_in(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = ["Notice::normal(", "Notice::warning("];
    let arguments = calls.iter().flat_map(|call| code.split(call).skip(1));
    let literals = arguments.filter_map(|rest| rest.trim_start().strip_prefix('"'));
    literals
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_however_a_call_is_broken_into_lines() {
        let text = r#"
            Notice::normal("One", note);
            Notice::warning(
                "Two",
                note,
            );
            Notice::warning(reason, note);
            #[cfg(test)]
            Notice::normal("OfATest", note);
        "#;
        assert_eq!(reasons_in(text), ["One", "Two"].map(str::to_owned).into());
    }
}
