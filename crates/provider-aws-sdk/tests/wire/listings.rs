//! What EC2 lists: types, offerings, subnets, groups, images, reservations, placement groups, prices, templates.

use expect_test::expect;
use jiff::Timestamp;
use provider_aws::ports::{
    AcceleratorInfo, Filter, GpuInfo, ImageInfo, ImageQuery, InstanceStorage, InstanceTypeInfo, NetworkCard,
    NetworkInfo, NeuronInfo, PlacementGroupInfo, PlacementGroupQuery, ReservationInfo, ReservationQuery,
    SecurityGroupInfo, SpotPrice, SubnetInfo, Template, TemplateQuery, TypeOffering,
};

use crate::script::{Script, ec2, ec2_error};

#[tokio::test]
async fn access_is_checked_by_a_dry_run() {
    let script = Script::of([
        ec2_error(412, "DryRunOperation", "would have succeeded"),
        ec2("DescribeInstanceTypes", "<instanceTypeSet/>"),
        ec2_error(401, "AuthFailure", "not able to validate the credentials"),
    ])
    .await;
    let ec2 = &script.aws().ec2;
    ec2.check_access().await.expect("a dry run that passes");
    ec2.check_access()
        .await
        .expect("an emulator that does not know dry runs");
    let refusal = ec2.check_access().await.expect_err("bad credentials");
    assert_eq!(refusal.code, "AuthFailure");
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeInstanceTypes
          DryRun=true

        us-west-2/ec2 DescribeInstanceTypes
          DryRun=true

        us-west-2/ec2 DescribeInstanceTypes
          DryRun=true
    "#]]);
}

const METAL: &str = "
<item>
  <instanceType>p9.metal</instanceType>
  <supportedUsageClasses><item>on-demand</item><item>moon-lease</item></supportedUsageClasses>
  <vCpuInfo><defaultVCpus>96</defaultVCpus></vCpuInfo>
  <memoryInfo><sizeInMiB>1179648</sizeInMiB></memoryInfo>
  <processorInfo>
    <supportedArchitectures><item>x86_64</item></supportedArchitectures>
    <sustainedClockSpeedInGhz>3.1</sustainedClockSpeedInGhz>
    <supportedFeatures><item>nested-virtualization</item></supportedFeatures>
    <manufacturer>Intel</manufacturer>
  </processorInfo>
  <ebsInfo>
    <ebsOptimizedSupport>default</ebsOptimizedSupport>
    <ebsOptimizedInfo><maximumBandwidthInMbps>19000</maximumBandwidthInMbps></ebsOptimizedInfo>
  </ebsInfo>
  <instanceStorageInfo><totalSizeInGB>7600</totalSizeInGB><nvmeSupport>required</nvmeSupport></instanceStorageInfo>
  <gpuInfo><gpus><item>
    <name>H100</name><manufacturer>NVIDIA</manufacturer><count>8</count><memoryInfo><sizeInMiB>81559</sizeInMiB></memoryInfo>
  </item></gpus></gpuInfo>
  <inferenceAcceleratorInfo><accelerators>
    <member><name>Inferentia</name><manufacturer>AWS</manufacturer><count>4</count></member>
  </accelerators></inferenceAcceleratorInfo>
  <neuronInfo><neuronDevices>
    <item><name>Trainium</name><count>16</count><coreInfo><count>2</count></coreInfo></item>
  </neuronDevices></neuronInfo>
  <nitroEnclavesSupport>supported</nitroEnclavesSupport>
  <networkInfo>
    <defaultNetworkCardIndex>1</defaultNetworkCardIndex>
    <networkCards>
      <item><networkCardIndex>0</networkCardIndex><maximumNetworkInterfaces>15</maximumNetworkInterfaces></item>
      <item><networkCardIndex>1</networkCardIndex><maximumNetworkInterfaces>7</maximumNetworkInterfaces></item>
    </networkCards>
    <ipv4AddressesPerInterface>50</ipv4AddressesPerInterface>
    <efaInfo><maximumEfaInterfaces>32</maximumEfaInterfaces></efaInfo>
    <enaSupport>required</enaSupport>
    <encryptionInTransitSupported>true</encryptionInTransitSupported>
  </networkInfo>
  <placementGroupInfo><supportedStrategies><item>cluster</item><item>spread</item></supportedStrategies></placementGroupInfo>
