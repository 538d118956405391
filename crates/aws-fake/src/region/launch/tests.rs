//! What EC2 refuses before it looks for capacity.

use jiff::SignedDuration;

use super::*;
use crate::region::{Plan, templates::Placement};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn region() -> Region {
    let mut region = Region::new(Plan::new("us-west-2", "demo"), NOW);
    region.timing.propagation = SignedDuration::from_secs(10);
    region
        .create_profile("demo_1", None, Tags::new(), NOW)
        .expect("a profile");
    region
}

/// A launch that passes, a while after the profile was made.
fn good(region: &Region) -> Spec {
    let image = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";
    Spec {
        instance_type: "m5.large".to_owned(),
        image: region.images.parameters.get(image).cloned(),
        subnet: Some(region.network.subnets[0].id.clone()),
        zone: Some("us-west-2a".to_owned()),
        capacity: Capacity::OnDemand,
        template: TemplateData {
            groups: vec![region.network.groups[0].id.clone()],
            profile: Some(ProfileRef::Name("demo_1".to_owned())),
            ..TemplateData::default()
        },
    }
}

#[test]
fn bad_launches_are_refused_in_ec2s_words() {
    let region = region();
    let later = NOW + SignedDuration::from_secs(10);
    assert!(region.check(&good(&region), later).is_ok());
    let text = |word: &str| Some(word.to_owned());
    type Spoil<'a> = &'a dyn Fn(&mut Spec);
    let table: [(&str, Spoil<'_>); 12] = [
        (
            "Unsupported: The instance type 'u-3tb1.56xlarge' is not supported for Spot.",
            &|spec| {
                "u-3tb1.56xlarge".clone_into(&mut spec.instance_type);
                spec.capacity = Capacity::Spot;
            },
        ),
        (
            "InvalidParameterValue: Invalid value 'm99.large' for InstanceType.",
            &|spec| "m99.large".clone_into(&mut spec.instance_type),
        ),
        (
            "MissingParameter: The request must contain the parameter ImageId",
            &|spec| spec.image = None,
        ),
        (
            "InvalidAMIID.Malformed: Invalid id: \"x\" (expecting \"ami-...\")",
            &|spec| spec.image = text("x"),
        ),
        (
            "InvalidAMIID.NotFound: The image id '[ami-0]' does not exist",
            &|spec| spec.image = text("ami-0"),
        ),
        (
            "InvalidSubnetID.NotFound: The subnet ID 'subnet-0' does not exist",
            &|spec| spec.subnet = text("subnet-0"),
        ),
        (
            "MissingInput: No default subnet for this Availability Zone; the request must name a subnet",
            &|spec| spec.subnet = None,
        ),
        (
            "InvalidGroup.NotFound: The security group 'sg-0' does not exist",
            &|spec| spec.template.groups = vec!["sg-0".to_owned()],
        ),
        (
            "InvalidParameterValue: Value (nobody's) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
            &|spec| spec.template.profile = Some(ProfileRef::Name("nobody's".to_owned())),
        ),
        (
            "InvalidPlacementGroup.Unknown: The Placement Group 'pg-0' is unknown.",
            &|spec| {
                spec.template.placement = Placement {
                    group_id: text("pg-0"),
                    ..Placement::default()
                }
            },
        ),
        (
            "Unsupported: Your requested instance type (h1.2xlarge) is not supported in your requested Availability Zone (us-west-2a).",
            &|spec| "h1.2xlarge".clone_into(&mut spec.instance_type),
        ),
        (
            "InvalidParameterValue: The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' \
             of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
            &|spec| "m6g.large".clone_into(&mut spec.instance_type),
        ),
    ];
    for (expected, spoil) in table {
        let mut spec = good(&region);
        spoil(&mut spec);
        let refused = region.check(&spec, later).expect_err(expected);
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn a_new_profile_is_not_known_at_once() {
    let region = region();
    let early = region
        .check(&good(&region), NOW)
        .expect_err("a profile that IAM has not told of");
    assert!(early.message.contains("Invalid IAM Instance Profile name"), "{early}");
}
