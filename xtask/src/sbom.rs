//! The bill of materials of the program: every crate that is linked into it, in CycloneDX's JSON.
//!
//! Made from `cargo metadata`, so that it follows the features and the target of the build; the usual tools list those of the
//! default build, on all targets at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The package whose binary is shipped.
const PROGRAM: &str = "cli";

pub fn print(root: &Path, features: &str, target: Option<&str>) -> Result<Vec<String>> {
    let listed = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--features", features])
        .args(target.iter().flat_map(|target| ["--filter-platform", target]))
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    let complaint = String::from_utf8_lossy(&listed.stderr);
    ensure!(listed.status.success(), "cargo metadata failed: {}", complaint.trim());
    let metadata: Value = serde_json::from_slice(&listed.stdout).context("cargo metadata prints JSON")?;
    println!("{:#}", document(&metadata)?);
    Ok(Vec::new())
}

fn document(metadata: &Value) -> Result<Value> {
    let packages = by_id(&metadata["packages"])?;
    let nodes = by_id(&metadata["resolve"]["nodes"])?;
    let program = packages.iter().find(|(_, package)| package["name"] == PROGRAM);
    let (root, program) = program.with_context(|| format!("no package {PROGRAM}"))?;
    let mut reached = BTreeSet::from([*root]);
    let mut open = vec![*root];
    while let Some(node) = open.pop() {
        open.extend(linked(&nodes, node).filter(|other| reached.insert(other)));
    }
    reached.remove(root);
    let mut components: Vec<&Value> = reached.iter().filter_map(|node| packages.get(node).copied()).collect();
    components.sort_by_key(|package| reference(package));
    let mut dependencies = vec![json!({"ref": "karpenter", "dependsOn": references(&packages, &nodes, root)})];
    dependencies.extend(components.iter().map(|package| {
        let node = package["id"].as_str().unwrap_or_default();
        json!({"ref": reference(package), "dependsOn": references(&packages, &nodes, node)})
    }));
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component":
            {"type": "application", "bom-ref": "karpenter", "name": "karpenter", "version": program["version"]}},
        "components": components.iter().map(|package| component(package)).collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn by_id(list: &Value) -> Result<BTreeMap<&str, &Value>> {
    let list = list.as_array().context("cargo metadata lists packages")?;
    Ok(list
        .iter()
        .filter_map(|item| Some((item["id"].as_str()?, item)))
        .collect())
}

/// What a package links with: neither what only its tests need nor what runs while it is built.
fn linked<'a>(nodes: &BTreeMap<&'a str, &'a Value>, node: &str) -> impl Iterator<Item = &'a str> {
    let dependencies = nodes.get(node).and_then(|node| node["deps"].as_array());
    dependencies.into_iter().flatten().filter_map(|dependency| {
        let kinds = dependency["dep_kinds"].as_array()?;
        let is_linked = kinds.iter().any(|kind| kind["kind"].is_null());
        dependency["pkg"].as_str().filter(|_| is_linked)
    })
}

fn references(packages: &BTreeMap<&str, &Value>, nodes: &BTreeMap<&str, &Value>, node: &str) -> BTreeSet<String> {
    linked(nodes, node)
        .filter_map(|other| packages.get(other))
        .map(|package| reference(package))
        .collect()
}

fn reference(package: &Value) -> String {
    let word = |name: &str| package[name].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", word("name"), word("version"))
}

fn component(package: &Value) -> Value {
    let mut component = json!({"type": "library", "bom-ref": reference(package), "purl": reference(package),
        "name": package["name"], "version": package["version"]});
    if let Some(license) = package["license"].as_str() {
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_only_tests_need_is_not() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let depends = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("cli"), package("serde"), package("itoa"), package("proptest"), package("cc")],
            "resolve": {"nodes": [
                {"id": "cli", "deps": [depends("serde", Value::Null), depends("proptest", json!("dev"))]},
                {"id": "serde", "deps": [depends("itoa", Value::Null), depends("cc", json!("build"))]},
                {"id": "itoa", "deps": []}, {"id": "proptest", "deps": []}, {"id": "cc", "deps": []},
            ]},
        });
        let document = document(&metadata).expect("a document");
        let names: Vec<&Value> = document["components"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(names, ["itoa", "serde"]);
        assert_eq!(
            document["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(
            document["dependencies"][0]["dependsOn"],
            json!(["pkg:cargo/serde@1.0.0"])
        );
    }
}