</item>";

const OLD: &str = "
<item>
  <instanceType>t1.micro</instanceType>
  <hypervisor>xen</hypervisor>
  <vCpuInfo><defaultVCpus>1</defaultVCpus></vCpuInfo>
  <memoryInfo><sizeInMiB>627</sizeInMiB></memoryInfo>
  <ebsInfo>
    <ebsOptimizedSupport>unsupported</ebsOptimizedSupport>
    <ebsOptimizedInfo><maximumBandwidthInMbps>1</maximumBandwidthInMbps></ebsOptimizedInfo>
  </ebsInfo>
  <instanceStorageInfo><totalSizeInGB>40</totalSizeInGB><nvmeSupport>unsupported</nvmeSupport></instanceStorageInfo>
  <nitroEnclavesSupport>unsupported</nitroEnclavesSupport>
  <networkInfo><enaSupport>unsupported</enaSupport></networkInfo>
</item>";

#[tokio::test]
async fn an_instance_type_keeps_all_that_matters_and_words_that_are_new() {
    let first = format!("<instanceTypeSet>{METAL}</instanceTypeSet><nextToken>more</nextToken>");
    let second = format!("<instanceTypeSet>{OLD}</instanceTypeSet>");
    let script = Script::of([
        ec2("DescribeInstanceTypes", &first),
        ec2("DescribeInstanceTypes", &second),
    ])
    .await;
    let found = script.aws().ec2.instance_types().await.expect("two pages");
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let metal = InstanceTypeInfo {
        name: "p9.metal".to_owned(),
        architectures: strings(&["x86_64"]),
        usage_classes: strings(&["on-demand", "moon-lease"]),
        vcpus: 96,
        manufacturer: Some("Intel".to_owned()),
        clock_ghz: Some(3.1),
        processor_features: strings(&["nested-virtualization"]),
        memory_mib: 1_179_648,
        ebs_bandwidth_mbps: Some(19_000),
        storage: Some(InstanceStorage {
            total_gb: 7600,
            nvme: true,
        }),
        gpus: vec![GpuInfo {
            name: "H100".to_owned(),
            manufacturer: "NVIDIA".to_owned(),
            count: 8,
            memory_mib: 81_559,
        }],
        inference_accelerators: vec![AcceleratorInfo {
            name: "Inferentia".to_owned(),
            manufacturer: "AWS".to_owned(),
            count: 4,
        }],
        neuron: vec![NeuronInfo {
            name: "Trainium".to_owned(),
            count: 16,
            cores: 2,
        }],
        hypervisor: String::new(),
        nitro_enclaves: true,
        network: NetworkInfo {
            default_card: 1,
            cards: vec![
                NetworkCard {
                    index: 0,
                    max_interfaces: 15,
                },
                NetworkCard {
                    index: 1,
                    max_interfaces: 7,
                },
            ],
            ipv4_per_interface: 50,
            max_efa_interfaces: 32,
            ena: true,
            encryption_in_transit: true,
        },
        placement_strategies: strings(&["cluster", "spread"]),
    };
    let old = InstanceTypeInfo {
        name: "t1.micro".to_owned(),
        vcpus: 1,
        memory_mib: 627,
        hypervisor: "xen".to_owned(),
        storage: Some(InstanceStorage {
            total_gb: 40,
            nvme: false,
        }),
        ..InstanceTypeInfo::default()
    };
    assert_eq!(found, [metal, old]);
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeInstanceTypes
          Filter.1.Name=supported-virtualization-type
          Filter.1.Value.1=hvm
          Filter.2.Name=processor-info.supported-architecture
          Filter.2.Value.1=x86_64
          Filter.2.Value.2=arm64
          MaxResults=100

        us-west-2/ec2 DescribeInstanceTypes
          Filter.1.Name=supported-virtualization-type
          Filter.1.Value.1=hvm
          Filter.2.Name=processor-info.supported-architecture
          Filter.2.Value.1=x86_64
          Filter.2.Value.2=arm64
          MaxResults=100
          NextToken=more
    "#]]);
}

