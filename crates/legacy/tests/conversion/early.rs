//! v1alpha3 and v1alpha4.

use legacy::{Change, Options, Reason};
use serde_json::json;

use crate::fixtures::{object, reasons, refused, to_v1, warns};

const ALPHA3: &str = "apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: default}
spec:
  cluster: {name: demo, endpoint: 'https://example.com', caBundle: abc}
  zones: [us-west-2a]
  instanceTypes: [m5.large]
  ttlSecondsAfterEmpty: 30
  labels:
    team: a
    node.k8s.aws/capacity-type: spot
    node.k8s.aws/subnet-name: private
    node.k8s.aws/security-group-tag-key: nodes
";

/// LE18.16
#[test]
fn cloud_options_that_were_labels_become_selectors_and_requirements() {
    let converted = to_v1(ALPHA3, &Options::default());
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(
        pool["spec"]["template"]["spec"]["requirements"],
        json!([
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        ])
    );
    assert_eq!(pool["spec"]["template"]["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "30s");
    let class = &object(&converted, "EC2NodeClass", "default")["spec"];
    assert_eq!(
        class["subnetSelectorTerms"],
        json!([{"tags": {"kubernetes.io/cluster/demo": "*", "Name": "private"}}])
    );
    assert_eq!(
        class["securityGroupSelectorTerms"],
        json!([{"tags": {"kubernetes.io/cluster/demo": "*", "nodes": "*"}}])
    );
    assert_eq!(class["instanceProfile"], "KarpenterNodeInstanceProfile-demo");
    assert_eq!(class["amiSelectorTerms"], json!([{"alias": "al2@latest"}]));
    let value = "https://example.com".to_owned();
    assert!(warns(
        &converted,
        &Change::SettingNeeded {
            setting: "CLUSTER_ENDPOINT",
            value
        }
    ));
}

#[test]
fn instance_types_stay_unconstrained_and_defaults_can_be_ignored() {
    let bare = "apiVersion: karpenter.sh/v1alpha3\nkind: Provisioner\nmetadata: {name: x}\nspec: {cluster: {name: demo, endpoint: e}, architecture: arm64}";
    let keys = |options: &Options| -> Vec<String> {
        let converted = to_v1(bare, options);
        let requirements = object(&converted, "NodePool", "x")["spec"]["template"]["spec"]["requirements"].clone();
        let requirements = requirements.as_array().expect("a list").clone();
        requirements
            .iter()
            .map(|item| item["key"].as_str().expect("a key").to_owned())
            .collect()
    };
    assert_eq!(
        keys(&Options::default()),
        ["kubernetes.io/arch", "kubernetes.io/os", "karpenter.sh/capacity-type"]
    );
    assert_eq!(
        keys(&Options {
            ignore_defaults: true,
            ..Options::default()
        }),
        ["kubernetes.io/arch"]
    );
    let bottlerocket = Options {
        ami_family: Some("Bottlerocket".to_owned()),
        ..Options::default()
    };
    let converted = to_v1(bare, &bottlerocket);
    let class = &object(&converted, "EC2NodeClass", "x")["spec"];
    assert_eq!(class["amiSelectorTerms"], json!([{"alias": "bottlerocket@latest"}]));
}

#[test]
fn one_cluster_has_one_name() {
    let options = Options {
        cluster_name: Some("other".to_owned()),
        ..Options::default()
    };
    let (found, given) = ("demo".to_owned(), "other".to_owned());
    assert_eq!(reasons(ALPHA3, &options), [Reason::ClusterNameDiffers { found, given }]);
    let nameless = ALPHA3.replace("name: demo, ", "");
    assert_eq!(reasons(&nameless, &Options::default()), [Reason::ClusterNameNeeded]);
    to_v1(&nameless, &options);
}

#[test]
fn an_option_that_never_was_is_refused() {
    let odd = ALPHA3.replace("node.k8s.aws/subnet-name", "node.k8s.aws/moon");
    assert!(refused(&odd, &Options::default())[0].contains("no such option"));
    let odd = ALPHA3.replace(
        "node.k8s.aws/subnet-name: private",
        "node.k8s.aws/launch-template-version: '1'",
    );
    assert!(refused(&odd, &Options::default())[0].contains("without a launch template"));
}

#[test]
fn v1alpha4_has_plurals_and_a_provider() {
    let written = "apiVersion: karpenter.sh/v1alpha4
kind: Provisioner
metadata: {name: default}
spec:
  architectures: [arm64, amd64]
  operatingSystems: [linux]
  provider:
    cluster: {name: demo, endpoint: 'https://example.com'}
    instanceProfile: nodes
    capacityTypes: [spot, on-demand]
    securityGroupSelector: {Name: a}
    tags: {team: a}
";
    let converted = to_v1(written, &Options::default());
    let pool = object(&converted, "NodePool", "default");
    assert_eq!(
        pool["spec"]["template"]["spec"]["requirements"],
        json!([
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
        ])
    );
    let class = &object(&converted, "EC2NodeClass", "default")["spec"];
    assert_eq!(
        class["subnetSelectorTerms"],
        json!([{"tags": {"kubernetes.io/cluster/demo": "*"}}])
    );
    assert_eq!(class["securityGroupSelectorTerms"], json!([{"tags": {"Name": "a"}}]));
    assert_eq!(class["instanceProfile"], "nodes");
    let empty = written.replace("[arm64, amd64]", "[]");
    assert!(refused(&empty, &Options::default())[0].contains("is empty"));
}
