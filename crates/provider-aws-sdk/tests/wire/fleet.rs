//! Fleets: every market, what came of them, and the launches that are only tried.

use expect_test::expect;
use provider_aws::{
    error::AwsError,
    ports::{
        Allocation, DryLaunch, FleetAnswer, FleetError, FleetGroup, FleetInstances, FleetOverride, FleetRequest,
        Interface, Market, Tags,
    },
};

use crate::script::{Script, ec2, ec2_error};

fn request(market: Market) -> FleetRequest {
    let wanted = |zone: &str, subnet: &str, price: f64| FleetOverride {
        instance_type: "m5.large".to_owned(),
        subnet: subnet.to_owned(),
        zone: Some(zone.to_owned()),
        image_id: Some("ami-1".to_owned()),
        priority: Some(price),
    };
    FleetRequest {
        dry_run: false,
        context: Some("ctx-1".to_owned()),
        groups: vec![FleetGroup {
            template_name: "karpenter.k8s.aws/1".to_owned(),
            version: None,
            overrides: vec![
                wanted("us-west-2a", "subnet-1", 0.096),
                wanted("us-west-2b", "subnet-2", 4.2e-9),
            ],
        }],
        market,
        client_token: Some("token-1".to_owned()),
        tags: Tags::from([("team".to_owned(), "web".to_owned())]),
        count: 2,
    }
}

const LAUNCHED: &str = "
<fleetId>fleet-1</fleetId>
<fleetInstanceSet>
  <item>
    <launchTemplateAndOverrides>
      <launchTemplateSpecification><launchTemplateId>lt-1</launchTemplateId></launchTemplateSpecification>
      <overrides>
        <instanceType>m5.large</instanceType><subnetId>subnet-1</subnetId><availabilityZone>us-west-2a</availabilityZone>
        <imageId>ami-1</imageId><priority>0.096</priority>
      </overrides>
    </launchTemplateAndOverrides>
    <lifecycle>spot</lifecycle>
    <instanceIds><item>i-1</item><item>i-2</item></instanceIds>
    <instanceType>m5.large</instanceType>
  </item>
  <item>
    <instanceIds><item>i-3</item></instanceIds>
    <instanceType>m6.large</instanceType>
    <availabilityZone>us-west-2c</availabilityZone>
    <subnetId>subnet-3</subnetId>
  </item>
</fleetInstanceSet>
<errorSet>
  <item>
    <errorCode>InsufficientInstanceCapacity</errorCode><errorMessage>none left</errorMessage>
    <launchTemplateAndOverrides>
      <overrides><instanceType>m5.large</instanceType><availabilityZone>us-west-2b</availabilityZone></overrides>
    </launchTemplateAndOverrides>
  </item>
  <item><errorCode>UnfulfillableCapacity</errorCode><errorMessage>too many</errorMessage></item>
</errorSet>";

