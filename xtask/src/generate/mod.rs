//! Files that are generated from code and committed, so that they can be read and reviewed.

mod api_reference;
mod cloudformation;
mod crd_chart;
mod reference;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Everything that is generated: contents by path from the repository's root.
struct Output {
    files: BTreeMap<PathBuf, String>,
    /// Directories that hold generated files only; whatever else is found there is stale.
    owned: Vec<PathBuf>,
}

/// Writes what differs and removes what is stale.
pub fn write(root: &Path) -> Result<Vec<String>> {
    let output = output(root)?;
    for (path, contents) in &output.files {
        let path = root.join(path);
        if std::fs::read_to_string(&path).is_ok_and(|existing| existing == *contents) {
            continue;
        }
        let directory = path.parent().unwrap_or(root);
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        std::fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for path in stale(root, &output)? {
        std::fs::remove_file(root.join(&path)).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(Vec::new())
}

/// Names every file that [`write`] would change.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let output = output(root)?;
    let changed = output.files.iter().filter(|(path, contents)| {
        !std::fs::read_to_string(root.join(path)).is_ok_and(|existing| existing == **contents)
    });
    let mut complaints: Vec<String> = changed
        .map(|(path, _)| format!("{}: not current", path.display()))
        .collect();
    complaints.extend(
        stale(root, &output)?
            .iter()
            .map(|path| format!("{}: no longer generated", path.display())),
    );
    if !complaints.is_empty() {
        complaints.push("hint: run `cargo xtask generate` and commit the result".to_owned());
    }
    Ok(complaints)
}

fn output(root: &Path) -> Result<Output> {
    let mut files = crd_chart::files()?;
    files.extend(cloudformation::files(root)?);
    files.extend(reference::files()?);
    files.extend(api_reference::files()?);
    Ok(Output {
        files,
        owned: crd_chart::owned_directories(),
    })
}

fn stale(root: &Path, output: &Output) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for directory in &output.owned {
        let Ok(entries) = std::fs::read_dir(root.join(directory)) else {
            continue;
        };
        for entry in entries {
            let path = directory.join(entry?.file_name());
            if !output.files.contains_key(&path) {
                stale.push(path);
            }
        }
    }
    stale.sort();
    Ok(stale)
}
