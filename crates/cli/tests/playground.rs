//! The playground as a newcomer meets it.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// A playground in the background; it is stopped in order when this goes.
struct Playground {
    process: Child,
    folder: TempDir,
}

impl Playground {
    /// Starts one and waits until it has told where it is.
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Command::new(env!("CARGO_BIN_EXE_karpenter"))
            .args(["playground", "--kubeconfig-out"])
            .arg(folder.path().join("kubeconfig"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the playground starts");
        let stdout = process.stdout.take().expect("its output");
        let told = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("Ctrl-C"));
        assert!(told, "the playground said hello");
        Self { process, folder }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .output()
            .expect("kubectl runs");
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "kubectl {arguments:?}: {err}");
        out.into_owned()
    }

    /// As Ctrl-C does.
    fn stop(&mut self) {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
        assert!(told.success());
        assert!(
            self.process.wait().expect("it ends").success(),
            "the playground ends in order"
        );
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // A test that failed has not stopped it; one that has been stopped cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_inflate_story_ends_with_a_summary() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["playground", "--scenario", "inflate"])
        .output()
        .expect("the playground runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for part in [
        "100 pods ready",
        "no pod left, no node left",
        "nodes launched",
        "cost",
        "nodes consolidated",
    ] {
        assert!(told.contains(part), "{part:?} is missing in:\n{told}");
    }
}

/// The story survives every kind of trouble that can be switched on at once.
#[test]
fn trouble_delays_the_story_and_does_not_change_its_end() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args([
            "playground",
            "--scenario",
            "inflate",
            "--api-faults",
            "--launch-failures",
            "0.2",
            "--seed",
            "5",
        ])
        .args(["--insufficient-capacity", "*/us-west-2a", "--spot-interruptions", "1h"])
        .output()
        .expect("the playground runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn kubectl_finds_a_cluster_with_a_pool_and_something_to_scale() {
    let mut playground = Playground::start(&["--speed", "20"]);
    assert!(playground.kubectl(&["get", "nodepools"]).contains("default"));
    playground.kubectl(&["scale", "deployment", "inflate", "--replicas", "5"]);
    playground.kubectl(&["rollout", "status", "deployment", "inflate", "--timeout", "60s"]);
    let nodes = playground.kubectl(&["get", "nodes", "--no-headers"]);
    assert!(nodes.contains("Ready"), "{nodes}");
    let name = nodes.split_whitespace().next().expect("a node's name").to_owned();
    assert!(
        playground
            .kubectl(&["describe", "node", &name])
            .contains("karpenter.sh/nodepool=default")
    );
    // Deleting the node drains it, and its pods find another.
    playground.kubectl(&["delete", "node", &name, "--timeout", "60s"]);
    playground.kubectl(&["rollout", "status", "deployment", "inflate", "--timeout", "60s"]);
    assert!(!playground.kubectl(&["get", "nodes", "--no-headers"]).contains(&name));
    playground.stop();
}

#[test]
fn a_playground_with_a_folder_goes_on_where_it_stopped() {
    let data = tempfile::tempdir().expect("a folder");
    let data: &Path = data.path();
    let arguments = ["--speed", "20", "--data", &data.to_string_lossy()];
    let mut first = Playground::start(&arguments);
    first.kubectl(&["scale", "deployment", "inflate", "--replicas", "5"]);
    first.kubectl(&["rollout", "status", "deployment", "inflate", "--timeout", "60s"]);
    let nodes = first.kubectl(&["get", "nodes", "-o", "name"]);
    first.stop();

    let mut second = Playground::start(&arguments);
    assert_eq!(
        second.kubectl(&["get", "nodes", "-o", "name"]),
        nodes,
        "the nodes are still there"
    );
    second.kubectl(&["rollout", "status", "deployment", "inflate", "--timeout", "60s"]);
    second.stop();
}

#[cfg(feature = "aws")]
#[test]
fn the_story_is_the_same_on_an_aws_region() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["playground", "--cloud", "aws-fake", "--scenario", "inflate"])
        .args(["--insufficient-capacity", "*/us-west-2a"])
        .output()
        .expect("the playground runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for part in ["100 pods ready", "no pod left, no node left", "nodes left          0"] {
        assert!(told.contains(part), "{part:?} is missing in:\n{told}");
    }
}

/// What only simulated machines can do is not taken in silence.
#[test]
fn switches_that_the_cloud_does_not_have_are_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["playground", "--cloud", "aws-fake", "--never-join", "0.5"])
        .output()
        .expect("the playground runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(told.contains("--cloud sim"), "{told}");
}
