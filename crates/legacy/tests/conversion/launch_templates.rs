//! Launch templates that users made: taken apart, or kept by name.

use legacy::{LaunchTemplates, Options, Reason};
use serde_json::json;

use crate::fixtures::{object, reasons, refused, to_v1};

const TEMPLATE: &str = "apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: default}
spec: {subnetSelector: {a: b}, launchTemplate: mine, tags: {team: a}}
---
";

const DESCRIBED: &str = r#"
LaunchTemplateVersions:
- LaunchTemplateId: lt-1
  LaunchTemplateName: mine
  VersionNumber: 1
  DefaultVersion: false
  LaunchTemplateData: {ImageId: ami-old}
- LaunchTemplateId: lt-1
  LaunchTemplateName: mine
  VersionNumber: 2
  DefaultVersion: true
  LaunchTemplateData:
    ImageId: ami-1
    UserData: IyEvYmluL2Jhc2gKZWNobyBoaQo=
    IamInstanceProfile: {Arn: 'arn:aws:iam::123456789012:instance-profile/path/nodes'}
    SecurityGroupIds: [sg-1]
    NetworkInterfaces: [{Groups: [sg-1, sg-2]}]
    BlockDeviceMappings: [{DeviceName: /dev/xvda, Ebs: {VolumeSize: 50, VolumeType: gp3, Encrypted: true}}]
    MetadataOptions: {HttpTokens: required}
    Monitoring: {Enabled: true}
"#;

fn options(launch_templates: LaunchTemplates) -> Options {
    Options {
        launch_templates,
        ..Options::default()
    }
}

#[test]
fn a_resolved_template_moves_into_the_class() {
    let converted = to_v1(&format!("{TEMPLATE}{DESCRIBED}"), &options(LaunchTemplates::Resolve));
    assert_eq!(converted.outputs.len(), 1, "the description is used up");
    let class = object(&converted, "EC2NodeClass", "default");
    assert_eq!(
        class["spec"],
        json!({
            "amiFamily": "Custom",
            "amiSelectorTerms": [{"id": "ami-1"}],
            "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "volumeType": "gp3", "encrypted": true}}],
            "detailedMonitoring": true,
            "instanceProfile": "nodes",
            "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "required"},
            "securityGroupSelectorTerms": [{"id": "sg-1"}, {"id": "sg-2"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}],
            "tags": {"team": "a"},
            "userData": "#!/bin/bash\necho hi\n",
        })
    );
}

#[test]
fn a_kept_template_is_named_on_a_class_that_v1_admits() {
    let converted = to_v1(&format!("{TEMPLATE}{DESCRIBED}"), &options(LaunchTemplates::Keep));
    let class = object(&converted, "EC2NodeClass", "default");
    let key = "compatibility.karpenter.k8s.aws/launch-template";
    assert_eq!(class["metadata"]["annotations"][key], "mine");
    assert_eq!(class["spec"]["amiSelectorTerms"], json!([{"id": "ami-1"}]));
    assert_eq!(class["spec"].get("userData"), None);
}

#[test]
fn the_earliest_generation_names_templates_by_id_and_version() {
    let early = "apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: default}
spec:
  cluster: {name: demo, endpoint: e}
  labels: {node.k8s.aws/launch-template-id: lt-1, node.k8s.aws/launch-template-version: '1'}
---
";
    let converted = to_v1(&format!("{early}{DESCRIBED}"), &options(LaunchTemplates::Keep));
    let class = object(&converted, "EC2NodeClass", "default");
    let key = "compatibility.karpenter.k8s.aws/launch-template";
    assert_eq!(class["metadata"]["annotations"][key], "mine:1");
    assert_eq!(class["spec"]["amiSelectorTerms"], json!([{"id": "ami-old"}]));
}

#[test]
fn a_template_that_is_not_described_or_not_enough_is_refused() {
    let name = "mine".to_owned();
    let undescribed = reasons(TEMPLATE, &options(LaunchTemplates::Resolve));
    assert_eq!(undescribed, [Reason::LaunchTemplateUnknown { name }]);
    let empty = "LaunchTemplateVersions: [{LaunchTemplateName: mine, DefaultVersion: true, LaunchTemplateData: {UserData: '%'}}]";
    let told = refused(&format!("{TEMPLATE}{empty}"), &options(LaunchTemplates::Resolve));
    for (told, part) in told
        .iter()
        .zip(["names no image", "names no security groups", "not base64"])
    {
        assert!(told.contains(part), "{told}");
    }
    let odd = "LaunchTemplateVersions: [{VersionNumber: many}]";
    assert!(refused(odd, &Options::default())[0].contains("LaunchTemplateVersions"));
}

#[test]
fn what_a_template_decides_is_not_said_beside_it() {
    let beside = TEMPLATE.replace(
        "launchTemplate: mine",
        "launchTemplate: mine, amiFamily: AL2, userData: x",
    );
    let told = refused(&format!("{beside}{DESCRIBED}"), &options(LaunchTemplates::Resolve));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().all(|told| told.contains("excludes launchTemplate")),
        "{told:?}"
    );
}
