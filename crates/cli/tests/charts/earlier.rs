//! The charts as a release before this one would have had them.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::helm::repository;

/// A field that the definitions of the release before did not have.
pub const NEW_FIELD: &str = "detailedMonitoring";

const CHARTS: [&str; 2] = ["karpenter", "karpenter-crd"];

/// Copies of both charts with a lower version, and with a definition that knows one field less.
pub fn charts() -> TempDir {
    let folder = copies();
    for chart in CHARTS {
        let description = folder.path().join(chart).join("Chart.yaml");
        let text = fs::read_to_string(&description).expect("a chart");
        let version = env!("CARGO_PKG_VERSION");
        assert!(text.contains(version), "{text}");
        fs::write(&description, text.replace(version, "0.0.9")).expect("a file");
    }
    for place in ["karpenter/crds", "karpenter-crd/files"] {
        let definition = folder.path().join(place).join("karpenter.k8s.aws_ec2nodeclasses.yaml");
        let text = fs::read_to_string(&definition).expect("a definition");
        fs::write(&definition, without_field(&text)).expect("a file");
    }
    folder
}

/// Copies of both charts as they are.
pub fn copies() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for chart in CHARTS {
        copy(&repository().join("charts").join(chart), &folder.path().join(chart));
    }
    folder
}

/// The definition without the field: its line, and what is indented further.
fn without_field(definition: &str) -> String {
    let head = format!("{NEW_FIELD}:");
    let mut kept = String::new();
    let mut below = None;
    for line in definition.lines() {
        let indent = line.len() - line.trim_start().len();
        below = below.filter(|head| indent > *head);
        if line.trim_start() == head {
            below = Some(indent);
        }
        if below.is_none() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    assert!(kept.len() < definition.len(), "no field {NEW_FIELD} to take away");
    kept
}

/// Links are followed, so that the copy stands alone.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).expect("a file");
    }
}
