//! `karpenter schedule` on small clusters: what programs and people get to read, and what is said of bad input.

mod bad_input;
mod cluster;
mod live;
mod plans;
#[cfg(feature = "aws")]
mod region;
#[cfg(feature = "aws")]
mod region_by_default;
mod rounds;
#[path = "../live/mod.rs"]
mod server;

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with objects and a catalog, and the arguments that lead there.
pub struct Input {
    folder: TempDir,
    arguments: Vec<String>,
}

impl Input {
    pub fn new(objects: &str) -> Self {
        let input = Self {
            folder: tempfile::tempdir().expect("a folder"),
            arguments: Vec::new(),
        };
        input.write("objects.yaml", objects);
        input.write("types.json", &catalog().to_string());
        input
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file");
    }

    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|text| (*text).to_owned()));
        self
    }

    pub fn run(&self) -> Output {
        let mut arguments = vec!["schedule", "--now", "2026-01-01T00:00:00Z"];
        arguments.extend(self.arguments.iter().map(String::as_str));
        let names = |flag: &str| arguments.iter().any(|argument| argument == &flag);
        let (objects, types) = (names("-f"), names("--instance-types"));
        if !objects {
            arguments.extend(["-f", "objects.yaml"]);
        }
        if !types {
            arguments.extend(["--instance-types", "types.json"]);
        }
        server::karpenter(self.folder.path(), &arguments)
            .output()
            .expect("the program runs")
    }

    /// What was printed, of a run that went well.
    #[track_caller]
    pub fn printed(&self) -> String {
        let output = self.run();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The plan as JSON, without the time that it took.
    #[track_caller]
    pub fn plan(self) -> Value {
        let mut plan: Value = serde_json::from_str(&self.with(&["-o", "json"]).printed()).expect("JSON");
        let fields = plan.as_object_mut().expect("an object");
        let millis = fields.remove("solveMillis").expect("solveMillis");
        assert!(millis.as_f64().is_some_and(|millis| millis >= 0.0), "{millis}");
        plan
    }

    /// What was said beside the plan.
    pub fn notes(&self) -> String {
        String::from_utf8_lossy(&self.run().stderr).into_owned()
    }
}

/// Two shapes in two zones, spot and on demand.
fn catalog() -> Value {
    let offering = |zone: &str, kind: &str, price: f64| {
        json!({"Price": price, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
        ]})
    };
    let shape = |name: &str, cpu: u32, price: f64| {
        json!({
            "name": name, "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "20"},
            "offerings": [
                offering("a", "on-demand", price), offering("b", "on-demand", price),
                offering("a", "spot", price / 2.0), offering("b", "spot", price / 2.0),
            ],
        })
    };
    json!([shape("m.large", 2, 0.2), shape("m.2xlarge", 8, 0.8)])
}
