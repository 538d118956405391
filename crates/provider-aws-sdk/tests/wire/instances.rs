//! Instances: listed, examined, tagged, ended.

use expect_test::expect;
use provider_aws::ports::{
    EventInfo, Filter, InstanceInfo, InstanceQuery, InstanceStatusInfo, StateChange, StatusDetail, StatusQuery, Tags,
};

use crate::script::{Script, ec2};

const RESERVATIONS: &str = "
<reservationSet>
  <item><instancesSet><item>
    <instanceId>i-1</instanceId><privateDnsName>ip-10-0-0-1.us-west-2.compute.internal</privateDnsName>
    <imageId>ami-1</imageId>
    <instanceState><code>16</code><name>running</name></instanceState>
    <instanceType>p5.48xlarge</instanceType>
    <launchTime>2026-11-16T05:00:00.000Z</launchTime>
    <placement>
      <availabilityZone>us-west-2a</availabilityZone><tenancy>dedicated</tenancy>
      <groupId>pg-1</groupId><partitionNumber>2</partitionNumber>
    </placement>
    <subnetId>subnet-1</subnetId>
    <groupSet><item><groupId>sg-1</groupId></item><item><groupId>sg-2</groupId></item></groupSet>
    <tagSet><item><key>Name</key><value>node-1</value></item><item><key>empty</key><value/></item></tagSet>
    <spotInstanceRequestId>sir-1</spotInstanceRequestId>
    <instanceLifecycle>interruptible-capacity-reservation</instanceLifecycle>
    <capacityReservationId>cr-1</capacityReservationId>
    <capacityReservationSpecification>
      <capacityReservationPreference>capacity-reservations-only</capacityReservationPreference>
    </capacityReservationSpecification>
    <networkInterfaceSet>
      <item><interfaceType>efa</interfaceType></item><item><interfaceType>efa-only</interfaceType></item>
    </networkInterfaceSet>
  </item></instancesSet></item>
  <item><instancesSet><item>
    <instanceId>i-2</instanceId>
    <placement><partitionNumber>0</partitionNumber><groupId/></placement>
  </item></instancesSet></item>
</reservationSet>";

#[tokio::test]
async fn instances_are_listed_by_id_without_and_by_filter_with_a_page_size() {
    let script = Script::of([
        ec2("DescribeInstances", RESERVATIONS),
        ec2("DescribeInstances", "<reservationSet/>"),
    ])
    .await;
    let ec2 = &script.aws().ec2;
    let states = Filter::new("instance-state-name", ["pending", "running"]);
    let by_id = InstanceQuery {
        ids: vec!["i-1".to_owned(), "i-2".to_owned()],
        filters: vec![states.clone()],
    };
    let found = ec2.instances(&by_id).await.expect("one page");
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let first = InstanceInfo {
        id: "i-1".to_owned(),
        state: "running".to_owned(),
        instance_type: "p5.48xlarge".to_owned(),
        zone: "us-west-2a".to_owned(),
        image_id: "ami-1".to_owned(),
        private_dns: "ip-10-0-0-1.us-west-2.compute.internal".to_owned(),
        subnet: "subnet-1".to_owned(),
        security_groups: strings(&["sg-1", "sg-2"]),
        tags: Tags::from([
            ("Name".to_owned(), "node-1".to_owned()),
            ("empty".to_owned(), String::new()),
        ]),
        launched: Some("2026-11-16T05:00:00Z".parse().expect("a time")),
        spot_request: Some("sir-1".to_owned()),
        lifecycle: "interruptible-capacity-reservation".to_owned(),
        reservation: Some("cr-1".to_owned()),
        reservation_preference: "capacity-reservations-only".to_owned(),
        tenancy: "dedicated".to_owned(),
        placement_group: Some("pg-1".to_owned()),
        partition: Some(2),
        interfaces: strings(&["efa", "efa-only"]),
    };
    let second = InstanceInfo {
        id: "i-2".to_owned(),
        ..InstanceInfo::default()
    };
    assert_eq!(found, [first, second]);
    let by_filter = InstanceQuery {
        ids: Vec::new(),
        filters: vec![Filter::tag("karpenter.sh/nodepool", "*"), states],
    };
    assert_eq!(ec2.instances(&by_filter).await, Ok(Vec::new()));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeInstances
          Filter.1.Name=instance-state-name
          Filter.1.Value.1=pending
          Filter.1.Value.2=running
          InstanceId.1=i-1
          InstanceId.2=i-2

        us-west-2/ec2 DescribeInstances
          Filter.1.Name=tag-key
          Filter.1.Value.1=karpenter.sh/nodepool
          Filter.2.Name=instance-state-name
          Filter.2.Value.1=pending
          Filter.2.Value.2=running
          MaxResults=1000
    "#]]);
}

