use std::time::Duration;

use api::{
    aws::{
        AmiSelectorTerm, CapacityReservationSelectorTerm, PlacementGroupSelector, SecurityGroupSelectorTerm,
        SubnetSelectorTerm,
    },
    conditions,
};

use super::*;
use crate::{
    discovery::Parameters,
    ports::{ImageInfo, PlacementGroupInfo, ReservationInfo},
    testing::{
        fake::FakeAws,
        samples::{self, REGION},
    },
};

const CLUSTER: Version = Version { major: 1, minor: 32 };

fn resolver(aws: &FakeAws) -> Resolver {
    let (ports, clock) = (aws.ports(), aws.clock());
    let minute = Duration::from_secs(60);
    let parameters = Parameters::new(ports.ssm, clock.clone());
    Resolver {
        images: Images::new(ports.ec2.clone(), parameters, clock.clone(), minute),
        subnets: Arc::new(Subnets::new(ports.ec2.clone(), clock.clone(), minute)),
        security_groups: SecurityGroups::new(ports.ec2.clone(), clock.clone()),
        reservations: Arc::new(Reservations::new(ports.ec2.clone(), clock.clone())),
        placement_groups: Arc::new(PlacementGroups::new(ports.ec2, clock.clone())),
        profiles: Arc::new(Profiles::new(ports.iam, clock.clone(), REGION, "demo")),
        clock,
        options: Arc::new(samples::options()),
        region: REGION.to_owned(),
        reserved_capacity: true,
    }
}

fn region() -> FakeAws {
    let aws = FakeAws::new();
    aws.add_subnet("subnet-1", "us-west-2a", 10, &[("team", "a")]);
    aws.add_group("sg-1", "nodes", &[("team", "a")]);
    let image = ImageInfo {
        id: "ami-1".to_owned(),
        name: "image".to_owned(),
        architecture: "x86_64".to_owned(),
        created: "2024-01-01T00:00:00Z".to_owned(),
        deprecated_at: None,
    };
    aws.add_image(image, &[]);
    aws
}

/// A class whose selectors find what [`region`] has, and whose status is empty.
fn class() -> EC2NodeClass {
    let team = || Some([("team".to_owned(), "a".to_owned())].into());
    let mut class = samples::class();
    class.status = None;
    class.spec.ami_selector_terms = vec![AmiSelectorTerm {
        id: Some("ami-1".to_owned()),
        ..AmiSelectorTerm::default()
    }];
    class.spec.subnet_selector_terms = vec![SubnetSelectorTerm { tags: team(), id: None }];
    class.spec.security_group_selector_terms = vec![SecurityGroupSelectorTerm {
        tags: team(),
        ..SecurityGroupSelectorTerm::default()
    }];
    class
}

/// `reason` where a condition is not True, `True` otherwise.
fn shown(resolution: &Resolution, type_: &str) -> String {
    let list = resolution.status.conditions.as_deref().unwrap_or_default();
    match conditions::find(list, type_) {
        Some(condition) if condition.status == "True" => "True".to_owned(),
        Some(condition) => condition.reason.clone(),
        None => "absent".to_owned(),
    }
}

/// AW24.4.9, AW24.4.3
#[tokio::test(start_paused = true)]
async fn a_class_whose_selectors_find_something_is_ready_but_for_its_validation() {
    let aws = region();
    let resolution = resolver(&aws).resolve(&class(), CLUSTER).await;
    assert!(resolution.errors.is_empty(), "{:?}", resolution.errors);
    for type_ in EC2NodeClass::DEPENDENTS
        .iter()
        .filter(|type_| **type_ != condition::VALIDATION_SUCCEEDED)
    {
        assert_eq!(shown(&resolution, type_), "True", "{type_}");
    }
    assert_eq!(shown(&resolution, condition::CAPACITY_RESERVATIONS_READY), "True");
    let status = &resolution.status;
    assert_eq!(status.conditions.as_ref().unwrap().len(), 8);
    let subnet = &status.subnets.as_ref().unwrap()[0];
    assert_eq!(
        (subnet.id.as_str(), subnet.zone_id.as_deref()),
        ("subnet-1", Some("id-us-west-2a"))
    );
    assert!(
        status
            .instance_profile
            .as_ref()
            .is_some_and(|name| name.starts_with("demo_"))
    );
    assert_eq!(resolution.again_in, SOON);
    let without = Resolver {
        reserved_capacity: false,
        ..resolver(&aws)
    };
    let status = without.resolve(&class(), CLUSTER).await.status;
    assert_eq!(status.conditions.unwrap().len(), 7);
}

