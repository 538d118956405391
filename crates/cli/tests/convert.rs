//! `karpenter convert` on files: what is printed, what keeps its text, how it ends.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{fs, str};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROVISIONER: &str = "# Nodes for everybody.
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
  ttlSecondsAfterEmpty: 30
  provider: {instanceProfile: nodes}
";

const DEPLOYMENT: &str = "# A comment that stays.
apiVersion: apps/v1
kind: Deployment
metadata:
    name: web   # oddly indented
spec: {replicas: 1}
";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn karpenter(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("convert")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

#[track_caller]
fn ends(output: &Output, code: i32) -> (String, String) {
    let (printed, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{printed}{told}");
    (printed, told)
}

fn text(bytes: &[u8]) -> String {
    str::from_utf8(bytes).expect("text").to_owned()
}

#[test]
fn objects_keep_their_order_and_those_of_others_their_text() {
    let all = format!("# A licence.\n---\n{DEPLOYMENT}---\n{PROVISIONER}---\n# The end.\n");
    let folder = folder(&[("all.yaml", &all)]);
    let arguments = ["-f", "all.yaml", "--cluster-name", "demo"];
    let (printed, told) = ends(&karpenter(folder.path(), &arguments), 0);
    let documents: Vec<&str> = printed.split("---\n").collect();
    assert_eq!(documents.len(), 4, "{printed}");
    assert_eq!(documents[0], format!("# A licence.\n{DEPLOYMENT}"));
    assert!(
        documents[1].starts_with("# Nodes for everybody.\n# convert: spec.requirements: "),
        "{printed}"
    );
    assert!(documents[1].contains("\nkind: NodePool\n"), "{printed}");
    assert!(documents[2].starts_with("# convert: "), "{printed}");
    assert!(documents[2].contains("\nkind: EC2NodeClass\n"), "{printed}");
    assert_eq!(documents[3], "# The end.\n");
    assert!(
        told.contains("warning: all.yaml, document 3, Provisioner default: spec.requirements: "),
        "{told}"
    );
    assert!(
        told.contains("note: other objects stay as they are: 1 Deployment"),
        "{told}"
    );

    fs::write(folder.path().join("all.yaml"), &printed).expect("a file");
    let (again, _) = ends(&karpenter(folder.path(), &arguments), 0);
    assert_eq!(again, printed, "a second conversion changes nothing");
}

#[test]
fn check_asks_whether_anything_would_change() {
    let folder = folder(&[("old.yaml", PROVISIONER), ("other.yaml", DEPLOYMENT)]);
    let (printed, told) = ends(
        &karpenter(folder.path(), &["-f", ".", "--cluster-name", "x", "--check"]),
        1,
    );
    assert_eq!(printed, "");
    assert_eq!(
        told,
        "karpenter: not converted yet; would become nodepool.karpenter.sh/default, ec2nodeclass.karpenter.k8s.aws/default\n"
    );
    let (new, _) = ends(&karpenter(folder.path(), &["-f", "old.yaml", "--cluster-name", "x"]), 0);
    fs::write(folder.path().join("old.yaml"), new).expect("a file");
    let (printed, told) = ends(&karpenter(folder.path(), &["-f", ".", "--check"]), 0);
    assert_eq!((printed.as_str(), told.as_str()), ("", ""));
}

#[test]
fn a_refusal_prints_no_part_of_the_result() {
    let folder = folder(&[("a.yaml", PROVISIONER), ("b.yaml", "kind: [")]);
    let (printed, told) = ends(&karpenter(folder.path(), &["-f", "a.yaml"]), 1);
    assert_eq!(printed, "");
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(
        told.starts_with("karpenter: a.yaml, document 1, Provisioner default: spec.subnetSelector: "),
        "{told}"
    );
    assert!(told.contains("--cluster-name"), "{told}");
    let (printed, told) = ends(&karpenter(folder.path(), &["-f", "a.yaml", "-f", "b.yaml"]), 2);
    assert_eq!(printed, "");
    assert!(told.starts_with("karpenter: b.yaml, document 1: "), "{told}");
}

#[test]
fn bad_usage_is_told_in_one_line() {
    let folder = folder(&[("other.yaml", DEPLOYMENT), ("odd.yaml", "some: thing")]);
    assert_eq!(
        ends(&karpenter(folder.path(), &[]), 2).1,
        "karpenter: must specify -f\n"
    );
    let (_, told) = ends(&karpenter(folder.path(), &["-f", "other.yaml"]), 1);
    assert!(told.ends_with("karpenter: no objects passed to convert\n"), "{told}");
    let (_, told) = ends(&karpenter(folder.path(), &["-f", "odd.yaml"]), 2);
    assert_eq!(told, "karpenter: odd.yaml, document 1: kind: is missing\n");
    ends(&karpenter(folder.path(), &["-f", "none.yaml"]), 2);
    ends(
        &karpenter(folder.path(), &["-f", "other.yaml", "--global-tags", "=x"]),
        2,
    );
}

#[test]
fn directories_are_read_as_deep_as_asked() {
    let folder = folder(&[
        ("top.yml", PROVISIONER),
        ("below/more.yaml", &PROVISIONER.replace("default", "more")),
    ]);
    let names = |arguments: &[&str]| {
        let arguments = [&["-f", ".", "--cluster-name", "x", "-o", "name"], arguments].concat();
        ends(&karpenter(folder.path(), &arguments), 0).0
    };
    let top = "nodepool.karpenter.sh/default\nec2nodeclass.karpenter.k8s.aws/default\n";
    assert_eq!(names(&[]), top);
    let below = top.replace("default", "more");
    assert_eq!(names(&["-R"]), format!("{below}{top}"));
}

#[test]
fn lists_and_standard_input_are_read_and_json_is_a_list() {
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
            {
                "apiVersion": "karpenter.k8s.aws/v1beta1",
                "kind": "EC2NodeClass",
                "metadata": {"name": "default", "uid": "x"},
                "spec": {
                    "amiFamily": "AL2023", "role": "nodes",
                    "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
                },
            },
        ],
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["convert", "-f", "-", "-o", "json", "--v1-metadata-defaults"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("an input");
    stdin.write_all(list.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let (printed, _) = ends(&child.wait_with_output().expect("it ends"), 0);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(printed["items"][0], list["items"][0]);
    assert_eq!(
        printed["items"][1],
        json!({
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "default"},
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes",
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
            },
        })
    );
}