#[tokio::test]
async fn health_is_told_with_its_details_and_events() {
    let statuses = "<instanceStatusSet><item><instanceId>i-1</instanceId>\
        <eventsSet><item><code>instance-retirement</code></item></eventsSet>\
        <instanceStatus><status>impaired</status><details><item><name>reachability</name><status>failed</status>\
        <impairedSince>2026-11-16T05:00:00.000Z</impairedSince></item></details></instanceStatus>\
        <systemStatus><status>ok</status><details><item><name>reachability</name><status>passed</status></item></details></systemStatus>\
        </item></instanceStatusSet>";
    let script = Script::of([ec2("DescribeInstanceStatus", statuses)]).await;
    let query = StatusQuery {
        filters: vec![Filter::new("instance-status.status", ["impaired"])],
    };
    let found = script.aws().ec2.instance_status(&query).await;
    let status = InstanceStatusInfo {
        id: "i-1".to_owned(),
        instance: vec![StatusDetail {
            status: "failed".to_owned(),
            impaired_since: Some("2026-11-16T05:00:00Z".parse().expect("a time")),
        }],
        system: vec![StatusDetail {
            status: "passed".to_owned(),
            impaired_since: None,
        }],
        events: vec![EventInfo {
            code: "instance-retirement".to_owned(),
        }],
    };
    assert_eq!(found, Ok(vec![status]));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeInstanceStatus
          Filter.1.Name=instance-status.status
          Filter.1.Value.1=impaired
    "#]]);
}

#[tokio::test]
async fn instances_are_ended_many_at_a_time() {
    let changes = "<instancesSet><item><instanceId>i-1</instanceId>\
        <currentState><code>32</code><name>shutting-down</name></currentState>\
        <previousState><code>16</code><name>running</name></previousState></item></instancesSet>";
    let script = Script::of([ec2("TerminateInstances", changes)]).await;
    let ids = ["i-1".to_owned(), "i-2".to_owned()];
    let found = script.aws().ec2.terminate_instances(&ids).await;
    let change = StateChange {
        id: "i-1".to_owned(),
        state: "shutting-down".to_owned(),
    };
    assert_eq!(found, Ok(vec![change]));
    script.check(&expect![[r#"
        us-west-2/ec2 TerminateInstances
          InstanceId.1=i-1
          InstanceId.2=i-2
    "#]]);
}

#[tokio::test]
async fn an_instance_gets_tags() {
    let script = Script::of([ec2("CreateTags", "<return>true</return>")]).await;
    let tags = Tags::from([
        ("Name".to_owned(), "node-1".to_owned()),
        ("karpenter.sh/nodeclaim".to_owned(), "default-1".to_owned()),
    ]);
    assert_eq!(script.aws().ec2.create_tags("i-1", &tags).await, Ok(()));
    script.check(&expect![[r#"
        us-west-2/ec2 CreateTags
          ResourceId.1=i-1
          Tag.1.Key=Name
          Tag.1.Value=node-1
          Tag.2.Key=karpenter.sh/nodeclaim
          Tag.2.Value=default-1
    "#]]);
}
