//! What may be written, by the rules of the releases 0.19 to 0.32.

use legacy::Options;
use legacy::admission::problems;
use serde_json::{Value, json};

#[track_caller]
fn check(object: &Value, expected: &[&str]) {
    let found: Vec<String> = problems(object, &Options::default())
        .iter()
        .map(legacy::Refusal::problem)
        .collect();
    assert_eq!(found, expected, "{object}");
}

/// A valid object with other fields in its spec.
fn with(mut object: Value, fields: &Value) -> Value {
    for (field, value) in fields.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

#[track_caller]
fn provisioner(fields: Value, expected: &[&str]) {
    let valid = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
        "spec": {"providerRef": {"name": "default"}},
    });
    check(&with(valid, &fields), expected);
}

#[track_caller]
fn template(fields: Value, expected: &[&str]) {
    let valid = json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "default"},
        "spec": {"subnetSelector": {"team": "a"}, "securityGroupSelector": {"aws-ids": "sg-1,sg-2"}},
    });
    check(&with(valid, &fields), expected);
}

#[test]
fn times_weights_and_limits() {
    provisioner(
        json!({"ttlSecondsAfterEmpty": 0, "ttlSecondsUntilExpired": 0, "weight": 100}),
        &[],
    );
    provisioner(
        json!({"ttlSecondsAfterEmpty": -1}),
        &["spec.ttlSecondsAfterEmpty: may not be negative"],
    );
    provisioner(
        json!({"ttlSecondsAfterEmpty": 30, "consolidation": {"enabled": true}}),
        &["spec.consolidation.enabled: excludes ttlSecondsAfterEmpty; with --force consolidation wins"],
    );
    provisioner(
        json!({"ttlSecondsAfterEmpty": 30, "consolidation": {"enabled": false}}),
        &[],
    );
}

#[test]
fn exactly_one_of_provider_and_reference() {
    provisioner(json!({"provider": {}}), &["spec.providerRef: excludes spec.provider"]);
    let selectors = json!({"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}});
    provisioner(json!({"providerRef": null, "provider": selectors}), &[]);
    provisioner(
        json!({"providerRef": null, "provider": {"subnetSelector": {"a": "b"}, "launchTemplate": "mine", "instanceProfile": "p"}}),
        &["spec.instanceProfile: excludes launchTemplate"],
    );
    provisioner(
        json!({"providerRef": null, "provider": {"subnetSelector": {"a": ""}, "securityGroupSelector": {"a": "b"}, "unknown": 1}}),
        &[
            "spec.provider.unknown: no such field",
            "spec.provider.subnetSelector[a]: is empty; \"*\" means any value",
        ],
    );
}

#[test]
fn neither_provider_nor_reference() {
    let bare = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"}, "spec": {},
    });
    let found = problems(&bare, &Options::default());
    let last = found.last().expect("it is refused");
    assert_eq!(last.problem(), "spec.providerRef: is missing, and so is spec.provider");
}

#[test]
fn labels() {
    provisioner(
        json!({"labels": {"example.com/team": "a", "node.kubernetes.io/x": "y", "kops.k8s.io/x": "y"}}),
        &[],
    );
    provisioner(
        json!({"labels": {"karpenter.sh/provisioner-name": "x"}}),
        &["spec.labels[karpenter.sh/provisioner-name]: label \"karpenter.sh/provisioner-name\" is restricted"],
    );
    provisioner(
        json!({"labels": {"kubernetes.io/hostname": "x"}}),
        &["spec.labels[kubernetes.io/hostname]: the name of a node is not known before it is launched"],
    );
    provisioner(
        json!({"labels": {"karpenter.k8s.aws/other": "x"}}),
        &["spec.labels[karpenter.k8s.aws/other]: label \"karpenter.k8s.aws/other\" is restricted"],
    );
}

#[test]
fn taints() {
    provisioner(
        json!({"taints": [{"key": "a", "effect": "NoSchedule"}], "startupTaints": [{"key": "a", "effect": "NoExecute"}]}),
        &[],
    );
    provisioner(
        json!({"taints": [{"key": "a", "effect": "NoSchedule"}], "startupTaints": [{"key": "a", "effect": "NoSchedule"}]}),
        &["spec.startupTaints[0]: taint a:NoSchedule occurs twice"],
    );
}