#[tokio::test]
async fn offerings_are_asked_for_by_zone() {
    let script = Script::of([ec2(
        "DescribeInstanceTypeOfferings",
        "<instanceTypeOfferingSet><item><instanceType>m5.large</instanceType>\
         <locationType>availability-zone</locationType><location>us-west-2a</location></item></instanceTypeOfferingSet>",
    )])
    .await;
    let found = script.aws().ec2.type_offerings().await.expect("one page");
    let offering = TypeOffering {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
    };
    assert_eq!(found, [offering]);
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeInstanceTypeOfferings
          LocationType=availability-zone
          MaxResults=1000
    "#]]);
}

/// AW24.4.2
#[tokio::test]
async fn a_listing_is_followed_to_its_last_page_even_if_the_first_is_empty() {
    let page = |id: &str, next: &str| {
        let item = format!(
            "<subnetSet><item><subnetId>{id}</subnetId><availabilityZone>us-west-2a</availabilityZone>\
             <availabilityZoneId>usw2-az1</availabilityZoneId><availableIpAddressCount>250</availableIpAddressCount></item></subnetSet>{next}"
        );
        ec2("DescribeSubnets", &item)
    };
    let script = Script::of([
        ec2("DescribeSubnets", "<subnetSet/><nextToken>some</nextToken>"),
        page("subnet-1", "<nextToken>more</nextToken>"),
        page("subnet-2", "<nextToken></nextToken>"),
    ])
    .await;
    let filters = [Filter::tag("karpenter.sh/discovery", "demo"), Filter::tag("team", "*")];
    let found = script.aws().ec2.subnets(&filters).await.expect("three pages");
    let subnet = |id: &str| SubnetInfo {
        id: id.to_owned(),
        zone: "us-west-2a".to_owned(),
        zone_id: "usw2-az1".to_owned(),
        available_addresses: 250,
    };
    assert_eq!(found, [subnet("subnet-1"), subnet("subnet-2")]);
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeSubnets
          Filter.1.Name=tag:karpenter.sh/discovery
          Filter.1.Value.1=demo
          Filter.2.Name=tag-key
          Filter.2.Value.1=team
          MaxResults=500

        us-west-2/ec2 DescribeSubnets
          Filter.1.Name=tag:karpenter.sh/discovery
          Filter.1.Value.1=demo
          Filter.2.Name=tag-key
          Filter.2.Value.1=team
          MaxResults=500
          NextToken=some

        us-west-2/ec2 DescribeSubnets
          Filter.1.Name=tag:karpenter.sh/discovery
          Filter.1.Value.1=demo
          Filter.2.Name=tag-key
          Filter.2.Value.1=team
          MaxResults=500
          NextToken=more
    "#]]);
}

#[tokio::test]
async fn security_groups_are_found_by_any_of_several_ids() {
    let script = Script::of([ec2(
        "DescribeSecurityGroups",
        "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>nodes</groupName></item></securityGroupInfo>",
    )])
    .await;
    let filters = [Filter::new("group-id", ["sg-1", "sg-2"])];
    let found = script.aws().ec2.security_groups(&filters).await.expect("one page");
    let group = SecurityGroupInfo {
        id: "sg-1".to_owned(),
        name: "nodes".to_owned(),
    };
    assert_eq!(found, [group]);
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeSecurityGroups
          Filter.1.Name=group-id
          Filter.1.Value.1=sg-1
          Filter.1.Value.2=sg-2
          MaxResults=500
    "#]]);
}

