//! The commands of a page that make the controller's role, with an `aws` that writes down what it is told.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::Value;

use crate::terraform::{repository, run};

/// Keeps every document that it is given, under the name of the policy, or of the role that it is the trust of.
const AWS: &str = r#"#!/bin/sh
case "$1 $2" in
  "eks describe-cluster") echo https://oidc.example.com/id/0123; exit ;;
esac
while [ $# -gt 0 ]; do
  case $1 in
    --role-name) role=$2 ;;
    --policy-name) policy=$2 ;;
    --policy-document | --assume-role-policy-document) document=${2#file://} ;;
  esac
  shift
done
cp "$document" "$KEPT/${policy:-$role}"
"#;

/// Does for the commands of the page what `envsubst` of gettext does, which not every machine has.
const ENVSUBST: &str = r#"
envsubst() { python3 -c 'import os, sys; sys.stdout.write(os.path.expandvars(sys.stdin.read()))'; }
"#;

/// What IAM allows for all inline policies of a role, spaces left out.
const INLINE: usize = 10_240;

#[test]
fn the_printed_commands_make_a_role_for_the_service_account_with_every_policy() {
    let page = std::fs::read_to_string(repository().join("docs/deployment-guide.md")).expect("the page is there");
    let mut blocks = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let commands = blocks
        .find(|block| block.contains("aws iam create-role"))
        .expect("the commands");

    let folder = tempfile::tempdir().expect("a folder");
    let (tools, kept) = (folder.path().join("bin"), folder.path().join("kept"));
    for folder in [&tools, &kept] {
        std::fs::create_dir(folder).expect("a folder");
    }
    let aws = tools.join("aws");
    std::fs::write(&aws, AWS).expect("a program");
    std::fs::set_permissions(&aws, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    // The commands write beside the documents that they read.
    let beside = folder.path().join("deploy");
    std::os::unix::fs::symlink(repository().join("deploy"), beside).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    run(Command::new("sh")
        .args(["-euc", &format!("{ENVSUBST}{commands}")])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("KEPT", &kept)
        .env("KARPENTER_NAMESPACE", "kube-system")
        .env("CLUSTER_NAME", "demo")
        .env("AWS_PARTITION", "aws")
        .env("AWS_DEFAULT_REGION", "us-west-2")
        .env("AWS_ACCOUNT_ID", "123456789012"));

    let read = |name: &str| std::fs::read_to_string(kept.join(name)).expect("a document");
    let trust: Value = serde_json::from_str(&read("KarpenterControllerRole-demo")).expect("JSON");
    let statement = &trust["Statement"][0];
    assert_eq!(
        statement["Principal"]["Federated"],
        "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/id/0123"
    );
    let condition = &statement["Condition"]["StringEquals"];
    assert_eq!(
        condition["oidc.example.com/id/0123:sub"],
        "system:serviceaccount:kube-system:karpenter"
    );
    assert_eq!(condition["oidc.example.com/id/0123:aud"], "sts.amazonaws.com");

    let mut policies: BTreeSet<String> = std::fs::read_dir(&kept)
        .expect("the folder")
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    policies.remove("KarpenterControllerRole-demo");
    let expected = [
        "eks-integration",
        "iam-integration",
        "interruption",
        "node-lifecycle",
        "resource-discovery",
        "zonal-shift",
    ];
    assert!(policies.iter().eq(expected), "{policies:?}");
    let mut size = 0;
    for policy in &policies {
        let text = read(policy);
        assert!(!text.contains("${"), "{policy} has an open parameter: {text}");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert!(document["Statement"].is_array(), "{policy}");
        size += text.chars().filter(|letter| !letter.is_whitespace()).count();
    }
    assert!(size <= INLINE, "{size} characters are too many for one role");
}
