//! The policy that users of upstream have, at the calls that a launch makes.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    fake::{Outcome, State},
    iam::Policy,
    region::Plan,
    wire::Call,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const OWNED: &str = "kubernetes.io/cluster/demo";
/// The tags that make the policy let a request through.
const TAGS: [(&str, &str); 3] = [
    (OWNED, "owned"),
    ("eks:eks-cluster-name", "demo"),
    ("karpenter.sh/nodepool", "default"),
];

/// The grants of Karpenter's CloudFormation stack, for a cluster named demo.
fn policy() -> Policy {
    let ec2 = |kinds: &[&str]| -> Vec<String> {
        kinds
            .iter()
            .map(|kind| format!("arn:aws:ec2:us-west-2:*:{kind}/*"))
            .collect()
    };
    let made = ec2(&[
        "fleet",
        "instance",
        "volume",
        "network-interface",
        "launch-template",
        "spot-instances-request",
    ]);
    let request = |kind: &str| {
        json!({
            "StringEquals": {format!("aws:{kind}/{OWNED}"): "owned"},
            "StringLike": {format!("aws:{kind}/karpenter.sh/nodepool"): "*"},
        })
    };
    let mut at_creation = request("RequestTag");
    at_creation["StringEquals"]["ec2:CreateAction"] = json!(["RunInstances", "CreateFleet", "CreateLaunchTemplate"]);
    let mut afterwards = request("ResourceTag");
    afterwards["ForAllValues:StringEquals"] =
        json!({"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]});
    let launch = ["ec2:RunInstances", "ec2:CreateFleet"];
    let statement = |action: Value, resource: Value, condition: Value| json!({"Effect": "Allow", "Action": action, "Resource": resource, "Condition": condition});
    let places = ec2(&[
        "image",
        "snapshot",
        "security-group",
        "subnet",
        "capacity-reservation",
        "placement-group",
    ]);
    let document = json!({"Statement": [
        statement(json!(launch), json!(places), json!({})),
        statement(json!(launch), json!(ec2(&["launch-template"])), request("ResourceTag")),
        statement(json!(["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"]), json!(made), request("RequestTag")),
        statement(json!("ec2:CreateTags"), json!(made), at_creation),
        statement(json!("ec2:CreateTags"), json!(ec2(&["instance"])), afterwards),
        statement(
            json!(["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"]),
            json!(ec2(&["instance", "launch-template"])),
            request("ResourceTag"),
        ),
        statement(json!("ec2:Describe*"), json!("*"), json!({"StringEquals": {"aws:RequestedRegion": "us-west-2"}})),
        statement(
            json!("iam:PassRole"),
            json!("arn:aws:iam::123456789012:role/KarpenterNodeRole-demo"),
            json!({"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}}),
        ),
        statement(
            json!(["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"]),
            json!("arn:aws:iam::123456789012:instance-profile/*"),
            json!({"StringEquals": {format!("aws:ResourceTag/{OWNED}"): "owned"}}),
        ),
        statement(
            json!(["iam:CreateInstanceProfile", "iam:TagInstanceProfile"]),
            json!("arn:aws:iam::123456789012:instance-profile/*"),
            json!({"StringEquals": {format!("aws:RequestTag/{OWNED}"): "owned"}}),
        ),
    ]});
    Policy::parse(&document).expect("a policy")
}

/// An account under that policy, and the codes of its refusals.
struct Account(State);

impl Account {
    fn new() -> Self {
        let mut state = State::new(Plan::new("us-west-2", "demo"), NOW);
        state.policy = Some(policy());
        Self(state)
    }

    fn call(&mut self, version: &str, action: &str, parameters: &[(&str, &str)]) -> Result<String, String> {
        let mut body = form_urlencoded::Serializer::new(format!("Version={version}"));
        body.append_pair("Action", action);
        body.extend_pairs(parameters);
        let body = body.finish();
        let uri = "/".parse().expect("a URI");
        let call = Call::parse(&Method::POST, &uri, &HeaderMap::new(), body.as_bytes()).expect("a call");
        let Outcome::Answered(answer) = self.0.answer(&call, false, NOW) else {
            unreachable!("only the queue lets callers wait")
        };
        let code = answer
            .body
            .split_once("<Code>")
            .and_then(|(_, rest)| rest.split_once("</Code>"));
        match code {
            Some((code, _)) => Err(code.to_owned()),
            None => Ok(answer.body),
        }
    }

    fn ec2(&mut self, action: &str, parameters: &[(&str, &str)]) -> Result<String, String> {
        self.call("2016-11-15", action, parameters)
    }

    fn iam(&mut self, action: &str, parameters: &[(&str, &str)]) -> Result<String, String> {
        self.call("2010-05-08", action, parameters)
    }
}

/// Tag specifications below a prefix, for these kinds.
fn tagged(prefix: &str, kinds: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        let spec = format!("{prefix}TagSpecification.{}", place + 1);
        all.push((format!("{spec}.ResourceType"), (*kind).to_owned()));
        for (number, (key, value)) in TAGS.iter().enumerate() {
            all.push((format!("{spec}.Tag.{}.Key", number + 1), (*key).to_owned()));
            all.push((format!("{spec}.Tag.{}.Value", number + 1), (*value).to_owned()));
        }
    }
    all
}

fn borrowed(all: &[(String, String)]) -> Vec<(&str, &str)> {
    all.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn upstreams_policy_lets_a_tagged_launch_through_and_no_other() {
    let mut account = Account::new();
    let image = account.0.region.images.parameters
        ["/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id"]
        .clone();
    let (group, subnet) = (
        account.0.region.network.groups[0].id.clone(),
        account.0.region.network.subnets[0].id.clone(),
    );
    let user_data = STANDARD.encode("#!/bin/bash");
    let profile = [
        ("InstanceProfileName", "demo_1"),
        ("Path", "/karpenter/us-west-2/demo/uid/"),
        ("Tags.member.1.Key", OWNED),
        ("Tags.member.1.Value", "owned"),
    ];
    assert!(account.iam("CreateInstanceProfile", &profile).is_ok());
    assert_eq!(
        account.iam("CreateInstanceProfile", &profile[..2]),
        Err("AccessDenied".to_owned())
    );
    let role = [
        ("InstanceProfileName", "demo_1"),
        ("RoleName", "KarpenterNodeRole-demo"),
    ];
    assert!(account.iam("AddRoleToInstanceProfile", &role).is_ok());
    let other_role = [("InstanceProfileName", "demo_1"), ("RoleName", "Admin")];
    assert_eq!(
        account.iam("AddRoleToInstanceProfile", &other_role),
        Err("AccessDenied".to_owned())
    );

    let data = [
        ("LaunchTemplateName", "karpenter.k8s.aws/1"),
        ("LaunchTemplateData.ImageId", &image),
        ("LaunchTemplateData.UserData", &user_data),
        ("LaunchTemplateData.IamInstanceProfile.Name", "demo_1"),
        ("LaunchTemplateData.NetworkInterface.1.DeviceIndex", "0"),
        ("LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1", &group),
    ];
    assert_eq!(
        account.ec2("CreateLaunchTemplate", &data),
        Err("UnauthorizedOperation".to_owned())
    );
    let inner = tagged("LaunchTemplateData.", &["network-interface", "spot-instances-request"]);
    let outer = tagged("", &["launch-template"]);
    let all: Vec<_> = data
        .into_iter()
        .chain(borrowed(&inner))
        .chain(borrowed(&outer))
        .collect();
    let made = account.ec2("CreateLaunchTemplate", &all);
    assert!(made.is_ok(), "{made:?}");

    let fleet = [
        ("Type", "instant"),
        (
            "LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName",
            "karpenter.k8s.aws/1",
        ),
        ("LaunchTemplateConfigs.1.Overrides.1.InstanceType", "m5.large"),
        ("LaunchTemplateConfigs.1.Overrides.1.SubnetId", &subnet),
        ("TargetCapacitySpecification.TotalTargetCapacity", "1"),
        ("TargetCapacitySpecification.DefaultTargetCapacityType", "spot"),
    ];
    assert_eq!(
        account.ec2("CreateFleet", &fleet),
        Err("UnauthorizedOperation".to_owned())
    );
    let some = tagged("", &["instance", "fleet"]);
    let without_volume: Vec<_> = fleet.into_iter().chain(borrowed(&some)).collect();
    assert_eq!(
        account.ec2("CreateFleet", &without_volume),
        Err("UnauthorizedOperation".to_owned())
    );
    let every = tagged("", &["instance", "volume", "fleet"]);
    let all: Vec<_> = fleet.into_iter().chain(borrowed(&every)).collect();
    let launched = account.ec2("CreateFleet", &all);
    assert!(
        launched.as_ref().is_ok_and(|body| body.contains("<instanceIds>")),
        "{launched:?}"
    );

    let id = account.0.region.instances.keys().next().expect("an instance").clone();
    let name = [
        ("ResourceId.1", id.as_str()),
        ("Tag.1.Key", "Name"),
        ("Tag.1.Value", "node"),
    ];
    assert!(account.ec2("CreateTags", &name).is_ok());
    let other = [
        ("ResourceId.1", id.as_str()),
        ("Tag.1.Key", "team"),
        ("Tag.1.Value", "web"),
    ];
    assert_eq!(
        account.ec2("CreateTags", &other),
        Err("UnauthorizedOperation".to_owned())
    );
    assert!(account.ec2("TerminateInstances", &[("InstanceId.1", &id)]).is_ok());
    assert!(
        account
            .ec2("DeleteLaunchTemplate", &[("LaunchTemplateName", "karpenter.k8s.aws/1")])
            .is_ok()
    );
    assert!(account.ec2("DescribeSubnets", &[]).is_ok());
    assert_eq!(account.iam("ListInstanceProfiles", &[]), Err("AccessDenied".to_owned()));
}
