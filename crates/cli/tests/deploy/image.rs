//! What is in the image, without an engine and without compiling it: the files that it is made from.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

use crate::terraform::{repository, run};

/// The user of upstream's image, and of the chart's security context.
const USER: &str = "65532";

fn build(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository().join("deploy/image/build"));
    command.args(arguments);
    command
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("the file is there")
}

#[test]
fn the_image_holds_the_program_and_what_it_cannot_do_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let place = folder.to_string_lossy();
    run(&mut build(&[
        "--binary",
        env!("CARGO_BIN_EXE_karpenter"),
        "--files",
        &place,
    ]));

    let instructions = read(folder, "Containerfile");
    let instructions: Vec<&str> = instructions.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(instructions[0], "FROM scratch");
    let copied: BTreeSet<&str> = instructions
        .iter()
        .filter_map(|line| line.strip_prefix("COPY ")?.split(' ').next())
        .collect();
    assert_eq!(
        copied,
        BTreeSet::from(["ca-certificates.crt", "karpenter", "passwd", "sbom.json"])
    );
    assert!(copied.iter().all(|name| folder.join(name).exists()));
    for wanted in [
        &*format!("USER {USER}:{USER}"),
        "ENTRYPOINT [\"/karpenter\"]",
        "CMD [\"controller\"]",
    ] {
        assert!(instructions.contains(&wanted), "{wanted} is not in {instructions:?}");
    }
    for label in ["version=\"${VERSION}\"", "revision=\"${COMMIT}\""] {
        let label = format!("org.opencontainers.image.{label}");
        assert!(
            instructions.iter().any(|line| line.contains(&label)),
            "{label} is not in {instructions:?}"
        );
    }

    assert!(read(folder, "passwd").starts_with(&format!("karpenter:x:{USER}:{USER}:")));
    assert!(read(folder, "ca-certificates.crt").contains("BEGIN CERTIFICATE"));
    let bill: Value = serde_json::from_str(&read(folder, "sbom.json")).expect("JSON");
    let names: BTreeSet<&str> = bill["components"]
        .as_array()
        .expect("components")
        .iter()
        .filter_map(|component| component["name"].as_str())
        .collect();
    assert!(
        ["kube", "ring", "aws-sdk-ec2"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let strangers: Vec<&&str> = names.iter().filter(|name| name.starts_with("windows")).collect();
    assert!(strangers.is_empty(), "not on Linux: {strangers:?}");

    let said = run(Command::new(folder.join("karpenter")).arg("--version"));
    let version = format!("karpenter {} (", env!("CARGO_PKG_VERSION"));
    assert!(said.starts_with(&version), "{said}");
}

#[test]
fn a_wrong_order_is_refused_before_anything_is_built() {
    for (arguments, code) in [
        (&[][..], 2),
        (&["--no-such-flag", "x"], 2),
        (&["--arch", "s390x", "x"], 1),
    ] {
        let output = build(arguments).output().expect("the script runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}
