//! Whatever is wrong with the input: one line that says so, and an exit code that scripts can tell apart.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

fn karpenter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(arguments)
        .env_remove("KUBECONFIG")
        .output()
        .expect("the program runs")
}

#[track_caller]
fn check(output: &Output, code: i32, part: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    assert!(told.contains(part), "{part:?} is missing in: {told}");
}

#[test]
fn an_unreadable_catalog_is_named() {
    check(
        &karpenter(&["playground", "--instance-types", "/no/such/file.json"]),
        2,
        "/no/such/file.json",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("types.json");
    std::fs::write(&file, r#"[{"name": "x", "offerings": [{"Price": "dear"}]}]"#).expect("a file");
    let file = file.to_string_lossy();
    check(
        &karpenter(&["instance-types", "--instance-types", &file]),
        2,
        "offerings[0].Price",
    );
}

/// Nobody should take a list for what a cluster can launch.
#[test]
fn a_cluster_that_no_list_asks_about_is_refused() {
    let named = [
        "-f",
        "pool.yaml",
        "-n",
        "web",
        "--kubeconfig",
        "file",
        "--context",
        "prod",
    ];
    check(
        &karpenter(&[&["instance-types"], &named[..]].concat()),
        2,
        "-f, --namespace, --kubeconfig, --context: a list is the same for every cluster; hint: --instance-types aws",
    );
    check(
        &karpenter(&["instance-types", "--instance-types", "generic", "-n", "default"]),
        2,
        "--namespace: a list",
    );
}

#[test]
fn an_unknown_story_names_the_known_ones() {
    check(
        &karpenter(&["playground", "--scenario", "hamlet"]),
        2,
        "known stories: inflate",
    );
}

#[test]
fn settings_that_are_wrong_are_reported_together() {
    let output = karpenter(&[
        "controller",
        "--cloud-provider",
        "sim",
        "--metrics-port",
        "x",
        "--log-level",
        "loud",
    ]);
    check(&output, 2, "--metrics-port");
    check(&output, 2, "--log-level");
}

#[test]
fn a_bad_kubeconfig_is_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, "not a kubeconfig").expect("a file");
    for path in [file.as_path(), &folder.path().join("missing")] {
        let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
            .args(["controller", "--cloud-provider", "sim"])
            .env("KUBECONFIG", path)
            .output()
            .expect("the program runs");
        check(&output, 2, "kubeconfig");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    check(&karpenter(&["playground", "--port", &port]), 2, &port);
}

#[test]
fn an_unreachable_cluster_is_told_with_a_code_of_its_own() {
    let free = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("its address");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
         clusters: [{{name: x, cluster: {{server: 'http://{free}'}}}}]\nusers: [{{name: x, user: {{token: x}}}}]\n"
    );
    std::fs::write(&file, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("doctor")
        .env("KUBECONFIG", &file)
        .output()
        .expect("the program runs");
    check(&output, 3, "the cluster does not answer");
}