#[test]
fn requirements() {
    let one = |key: &str, operator: &str, values: Value| json!({"requirements": [{"key": key, "operator": operator, "values": values}]});
    provisioner(one("karpenter.k8s.aws/instance-cpu", "Gt", json!(["3"])), &[]);
    provisioner(
        one("kubernetes.io/hostname", "In", json!(["x"])),
        &["spec.requirements[0].key: the name of a node is not known before it is launched"],
    );
    provisioner(
        one("example.com/x", "Gte", json!(["1"])),
        &["spec.requirements[0].operator: \"Gte\" is none of In, NotIn, Exists, DoesNotExist, Gt, Lt"],
    );
}

#[test]
fn kubelets() {
    provisioner(
        json!({"kubeletConfiguration": {"maxPods": 10, "systemReserved": {"cpu": 1}}}),
        &[],
    );
    provisioner(
        json!({"kubeletConfiguration": {"containerRuntime": "dockerd"}}),
        &["spec.kubeletConfiguration.containerRuntime: only containerd is left; dockerd ended with Kubernetes 1.24"],
    );
}

#[test]
fn selectors() {
    template(
        json!({"subnetSelector": {"aws-ids": "subnet-1", "team": "a"}}),
        &["spec.subnetSelector[aws-ids]: excludes every other key"],
    );
    template(
        json!({"subnetSelector": {"aws-ids": "vpc-1"}}),
        &["spec.subnetSelector: \"vpc-1\" does not begin with \"subnet-\""],
    );
    template(
        json!({"securityGroupSelector": {"team": ""}}),
        &["spec.securityGroupSelector[team]: is empty; \"*\" means any value"],
    );
    template(
        json!({"amiFamily": "Custom"}),
        &["spec.amiSelector: is missing; Custom has no images of its own"],
    );
}

#[test]
fn a_launch_template_excludes_what_it_says_itself() {
    template(json!({"launchTemplate": "mine", "securityGroupSelector": null}), &[]);
    template(
        json!({"launchTemplate": "mine", "securityGroupSelector": null, "userData": "x"}),
        &["spec.userData: excludes launchTemplate"],
    );
}

#[test]
fn tags() {
    template(json!({"tags": {"team": "a", "Name": ""}}), &[]);
    for key in [
        "karpenter.sh/provisioner-name",
        "karpenter.sh/managed-by",
        "kubernetes.io/cluster/demo",
    ] {
        template(
            json!({"tags": {key: "x"}}),
            &[&format!("spec.tags[{key}]: is set by Karpenter")],
        );
    }
    template(json!({"tags": {"": "x"}}), &["spec.tags: a key is empty"]);
}

#[test]
fn volumes_and_metadata() {
    let volume =
        |size: &str| json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": size}}]});
    template(volume("1G"), &[]);
    template(volume("64T"), &[]);
    template(
        volume("500M"),
        &["spec.blockDeviceMappings[0].ebs.volumeSize: is not between 1G and 64T"],
    );
    template(
        json!({"metadataOptions": {"httpPutResponseHopLimit": 65}}),
        &["spec.metadataOptions.httpPutResponseHopLimit: is not between 1 and 64"],
    );
}

#[test]
fn settings() {
    let settings = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings"}, "data": data});
    check(
        &settings(
            json!({"batchMaxDuration": "10s", "aws.isolatedVPC": "", "aws.tags": "{\"a\": \"b\"}", "other": "x"}),
        ),
        &[],
    );
    check(
        &settings(json!({
            "aws.enablePodENI": "yes", "aws.nodeNameConvention": "mine", "aws.reservedENIs": "-1", "aws.tags": "{",
            "aws.vmMemoryOverheadPercent": "-0.1", "batchIdleDuration": "0s", "batchMaxDuration": "soon",
        })),
        &[
            "data[aws.enablePodENI]: \"yes\" is neither true nor false",
            "data[aws.nodeNameConvention]: \"mine\" is none of ip-name, resource-name",
            "data[aws.reservedENIs]: \"-1\" is not a whole number from zero on",
            "data[aws.tags]: \"{\" is not a JSON object of texts",
            "data[aws.vmMemoryOverheadPercent]: \"-0.1\" is not a number from zero on",
            "data[batchIdleDuration]: \"0s\" is not a duration above zero",
            "data[batchMaxDuration]: \"soon\" is not a duration above zero",
        ],
    );
    check(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another"}, "data": {"batchMaxDuration": "x"}}),
        &[],
    );
}