#[tokio::test]
async fn images_include_the_deprecated() {
    let images = "<imagesSet>\
        <item><imageId>ami-1</imageId><name>al2023-1</name><architecture>arm64</architecture>\
        <creationDate>2026-01-02T03:04:05.000Z</creationDate><deprecationTime>2028-01-02T03:04:05.000Z</deprecationTime></item>\
        <item><imageId>ami-2</imageId><architecture>riscv64</architecture></item></imagesSet>";
    let script = Script::of([ec2("DescribeImages", images), ec2("DescribeImages", "<imagesSet/>")]).await;
    let available = Filter::new("state", ["available"]);
    let by_name = ImageQuery {
        filters: vec![Filter::new("name", ["al2023-*"]), available.clone()],
        owners: vec!["self".to_owned(), "amazon".to_owned()],
    };
    let found = script.aws().ec2.images(&by_name).await.expect("one page");
    let first = ImageInfo {
        id: "ami-1".to_owned(),
        name: "al2023-1".to_owned(),
        architecture: "arm64".to_owned(),
        created: "2026-01-02T03:04:05.000Z".to_owned(),
        deprecated_at: Some("2028-01-02T03:04:05.000Z".to_owned()),
    };
    let second = ImageInfo {
        id: "ami-2".to_owned(),
        architecture: "riscv64".to_owned(),
        ..ImageInfo::default()
    };
    assert_eq!(found, [first, second]);
    let of_anybody = ImageQuery {
        filters: vec![Filter::new("image-id", ["ami-3"]), available],
        owners: Vec::new(),
    };
    assert_eq!(script.aws().ec2.images(&of_anybody).await, Ok(Vec::new()));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeImages
          Filter.1.Name=name
          Filter.1.Value.1=al2023-*
          Filter.2.Name=state
          Filter.2.Value.1=available
          IncludeDeprecated=true
          MaxResults=1000
          Owner.1=self
          Owner.2=amazon

        us-west-2/ec2 DescribeImages
          Filter.1.Name=image-id
          Filter.1.Value.1=ami-3
          Filter.2.Name=state
          Filter.2.Value.1=available
          IncludeDeprecated=true
          MaxResults=1000
    "#]]);
}

#[tokio::test]
async fn only_active_reservations_are_asked_for() {
    let reservations = "<capacityReservationSet><item><capacityReservationId>cr-1</capacityReservationId>\
        <availabilityZone>us-west-2b</availabilityZone><instanceType>p5.48xlarge</instanceType><ownerId>123</ownerId>\
        <instanceMatchCriteria>targeted</instanceMatchCriteria><reservationType>capacity-block</reservationType>\
        <interruptible>true</interruptible><endDate>2026-11-16T12:00:00.000Z</endDate>\
        <availableInstanceCount>3</availableInstanceCount></item>\
        <item><capacityReservationId>cr-2</capacityReservationId></item></capacityReservationSet>";
    let script = Script::of([
        ec2("DescribeCapacityReservations", reservations),
        ec2("DescribeCapacityReservations", "<capacityReservationSet/>"),
    ])
    .await;
    let ec2 = &script.aws().ec2;
    let matching = ReservationQuery::Matching(vec![Filter::new("owner-id", ["123"]), Filter::tag("team", "ml")]);
    let found = ec2.capacity_reservations(&matching).await.expect("one page");
    let block = ReservationInfo {
        id: "cr-1".to_owned(),
        zone: "us-west-2b".to_owned(),
        instance_type: "p5.48xlarge".to_owned(),
        owner: "123".to_owned(),
        match_criteria: "targeted".to_owned(),
        reservation_type: "capacity-block".to_owned(),
        interruptible: true,
        ends: Some("2026-11-16T12:00:00Z".parse().expect("a time")),
        available: 3,
    };
    let bare = ReservationInfo {
        id: "cr-2".to_owned(),
        ..ReservationInfo::default()
    };
    assert_eq!(found, [block, bare]);
    let by_id = ReservationQuery::Id("cr-1".to_owned());
    assert_eq!(ec2.capacity_reservations(&by_id).await, Ok(Vec::new()));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeCapacityReservations
          Filter.1.Name=state
          Filter.1.Value.1=active
          Filter.2.Name=owner-id
          Filter.2.Value.1=123
          Filter.3.Name=tag:team
          Filter.3.Value.1=ml
          MaxResults=1000

        us-west-2/ec2 DescribeCapacityReservations
          CapacityReservationId.1=cr-1
          Filter.1.Name=state
          Filter.1.Value.1=active
    "#]]);
}

