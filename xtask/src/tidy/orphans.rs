//! Rust files that no crate includes: they rot, because nothing compiles them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Source, normal};

pub fn check(files: &[Source]) -> Vec<String> {
    let sources: BTreeMap<&Path, &str> = files
        .iter()
        .filter(|file| file.has_extension("rs"))
        .map(|file| (file.path.as_path(), file.text.as_str()))
        .collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<PathBuf> = sources
        .keys()
        .filter(|path| is_root(path))
        .map(|path| path.to_path_buf())
        .collect();
    while let Some(path) = open.pop() {
        let Some(text) = sources.get(path.as_path()) else {
            continue;
        };
        open.extend(
            modules(&path, text)
                .into_iter()
                .filter(|module| sources.contains_key(module.as_path())),
        );
        reached.insert(path);
    }
    sources
        .keys()
        .filter(|path| !reached.contains(**path))
        .map(|path| format!("{}: no module includes this file", path.display()))
        .collect()
}

/// Whether cargo compiles this file without being told: crate roots, and each file or `main.rs` of the target folders.
fn is_root(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let mut folders = path.iter().rev().skip(1).filter_map(|folder| folder.to_str());
    let parent = folders.next().unwrap_or_default();
    let grandparent = folders.next().unwrap_or_default();
    let is_target = |folder: &str| ["tests", "benches", "examples", "bin"].contains(&folder);
    name == "build.rs"
        || (parent == "src" && (name == "lib.rs" || name == "main.rs"))
        || (is_target(parent) && grandparent != "src" || parent == "bin")
        || (name == "main.rs" && is_target(grandparent))
}

/// Where the modules that a file declares may be.
fn modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let owns_directory = is_root(path) || stem == "mod";
    let inner = if owns_directory {
        directory.to_owned()
    } else {
        directory.join(stem)
    };
    let mut found = Vec::new();
    let mut explicit: Option<&str> = None;
    // Modules whose body stands in this file; what they declare lies in folders of their names.
    let mut within: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_nested = line.starts_with(' ');
        let line = line.trim();
        if line == "}" && !is_nested {
            within.clear();
        } else if let Some(name) = opened_module(line).filter(|_| !is_nested) {
            within.push(name);
        } else if let Some(rest) = line.strip_prefix("#[path = \"") {
            explicit = rest.split('"').next();
        } else if let Some(name) = declared_module(line) {
            let inner = within.iter().fold(inner.clone(), |folder, name| folder.join(name));
            match explicit.take() {
                Some(path) => found.push(normal(&directory.join(path))),
                None => found.extend([inner.join(format!("{name}.rs")), inner.join(name).join("mod.rs")]),
            }
        }
    }
    found
}

/// The name in `mod name {`.
fn opened_module(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(" {")
}

/// The name in `mod name;`, whatever its visibility.
fn declared_module(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    rest.trim_start().strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_an_orphan_unless_a_module_names_it() {
        let file = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            file("crates/a/src/lib.rs", "pub(crate) mod b;\nmod c;"),
            file("crates/a/src/b.rs", "mod inner;"),
            file("crates/a/src/b/inner.rs", ""),
            file("crates/a/src/c/mod.rs", "pub mod d;"),
            file("crates/a/src/c/d.rs", ""),
            file("crates/a/src/lost.rs", ""),
            file(
                "crates/a/tests/whole.rs",
                "#[path = \"../tests/shared/kit.rs\"]\nmod kit;",
            ),
            file("crates/a/tests/shared/kit.rs", ""),
            file("crates/a/tests/story.rs", "mod story {\n    pub mod step;\n}"),
            file("crates/a/tests/story/step.rs", ""),
            file("crates/a/tests/table/main.rs", "mod rows;"),
            file("crates/a/tests/table/rows.rs", ""),
        ];
        assert_eq!(check(&files), ["crates/a/src/lost.rs: no module includes this file"]);
    }
}
