//! The text files of the repository.

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A text file, by its path from the repository's root.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    pub fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    /// Each line with its number, counted from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// Every text file that git tracks or would track, in the order of their paths.
pub fn tracked(root: &Path) -> Result<Vec<Source>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    ensure!(
        listed.status.success(),
        "git ls-files failed: {}",
        String::from_utf8_lossy(&listed.stderr).trim()
    );
    let mut paths: Vec<PathBuf> = listed
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        .collect();
    paths.sort();
    paths.dedup();
    // A file that is deleted but still in the index, or that is not text, has no lines to look at.
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(root.join(&path)).ok()?;
        Some(Source { path, text })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

/// Without `..` on the way.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}