#[tokio::test]
async fn a_fleet_says_what_it_got_and_what_not() {
    let script = Script::of([ec2("CreateFleet", LAUNCHED)]).await;
    let answer = script
        .aws()
        .ec2
        .create_fleet(&request(Market::Spot(Allocation::Price)))
        .await;
    let expected = FleetAnswer {
        instances: vec![
            FleetInstances {
                ids: vec!["i-1".to_owned(), "i-2".to_owned()],
                instance_type: "m5.large".to_owned(),
                lifecycle: "spot".to_owned(),
                chosen: FleetOverride {
                    instance_type: "m5.large".to_owned(),
                    subnet: "subnet-1".to_owned(),
                    zone: Some("us-west-2a".to_owned()),
                    image_id: Some("ami-1".to_owned()),
                    priority: Some(0.096),
                },
            },
            FleetInstances {
                ids: vec!["i-3".to_owned()],
                instance_type: "m6.large".to_owned(),
                lifecycle: String::new(),
                chosen: FleetOverride {
                    zone: Some("us-west-2c".to_owned()),
                    subnet: "subnet-3".to_owned(),
                    ..FleetOverride::default()
                },
            },
        ],
        errors: vec![
            FleetError {
                error: AwsError::new("InsufficientInstanceCapacity", "none left"),
                failed: Some(FleetOverride {
                    instance_type: "m5.large".to_owned(),
                    zone: Some("us-west-2b".to_owned()),
                    ..FleetOverride::default()
                }),
            },
            FleetError {
                error: AwsError::new("UnfulfillableCapacity", "too many"),
                failed: None,
            },
        ],
    };
    assert_eq!(answer, Ok(expected));
    script.check(&expect![[r#"
        us-west-2/ec2 CreateFleet
          ClientToken=token-1
          Context=ctx-1
          LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=karpenter.k8s.aws/1
          LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=$Latest
          LaunchTemplateConfigs.1.Overrides.1.AvailabilityZone=us-west-2a
          LaunchTemplateConfigs.1.Overrides.1.ImageId=ami-1
          LaunchTemplateConfigs.1.Overrides.1.InstanceType=m5.large
          LaunchTemplateConfigs.1.Overrides.1.Priority=0.096
          LaunchTemplateConfigs.1.Overrides.1.SubnetId=subnet-1
          LaunchTemplateConfigs.1.Overrides.2.AvailabilityZone=us-west-2b
          LaunchTemplateConfigs.1.Overrides.2.ImageId=ami-1
          LaunchTemplateConfigs.1.Overrides.2.InstanceType=m5.large
          LaunchTemplateConfigs.1.Overrides.2.Priority=4.2e-9
          LaunchTemplateConfigs.1.Overrides.2.SubnetId=subnet-2
          SpotOptions.AllocationStrategy=price-capacity-optimized
          TagSpecification.1.ResourceType=instance
          TagSpecification.1.Tag.1.Key=team
          TagSpecification.1.Tag.1.Value=web
          TagSpecification.2.ResourceType=volume
          TagSpecification.2.Tag.1.Key=team
          TagSpecification.2.Tag.1.Value=web
          TagSpecification.3.ResourceType=fleet
          TagSpecification.3.Tag.1.Key=team
          TagSpecification.3.Tag.1.Value=web
          TargetCapacitySpecification.DefaultTargetCapacityType=spot
          TargetCapacitySpecification.TotalTargetCapacity=2
          Type=instant
    "#]]);
}

#[tokio::test]
async fn every_market_has_its_own_options() {
    let table = [
        (
            Market::Spot(Allocation::Priority),
            &["spot", "SpotOptions.AllocationStrategy=capacity-optimized-prioritized"] as &[&str],
        ),
        (
            Market::OnDemand(Allocation::Price),
            &["on-demand", "OnDemandOptions.AllocationStrategy=lowest-price"],
        ),
        (
            Market::OnDemand(Allocation::Priority),
            &["on-demand", "OnDemandOptions.AllocationStrategy=prioritized"],
        ),
        (Market::CapacityBlock, &["capacity-block"]),
        (
            Market::InterruptibleReservation,
            &[
                "reserved-capacity",
                "ReservedCapacityOptions.ReservationType.1=interruptible-capacity-reservation",
            ],
        ),
    ];
    let script = Script::of(table.map(|_| ec2("CreateFleet", "<fleetId>fleet-1</fleetId>"))).await;
    for (market, _) in table {
        let answer = script.aws().ec2.create_fleet(&request(market)).await;
        assert_eq!(answer, Ok(FleetAnswer::default()));
    }
    for (seen, (market, expected)) in script.seen().iter().zip(table) {
        let form = seen.form();
        let target = form
            .get("TargetCapacitySpecification.DefaultTargetCapacityType")
            .cloned();
        let options = form.iter().filter(|(name, _)| name.contains("Options."));
        let options = options.map(|(name, value)| format!("{name}={value}"));
        let found: Vec<String> = target.into_iter().chain(options).collect();
        assert_eq!(found, *expected, "{market:?}");
    }
}

#[tokio::test]
async fn a_dry_run_is_made_once() {
    let script = Script::of([
        ec2_error(503, "RequestLimitExceeded", "slow down"),
        ec2_error(412, "DryRunOperation", "would have succeeded"),
    ])
    .await;
    let trial = FleetRequest {
        dry_run: true,
        context: None,
        client_token: None,
        groups: vec![FleetGroup {
            template_name: "karpenter.k8s.aws/1".to_owned(),
            version: None,
            overrides: vec![FleetOverride {
                instance_type: "m5.large".to_owned(),
                subnet: "subnet-1".to_owned(),
                ..FleetOverride::default()
            }],
        }],
        count: 1,
        ..request(Market::OnDemand(Allocation::Price))
    };
    let ec2 = &script.aws().ec2;
    let refusal = ec2.create_fleet(&trial).await.expect_err("a throttled dry run");
    assert!(refusal.is_throttled(), "{refusal}");
    let refusal = ec2.create_fleet(&trial).await.expect_err("a dry run is never answered");
    assert!(refusal.is_passed_dry_run(), "{refusal}");
    assert_eq!(script.seen().len(), 2);
    assert_eq!(script.seen()[1].form().get("DryRun").map(String::as_str), Some("true"));
}

#[tokio::test]
async fn a_launch_is_tried_once_with_each_interface_in_the_subnet() {
    let script = Script::of([
        ec2_error(503, "RequestLimitExceeded", "slow down"),
        ec2_error(412, "DryRunOperation", "would have succeeded"),
    ])
    .await;
    let trial = DryLaunch {
        template_name: "karpenter.k8s.aws/1".to_owned(),
        instance_type: "m5.large".to_owned(),
        interfaces: vec![
            Interface::default(),
            Interface {
                card: Some(1),
                device: 1,
                kind: Some("efa-only".to_owned()),
                ..Interface::default()
            },
        ],
        subnet: "subnet-1".to_owned(),
        tags: Tags::from([("team".to_owned(), "web".to_owned())]),
    };
    let ec2 = &script.aws().ec2;
    assert!(ec2.try_launch(&trial).await.expect_err("throttled").is_throttled());
    assert!(ec2.try_launch(&trial).await.expect_err("passed").is_passed_dry_run());
    script.check(&expect![[r#"
        us-west-2/ec2 RunInstances
          ClientToken=<made by the SDK>
          DryRun=true
          InstanceType=m5.large
          LaunchTemplate.LaunchTemplateName=karpenter.k8s.aws/1
          LaunchTemplate.Version=$Latest
          MaxCount=1
          MinCount=1
          NetworkInterface.1.DeviceIndex=0
          NetworkInterface.1.SubnetId=subnet-1
          NetworkInterface.2.DeviceIndex=1
          NetworkInterface.2.InterfaceType=efa-only
          NetworkInterface.2.NetworkCardIndex=1
          NetworkInterface.2.SubnetId=subnet-1
          TagSpecification.1.ResourceType=instance
          TagSpecification.1.Tag.1.Key=team
          TagSpecification.1.Tag.1.Value=web
          TagSpecification.2.ResourceType=volume
          TagSpecification.2.Tag.1.Key=team
          TagSpecification.2.Tag.1.Value=web
          TagSpecification.3.ResourceType=network-interface
          TagSpecification.3.Tag.1.Key=team
          TagSpecification.3.Tag.1.Value=web

        us-west-2/ec2 RunInstances
          ClientToken=<made by the SDK>
          DryRun=true
          InstanceType=m5.large
          LaunchTemplate.LaunchTemplateName=karpenter.k8s.aws/1
          LaunchTemplate.Version=$Latest
          MaxCount=1
          MinCount=1
          NetworkInterface.1.DeviceIndex=0
          NetworkInterface.1.SubnetId=subnet-1
          NetworkInterface.2.DeviceIndex=1
          NetworkInterface.2.InterfaceType=efa-only
          NetworkInterface.2.NetworkCardIndex=1
          NetworkInterface.2.SubnetId=subnet-1
          TagSpecification.1.ResourceType=instance
          TagSpecification.1.Tag.1.Key=team
          TagSpecification.1.Tag.1.Value=web
          TagSpecification.2.ResourceType=volume
          TagSpecification.2.Tag.1.Key=team
          TagSpecification.2.Tag.1.Value=web
          TagSpecification.3.ResourceType=network-interface
          TagSpecification.3.Tag.1.Key=team
          TagSpecification.3.Tag.1.Value=web
    "#]]);
}
