//! What the charts render: golden files (`UPDATE_EXPECT=1` rewrites them) and what has to agree with the rest of the repository.

use std::{collections::BTreeSet, process::Command};

use expect_test::expect_file;
use serde_json::Value;

use crate::helm::{environment, helm, object, objects, repository, template};

#[test]
fn both_charts_pass_lint() {
    let output = helm(&["lint", "--strict", "charts/karpenter", "charts/karpenter-crd"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2 chart(s) linted, 0 chart(s) failed"), "{said}");
}

/// The golden file of the defaults is the one that people apply without Helm.
#[test]
fn rendered_manifests_are_current() {
    let output = Command::new(repository().join("deploy/manifests/render")).output();
    let rendered = output.expect("the script runs").stdout;
    expect_file!["../../../../deploy/manifests/karpenter.yaml"].assert_eq(&String::from_utf8_lossy(&rendered));
}

#[test]
fn every_value_has_its_effect() {
    let rendered = template(&[
        "--values",
        "crates/cli/tests/charts/everything.yaml",
        "--api-versions",
        "monitoring.coreos.com/v1,karpenter.sh/v1alpha5/Provisioner",
    ]);
    // Definitions are generated, and long; the golden file has everything else.
    let (definitions, rest): (Vec<&str>, Vec<&str>) = rendered
        .split("---\n")
        .partition(|document| document.contains("\nkind: CustomResourceDefinition\n"));
    expect_file!["golden/everything.yaml"].assert_eq(&rest.join("---\n"));
    assert_eq!(definitions.len(), api::crds::legacy().len());
    for definition in objects(&definitions.join("---\n")) {
        assert_eq!(definition["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    }
}

#[test]
fn names_follow_release_and_overrides() {
    // Release, values, then the names of Deployment and of the account that it runs as.
    let cases = [
        ("karpenter", "", "karpenter", "karpenter"),
        ("my-karpenter", "", "my-karpenter", "my-karpenter"),
        ("prod", "", "prod-karpenter", "prod-karpenter"),
        ("prod", "nameOverride=keeper", "prod-keeper", "prod-keeper"),
        ("prod", "fullnameOverride=keeper", "keeper", "keeper"),
        ("prod", "serviceAccount.name=other", "prod-karpenter", "other"),
        ("prod", "serviceAccount.create=false", "prod-karpenter", "default"),
        (
            "prod",
            "serviceAccount.create=false,serviceAccount.name=x",
            "prod-karpenter",
            "x",
        ),
    ];
    for (release, set, name, account) in cases {
        let output = helm(&[
            "template",
            release,
            "charts/karpenter",
            "--set",
            "settings.clusterName=c",
            "--set",
            set,
        ]);
        let rendered = String::from_utf8_lossy(&output.stdout);
        let deployment = object(&rendered, "Deployment");
        assert_eq!(deployment["metadata"]["name"], name, "{release} {set}");
        assert_eq!(
            deployment["spec"]["template"]["spec"]["serviceAccountName"], account,
            "{release} {set}"
        );
        let binding = object(&rendered, "ClusterRoleBinding");
        assert_eq!(binding["subjects"][0]["name"], account, "{release} {set}");
        let made = objects(&rendered)
            .iter()
            .any(|object| object["kind"] == "ServiceAccount");
        assert_eq!(made, !set.contains("create=false"), "{release} {set}");
    }
}

#[test]
fn every_variable_is_one_that_the_program_reads() {
    let settings = std::fs::read_to_string(repository().join("docs/reference/settings.md")).expect("the reference");
    let everything = template(&["--values", "crates/cli/tests/charts/everything.yaml"]);
    let set: BTreeSet<String> = environment(&everything).into_iter().map(|(name, _)| name).collect();
    for name in &set {
        // Two that are no settings: a leftover of webhooks, and where the lease lives.
        let known = ["KUBERNETES_MIN_VERSION", "SYSTEM_NAMESPACE"].contains(&name.as_str());
        assert!(
            known || settings.contains(&format!("| `{name}` |")),
            "{name} is no setting"
        );
    }
    // What upstream's chart leaves to `controller.env`, and what only this program has.
    let by_hand = [
        "BIND_ADDRESS",
        "KUBE_CLIENT_QPS",
        "KUBE_CLIENT_BURST",
        "ENABLE_PROFILING",
        "DISABLE_CONTROLLER_WARMUP",
        "DISABLE_LEADER_ELECTION",
        "LEADER_ELECTION_NAME",
        "LEADER_ELECTION_NAMESPACE",
        "NODE_SURCHARGE",
    ];
    let documented = settings.lines().filter_map(|line| line.split('`').nth(3));
    for name in documented.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')) {
        assert_eq!(set.contains(name), !by_hand.contains(&name), "{name}");
    }
}

#[test]
fn both_charts_carry_the_same_definitions() {
    let definitions = |rendered: &str| -> BTreeSet<String> {
        let found = objects(rendered);
        let definitions = found
            .iter()
            .filter(|object| object["kind"] == "CustomResourceDefinition");
        definitions.map(ToString::to_string).collect()
    };
    let beside = definitions(&template(&["--include-crds", "--set", "settings.clusterName=c"]));
    let output = helm(&["template", "karpenter-crd", "charts/karpenter-crd"]);
    let alone = definitions(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(beside.len(), 5);
    assert!(beside == alone, "the charts differ in their definitions");
}

#[test]
fn definitions_get_the_annotations_of_the_user() {
    let output = helm(&[
        "template",
        "karpenter-crd",
        "charts/karpenter-crd",
        "--set",
        "additionalAnnotations.a=b",
    ]);
    let rendered = String::from_utf8_lossy(&output.stdout);
    let annotated = objects(&rendered)
        .iter()
        .filter(|object| object["metadata"]["annotations"]["a"] == "b")
        .count();
    assert_eq!(annotated, 5);
}

#[test]
fn a_service_monitor_needs_its_api() {
    let asked = ["--set", "settings.clusterName=c,serviceMonitor.enabled=true"];
    let monitors = |rendered: &str| {
        objects(rendered)
            .iter()
            .filter(|object| object["kind"] == "ServiceMonitor")
            .count()
    };
    assert_eq!(monitors(&template(&asked)), 0);
    let known = ["--api-versions", "monitoring.coreos.com/v1"];
    assert_eq!(monitors(&template(&[asked, known].concat())), 1);
}

#[test]
fn flow_schemas_are_of_a_version_that_the_cluster_serves() {
    for (version, expected) in [
        ("1.26.0", "v1beta3"),
        ("1.28.15-eks-1", "v1beta3"),
        ("1.29.0-eks-1", "v1"),
        ("1.36.0", "v1"),
    ] {
        let rendered = template(&[
            "--kube-version",
            version,
            "--set",
            "settings.clusterName=c,flowSchemas.enabled=true",
        ]);
        let found = objects(&rendered);
        let schemas: Vec<&Value> = found.iter().filter(|object| object["kind"] == "FlowSchema").collect();
        assert_eq!(schemas.len(), 2, "{version}");
        for schema in schemas {
            assert_eq!(
                schema["apiVersion"],
                format!("flowcontrol.apiserver.k8s.io/{expected}"),
                "{version}"
            );
        }
    }
}

#[test]
fn a_default_provisioner_needs_its_kind() {
    let asked = [
        "--set",
        "settings.clusterName=c,legacy.enabled=true,legacy.defaultProvisioner.create=true",
    ];
    let made = |rendered: &str| {
        let found = objects(rendered).into_iter();
        found
            .filter(|object| object["kind"] == "Provisioner")
            .collect::<Vec<_>>()
    };
    assert!(made(&template(&asked)).is_empty());
    let known = ["--api-versions", "karpenter.sh/v1alpha5/Provisioner"];
    let [provisioner] = made(&template(&[asked, known].concat())).try_into().expect("one");
    let expected = serde_json::json!({"provider": {}, "requirements": [], "taints": [], "ttlSecondsAfterEmpty": 300});
    assert_eq!(provisioner["spec"], expected);
    assert_eq!(provisioner["metadata"]["name"], "default");
}

#[test]
fn webhooks_come_on_request_and_block_nothing_by_default() {
    let webhooks = |set: &str| -> Vec<Value> {
        let rendered = template(&["--set", "settings.clusterName=c", "--set", set]);
        let found = objects(&rendered).into_iter();
        let found = found.filter_map(|object| object["webhooks"].as_array().cloned());
        found.flatten().collect()
    };
    // As after an upgrade that reuses the values of a release before.
    for set in [
        "replicas=1",
        "legacy.enabled=true",
        "legacy=null",
        "legacy.webhooks=null",
    ] {
        assert!(webhooks(set).is_empty(), "{set}");
    }
    for set in [
        "legacy.webhooks.enabled=true",
        "legacy.webhooks.enabled=true,legacy.webhooks.port=null,legacy.webhooks.failurePolicy=null",
    ] {
        let found = webhooks(set);
        assert_eq!(found.len(), 4, "{set}");
        for webhook in found {
            assert_eq!(webhook["failurePolicy"], "Ignore", "{set}");
            assert_eq!(webhook["clientConfig"]["service"]["port"], 8443, "{set}");
        }
        let rendered = template(&["--set", "settings.clusterName=c", "--set", set]);
        assert_eq!(object(&rendered, "Service")["spec"]["ports"][1]["port"], 8443);
        let port = ("WEBHOOK_PORT".to_owned(), Some("8443".to_owned()));
        assert!(environment(&rendered).contains(&port), "{set}");
    }
}

#[test]
fn rights_follow_what_is_switched_on() {
    let reads = |set: &str, resource: &str| {
        let rendered = template(&["--set", "settings.clusterName=c", "--set", set]);
        let roles = objects(&rendered);
        let core = roles
            .iter()
            .find(|object| object["metadata"]["name"] == "karpenter-core");
        let rules = core.expect("the role")["rules"].to_string();
        rules.contains(&format!("\"{resource}\""))
    };
    let cases = [
        ("replicas=1", "resourceslices", false),
        ("settings.ignoreDRARequests=true", "resourceslices", false),
        ("settings.ignoreDRARequests=false", "resourceslices", true),
        (
            "controller.env[0].name=IGNORE_DRA_REQUESTS,controller.env[0].value=false",
            "resourceslices",
            true,
        ),
        (
            "settings.ignoreDRARequests=false,controller.env[0].name=IGNORE_DRA_REQUESTS,controller.env[0].value=true",
            "resourceslices",
            false,
        ),
        ("replicas=1", "services", false),
        (
            "controller.env[0].name=KUBE_CLIENT_QPS,controller.env[0].value=x",
            "services",
            false,
        ),
        (
            "controller.env[0].name=SCHEDULER_CONFIG,controller.env[0].value=x",
            "services",
            true,
        ),
    ];
    for (set, resource, expected) in cases {
        assert_eq!(reads(set, resource), expected, "{set}");
    }
}

#[test]
fn the_role_is_that_of_the_lease_that_is_asked_for() {
    let role = |set: &str| {
        let rendered = template(&["--set", "settings.clusterName=c", "--set", set]);
        let roles = objects(&rendered);
        let named = |kind: &str| {
            let found = roles
                .iter()
                .find(|object| object["kind"] == kind && object["metadata"]["name"] == "karpenter");
            found.unwrap_or_else(|| panic!("no {kind}")).clone()
        };
        let (role, binding) = (named("Role"), named("RoleBinding"));
        assert_eq!(role["metadata"]["namespace"], binding["metadata"]["namespace"], "{set}");
        let place = |object: &Value, at: &str| object.pointer(at).and_then(Value::as_str).map(str::to_owned);
        format!(
            "{}/{}",
            place(&role, "/metadata/namespace").unwrap_or_default(),
            place(&role, "/rules/1/resourceNames/0").unwrap_or_default()
        )
    };
    let usual = role("replicas=1");
    assert!(usual.ends_with("/karpenter-leader-election"), "{usual}");
    let named = role("controller.env[0].name=LEADER_ELECTION_NAME,controller.env[0].value=ours");
    assert_eq!(named, usual.replace("karpenter-leader-election", "ours"));
    let elsewhere = role("controller.env[0].name=LEADER_ELECTION_NAMESPACE,controller.env[0].value=leases");
    assert_eq!(elsewhere, "leases/karpenter-leader-election");
}

#[test]
fn values_of_the_blueprint_suit_its_node_group() {
    let values = [
        "--values",
        "deploy/blueprint/values.yaml",
        "--set",
        "settings.clusterName=c",
    ];
    let pod = object(&template(&values), "Deployment")["spec"]["template"]["spec"].clone();
    let group = std::fs::read_to_string(repository().join("deploy/blueprint/eks.tf")).expect("the node group");
    let (key, value) = ("karpenter.sh/controller", "true");
    assert_eq!(pod["nodeSelector"][key], value);
    assert!(group.contains(&format!("labels = {{ \"{key}\" = \"{value}\" }}")));
    let tolerated = pod["tolerations"].as_array().expect("tolerations");
    assert!(
        tolerated
            .iter()
            .any(|one| one["key"] == key && one["effect"] == "NoSchedule")
    );
    assert!(group.contains(&format!(
        "{{ key = \"{key}\", value = \"{value}\", effect = \"NO_SCHEDULE\" }}"
    )));
    assert!(group.contains(&format!(
        "{{ key = \"{key}\", value = \"{value}\", effect = \"NoSchedule\" }}"
    )));
}

#[test]
fn values_of_the_pack_are_values_of_the_charts() {
    let read = |path: &str| std::fs::read_to_string(repository().join("deploy/palette/karpenter").join(path));
    let pack: Value = serde_json::from_str(&read("pack.json").expect("the pack")).expect("JSON");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(pack["version"], version);
    // Palette puts the cluster's name in before Helm sees the values.
    let text = read("values.yaml")
        .expect("values")
        .replace("{{.spectro.system.cluster.name}}", "demo");
    let values: Value = serde_saphyr::from_str(&text).expect("YAML");
    for chart in ["karpenter-crd", "karpenter"] {
        let archive = Value::from(format!("charts/{chart}-{version}.tgz"));
        assert!(pack["charts"].as_array().expect("charts").contains(&archive), "{chart}");
        let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
        std::fs::write(file.path(), values["charts"][chart].to_string()).expect("its values");
        let (folder, path) = (format!("charts/{chart}"), file.path().to_string_lossy());
        let output = helm(&[
            "template",
            chart,
            &folder,
            "--namespace",
            "karpenter",
            "--values",
            &path,
        ]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
