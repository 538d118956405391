//! Helm as a process, and the repository that it works on.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

use serde_json::Value;

/// Built on first use, which takes minutes; `make test` does that before it runs any test.
static HELM: LazyLock<PathBuf> = LazyLock::new(|| {
    let built = Command::new(repository().join("tools/helm/build"))
        .output()
        .expect("the tool can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    PathBuf::from(String::from_utf8_lossy(&built.stdout).trim())
});

/// Found from the package whose test runs: clones may share their build output.
pub fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// A command that finds this Helm as `helm`, runs at the root of the repository, and talks to the given cluster only.
pub fn command(program: &str, kubeconfig: Option<&Path>) -> Command {
    let home = std::env::temp_dir().join("karpenter-helm-home");
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = HELM.parent().expect("a folder").display();
    let mut command = Command::new(program);
    command
        .current_dir(repository())
        .env("PATH", format!("{folder}:{path}"))
        .env("KUBECONFIG", kubeconfig.unwrap_or(Path::new("/dev/null")))
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"));
    command
}

pub fn helm(arguments: &[&str]) -> Output {
    command("helm", None).args(arguments).output().expect("Helm runs")
}

/// What `helm template` prints for the chart karpenter as release `karpenter` in `kube-system`.
#[track_caller]
pub fn template(arguments: &[&str]) -> String {
    let output = try_template(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

pub fn try_template(arguments: &[&str]) -> Output {
    let fixed = [
        "template",
        "karpenter",
        "charts/karpenter",
        "--namespace",
        "kube-system",
    ];
    helm(&[&fixed, arguments].concat())
}

/// Every object of what Helm printed.
pub fn objects(rendered: &str) -> Vec<Value> {
    let documents = rendered.split("\n---").map(|text| text.trim_start_matches("---"));
    documents
        .filter_map(|text| {
            let object: Value = serde_saphyr::from_str(text).expect("Helm prints YAML");
            object.is_object().then_some(object)
        })
        .collect()
}

#[track_caller]
pub fn object(rendered: &str, kind: &str) -> Value {
    let mut found = objects(rendered).into_iter().filter(|object| object["kind"] == kind);
    found.next().unwrap_or_else(|| panic!("no {kind} in {rendered}"))
}

/// The environment of the controller, by name; variables with a reference have no text.
#[track_caller]
pub fn environment(rendered: &str) -> Vec<(String, Option<String>)> {
    let deployment = object(rendered, "Deployment");
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    variables
        .expect("a list of variables")
        .iter()
        .map(|variable| (text(&variable["name"]).expect("a name"), text(&variable["value"])))
        .collect()
}