#[tokio::test]
async fn placement_groups_are_found_by_id_or_name() {
    let groups = "<placementGroupSet><item><groupId>pg-1</groupId><groupName>racks</groupName>\
        <strategy>partition</strategy><partitionCount>7</partitionCount><spreadLevel>rack</spreadLevel></item></placementGroupSet>";
    let script = Script::of([
        ec2("DescribePlacementGroups", groups),
        ec2("DescribePlacementGroups", "<placementGroupSet/>"),
    ])
    .await;
    let ec2 = &script.aws().ec2;
    let found = ec2.placement_groups(&PlacementGroupQuery::Id("pg-1".to_owned())).await;
    let group = PlacementGroupInfo {
        id: "pg-1".to_owned(),
        name: "racks".to_owned(),
        strategy: "partition".to_owned(),
        partitions: 7,
        spread_level: Some("rack".to_owned()),
    };
    assert_eq!(found, Ok(vec![group]));
    let none = ec2
        .placement_groups(&PlacementGroupQuery::Name("racks".to_owned()))
        .await;
    assert_eq!(none, Ok(Vec::new()));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribePlacementGroups
          Filter.1.Name=state
          Filter.1.Value.1=available
          GroupId.1=pg-1

        us-west-2/ec2 DescribePlacementGroups
          Filter.1.Name=state
          Filter.1.Value.1=available
          GroupName.1=racks
    "#]]);
}

#[tokio::test]
async fn spot_prices_without_a_time_or_a_number_are_left_out() {
    let record = |zone: &str, price: &str, time: &str| {
        format!(
            "<item><instanceType>m5.large</instanceType><availabilityZone>{zone}</availabilityZone>\
             <spotPrice>{price}</spotPrice>{time}</item>"
        )
    };
    let time = "<timestamp>2026-11-16T05:00:00.000Z</timestamp>";
    let history = format!(
        "<spotPriceHistorySet>{}{}{}</spotPriceHistorySet>",
        record("us-west-2a", "0.034500", time),
        record("us-west-2b", "cheap", time),
        record("us-west-2c", "0.1", ""),
    );
    let script = Script::of([ec2("DescribeSpotPriceHistory", &history)]).await;
    let now: Timestamp = "2026-11-16T05:30:00.123456Z".parse().expect("a time");
    let found = script.aws().ec2.spot_prices(now).await.expect("one page");
    let price = SpotPrice {
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
        price: 0.0345,
    };
    assert_eq!(found, [price]);
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeSpotPriceHistory
          MaxResults=2000
          ProductDescription.1=Linux/UNIX
          ProductDescription.2=Linux/UNIX (Amazon VPC)
          StartTime=2026-11-16T05:30:00.123Z
    "#]]);
}

#[tokio::test]
async fn templates_are_found_by_name_or_by_tags() {
    let templates = "<launchTemplates><item><launchTemplateId>lt-1</launchTemplateId>\
        <launchTemplateName>karpenter.k8s.aws/1</launchTemplateName></item></launchTemplates>";
    let script = Script::of([
        ec2("DescribeLaunchTemplates", templates),
        ec2("DescribeLaunchTemplates", "<launchTemplates/>"),
    ])
    .await;
    let ec2 = &script.aws().ec2;
    let by_name = TemplateQuery::Name("karpenter.k8s.aws/1".to_owned());
    let template = Template {
        id: "lt-1".to_owned(),
        name: "karpenter.k8s.aws/1".to_owned(),
    };
    assert_eq!(ec2.launch_templates(&by_name).await, Ok(vec![template]));
    let by_tags = TemplateQuery::Matching(vec![Filter::tag("eks:eks-cluster-name", "demo")]);
    assert_eq!(ec2.launch_templates(&by_tags).await, Ok(Vec::new()));
    script.check(&expect![[r#"
        us-west-2/ec2 DescribeLaunchTemplates
          LaunchTemplateName.1=karpenter.k8s.aws/1

        us-west-2/ec2 DescribeLaunchTemplates
          Filter.1.Name=tag:eks:eks-cluster-name
          Filter.1.Value.1=demo
          MaxResults=200
    "#]]);
}