/// LE18.6, to the byte: nothing but the objects of upstream's converter.
#[test]
fn v1beta1_is_written_without_comments() {
    let folder = folder(&[("a.yaml", &PROVISIONER.replace("# Nodes for everybody.\n", ""))]);
    let arguments = [
        "-f",
        "a.yaml",
        "--to",
        "v1beta1",
        "--cluster-name",
        "demo",
        "--ignore-defaults",
    ];
    let (printed, _) = ends(&karpenter(folder.path(), &arguments), 0);
    assert_eq!(
        printed,
        "apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata:
  name: default
spec:
  disruption:
    consolidateAfter: 30s
    consolidationPolicy: WhenEmpty
    expireAfter: Never
  template:
    spec:
      nodeClassRef:
        name: default
      requirements:
      - key: karpenter.sh/capacity-type
        operator: In
        values:
        - spot
---
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata:
  name: default
spec:
  amiFamily: AL2
  role: $KARPENTER_NODE_ROLE
  securityGroupSelectorTerms:
  - tags:
      kubernetes.io/cluster/demo: \"*\"
  subnetSelectorTerms:
  - tags:
      kubernetes.io/cluster/demo: \"*\"
"
    );
}

#[test]
fn values_come_first_and_their_provisioner_follows() {
    let values = "controller: {clusterName: demo}\ndefaultProvisioner: {create: true, ttlSecondsAfterEmpty: 300}\n";
    let folder = folder(&[("values.yaml", values)]);
    let (printed, told) = ends(&karpenter(folder.path(), &["-f", "values.yaml", "-o", "name"]), 0);
    assert_eq!(
        printed,
        "Helm values\nnodepool.karpenter.sh/default\nec2nodeclass.karpenter.k8s.aws/default\n"
    );
    assert!(
        told.contains("warning: values.yaml, document 1, Helm values: defaultProvisioner: "),
        "{told}"
    );
    ends(&karpenter(folder.path(), &["-f", "values.yaml", "-o", "json"]), 2);
}

#[cfg(unix)]
#[test]
fn the_name_of_upstreams_tool_works_too() {
    let folder = folder(&[("a.yaml", PROVISIONER)]);
    let link = folder.path().join("karpenter-convert");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_karpenter"), &link).expect("a link");
    let output = Command::new(link)
        .args(["-f", "a.yaml", "--cluster-name", "x", "-o", "name"])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert!(ends(&output, 0).0.starts_with("nodepool.karpenter.sh/default\n"));
}

/// The worked example of the documentation is what the program prints.
#[test]
fn the_documentation_shows_what_is_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-provisioner-to-nodepool.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```\n").next().expect("a block ends"))
        .collect();
    let [before, after] = blocks[..] else {
        panic!("the page has an example before and after, not {}", blocks.len());
    };
    let folder = folder(&[("karpenter.yaml", before)]);
    let arguments = ["-f", "karpenter.yaml", "--cluster-name", "demo"];
    let (printed, told) = ends(&karpenter(folder.path(), &arguments), 0);
    assert_eq!(printed, after);
    let warnings = page
        .split("```text\n")
        .nth(1)
        .and_then(|rest| rest.split("```\n").next());
    assert_eq!(Some(told.as_str()), warnings);
}