/// AW24.3.10, AW24.4.4, AW24.4.5, AW24.4.11
#[tokio::test(start_paused = true)]
async fn what_finds_nothing_is_cleared_and_named() {
    let aws = region();
    let mut class = class();
    class.status = samples::class().status;
    let none = || Some([("team".to_owned(), "none".to_owned())].into());
    class.spec.ami_selector_terms[0].id = Some("ami-9".to_owned());
    class.spec.subnet_selector_terms[0].tags = none();
    class.spec.security_group_selector_terms[0].tags = none();
    class.spec.placement_group_selector = Some(PlacementGroupSelector {
        name: Some("missing".to_owned()),
        id: None,
    });
    let resolution = resolver(&aws).resolve(&class, CLUSTER).await;
    assert!(resolution.errors.is_empty());
    let status = &resolution.status;
    assert!(status.amis.is_none() && status.subnets.is_none() && status.security_groups.is_none());
    assert_eq!(shown(&resolution, condition::AMIS_READY), "AMINotFound");
    assert_eq!(shown(&resolution, condition::SUBNETS_READY), "SubnetsNotFound");
    assert_eq!(
        shown(&resolution, condition::SECURITY_GROUPS_READY),
        "SecurityGroupsNotFound"
    );
    assert_eq!(
        shown(&resolution, condition::PLACEMENT_GROUP_READY),
        "PlacementGroupNotFound"
    );
    assert_eq!(shown(&resolution, conditions::READY), "UnhealthyDependents");
    aws.add_placement_group(PlacementGroupInfo {
        id: "pg-1".to_owned(),
        name: "missing".to_owned(),
        ..PlacementGroupInfo::default()
    });
    tokio::time::advance(Duration::from_secs(61)).await;
    let found = resolver(&aws).resolve(&class, CLUSTER).await;
    assert_eq!(shown(&found, condition::PLACEMENT_GROUP_READY), "True");
}

/// AW24.3.6, AW24.3.9, AW24.5.7
#[tokio::test(start_paused = true)]
async fn failed_requests_leave_the_status_as_it_was() {
    let aws = region();
    let mut class = class();
    class.status = samples::class().status;
    for action in [
        "DescribeImages",
        "DescribeSubnets",
        "DescribeSecurityGroups",
        "GetInstanceProfile",
    ] {
        aws.fail(action, AwsError::new("InternalError", "x").with_status(500));
    }
    let resolution = resolver(&aws).resolve(&class, CLUSTER).await;
    assert_eq!(resolution.errors.len(), 4);
    assert!(resolution.errors.iter().all(|error| !error.is_terminal()));
    let (before, after) = (class.status.as_ref().unwrap(), &resolution.status);
    assert_eq!((&before.amis, &before.subnets), (&after.amis, &after.subnets));
    assert_eq!(before.instance_profile, after.instance_profile);
    assert_eq!(shown(&resolution, condition::AMIS_READY), "AwaitingReconciliation");

    let mut unsupported = self::class();
    unsupported.spec.ami_selector_terms = vec![AmiSelectorTerm {
        alias: Some("al2@latest".to_owned()),
        ..AmiSelectorTerm::default()
    }];
    let newer = Version { major: 1, minor: 33 };
    let resolution = resolver(&region()).resolve(&unsupported, newer).await;
    assert_eq!(shown(&resolution, condition::AMIS_READY), "UnsupportedAlias");
    assert!(resolution.errors[0].is_terminal());
}

/// AW24.4.7, AW24.4.8
#[tokio::test(start_paused = true)]
async fn reservations_are_looked_at_again_when_the_first_ends() {
    let aws = region();
    let reservation = |id: &str, kind: &str, seconds: i64| ReservationInfo {
        id: id.to_owned(),
        zone: "us-west-2a".to_owned(),
        match_criteria: "open".to_owned(),
        reservation_type: kind.to_owned(),
        ends: aws.now().checked_add(SignedDuration::from_secs(seconds)).ok(),
        ..ReservationInfo::default()
    };
    aws.add_reservation(reservation("cr-2", "default", 30), &[("team", "a")]);
    aws.add_reservation(reservation("cr-1", "capacity-block", 6000), &[("team", "a")]);
    aws.add_reservation(reservation("cr-3", "unheard-of", 6000), &[("team", "a")]);
    let mut class = class();
    class.spec.capacity_reservation_selector_terms = Some(vec![CapacityReservationSelectorTerm {
        tags: Some([("team".to_owned(), "a".to_owned())].into()),
        ..CapacityReservationSelectorTerm::default()
    }]);
    let resolution = resolver(&aws).resolve(&class, CLUSTER).await;
    let ids: Vec<&str> = resolution
        .status
        .capacity_reservations
        .iter()
        .flatten()
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!(ids, ["cr-1", "cr-2"], "what cannot be read is left out");
    assert_eq!(resolution.again_in, SignedDuration::from_secs(30));
}
