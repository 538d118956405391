//! Launch templates: all that can be said in one, and as little as possible.

use api::aws::{ConnectionTracking, Switch};
use expect_test::expect;
use provider_aws::ports::{
    Ebs, Interface, MarketType, Metadata, Placement, ReservationPreference, Tags, Template, TemplateData, TemplateKey,
    Volume,
};

use crate::script::{Script, ec2};

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(pair).collect()
}

fn bare() -> TemplateData {
    TemplateData {
        tags: vec![("network-interface", tags(&[("team", "web")]))],
        volumes: Vec::new(),
        instance_profile: "demo_1".to_owned(),
        detailed_monitoring: false,
        image_id: "ami-1".to_owned(),
        user_data: "aGVsbG8=".to_owned(),
        metadata: Metadata {
            endpoint: None,
            ipv6: None,
            hop_limit: None,
            tokens: None,
        },
        interfaces: vec![Interface {
            groups: vec!["sg-1".to_owned()],
            ..Interface::default()
        }],
        placement: Placement {
            tenancy: "default".to_owned(),
            ..Placement::default()
        },
        enclaves: false,
        nested_virtualization: None,
        reservation: None,
        market: None,
    }
}

fn made() -> crate::script::Answer {
    ec2(
        "CreateLaunchTemplate",
        "<launchTemplate><launchTemplateId>lt-1</launchTemplateId><launchTemplateName>karpenter.k8s.aws/1</launchTemplateName></launchTemplate>",
    )
}

#[tokio::test]
async fn what_is_absent_is_not_mentioned() {
    let script = Script::of([made()]).await;
    let template = script
        .aws()
        .ec2
        .create_launch_template("karpenter.k8s.aws/1", &tags(&[("team", "web")]), &bare())
        .await;
    let expected = Template {
        id: "lt-1".to_owned(),
        name: "karpenter.k8s.aws/1".to_owned(),
    };
    assert_eq!(template, Ok(expected));
    script.check(&expect![[r#"
        us-west-2/ec2 CreateLaunchTemplate
          ClientToken=<made by the SDK>
          LaunchTemplateData.EnclaveOptions.Enabled=false
          LaunchTemplateData.IamInstanceProfile.Name=demo_1
          LaunchTemplateData.ImageId=ami-1
          LaunchTemplateData.MetadataOptions.InstanceMetadataTags=disabled
          LaunchTemplateData.Monitoring.Enabled=false
          LaunchTemplateData.NetworkInterface.1.DeviceIndex=0
          LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1=sg-1
          LaunchTemplateData.Placement.Tenancy=default
          LaunchTemplateData.TagSpecification.1.ResourceType=network-interface
          LaunchTemplateData.TagSpecification.1.Tag.1.Key=team
          LaunchTemplateData.TagSpecification.1.Tag.1.Value=web
          LaunchTemplateData.UserData=aGVsbG8=
          LaunchTemplateName=karpenter.k8s.aws/1
          TagSpecification.1.ResourceType=launch-template
          TagSpecification.1.Tag.1.Key=team
          TagSpecification.1.Tag.1.Value=web
    "#]]);
}

#[tokio::test]
async fn all_that_is_given_is_sent() {
    let full = TemplateData {
        tags: vec![
            ("network-interface", tags(&[("team", "web")])),
            ("spot-instances-request", tags(&[("team", "web"), ("empty", "")])),
        ],
        volumes: vec![
            Volume {
                device_name: Some("/dev/xvda".to_owned()),
                ebs: Some(Ebs {
                    delete_on_termination: Some(true),
                    encrypted: Some(true),
                    iops: Some(3000),
                    throughput: Some(125),
                    kms_key_id: Some("key-1".to_owned()),
                    snapshot_id: Some("snap-1".to_owned()),
                    volume_initialization_rate: Some(100),
                    size_gib: Some(20),
                    volume_type: Some("gp3".to_owned()),
                }),
            },
            Volume {
                device_name: Some("/dev/xvdb".to_owned()),
                ebs: None,
            },
        ],
        detailed_monitoring: true,
        metadata: Metadata {
            endpoint: Some("enabled".to_owned()),
            ipv6: Some("disabled".to_owned()),
            hop_limit: Some(1),
            tokens: Some("required".to_owned()),
        },
        interfaces: vec![
            Interface {
                card: Some(0),
                device: 0,
                kind: Some("interface".to_owned()),
                groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
                public_ip: Some(false),
                ipv4_prefixes: None,
                ipv6_prefixes: Some(1),
                primary_ipv6: true,
                connection_tracking: Some(ConnectionTracking {
                    tcp_established_timeout: Some(60),
                    udp_stream_timeout: Some(90),
                    udp_timeout: Some(30),
                }),
            },
            Interface {
                card: Some(1),
                device: 1,
                kind: Some("efa-only".to_owned()),
                groups: vec!["sg-1".to_owned()],
                ..Interface::default()
            },
        ],
        placement: Placement {
            tenancy: "dedicated".to_owned(),
            group_id: Some("pg-1".to_owned()),
            partition: Some(3),
        },
        enclaves: true,
        nested_virtualization: Some(Switch::Enabled),
        reservation: Some(ReservationPreference::Only("cr-1".to_owned())),
        market: Some(MarketType::InterruptibleReservation),
        ..bare()
    };
    let script = Script::of([made()]).await;
    let ec2 = &script.aws().ec2;
    ec2.create_launch_template("karpenter.k8s.aws/1", &tags(&[("team", "web")]), &full)
        .await
        .expect("a template");
    script.check(&expect![[r#"
        us-west-2/ec2 CreateLaunchTemplate
          ClientToken=<made by the SDK>
          LaunchTemplateData.BlockDeviceMapping.1.DeviceName=/dev/xvda
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.DeleteOnTermination=true
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.Encrypted=true
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.Iops=3000
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.KmsKeyId=key-1
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.SnapshotId=snap-1
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.Throughput=125
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeInitializationRate=100
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=20
          LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeType=gp3
          LaunchTemplateData.BlockDeviceMapping.2.DeviceName=/dev/xvdb
          LaunchTemplateData.CapacityReservationSpecification.CapacityReservationPreference=capacity-reservations-only
          LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId=cr-1
          LaunchTemplateData.CpuOptions.NestedVirtualization=enabled
          LaunchTemplateData.EnclaveOptions.Enabled=true
          LaunchTemplateData.IamInstanceProfile.Name=demo_1
          LaunchTemplateData.ImageId=ami-1
          LaunchTemplateData.InstanceMarketOptions.MarketType=interruptible-capacity-reservation
          LaunchTemplateData.MetadataOptions.HttpEndpoint=enabled
          LaunchTemplateData.MetadataOptions.HttpProtocolIpv6=disabled
          LaunchTemplateData.MetadataOptions.HttpPutResponseHopLimit=1
          LaunchTemplateData.MetadataOptions.HttpTokens=required
          LaunchTemplateData.MetadataOptions.InstanceMetadataTags=disabled
          LaunchTemplateData.Monitoring.Enabled=true
          LaunchTemplateData.NetworkInterface.1.AssociatePublicIpAddress=false
          LaunchTemplateData.NetworkInterface.1.ConnectionTrackingSpecification.TcpEstablishedTimeout=60
          LaunchTemplateData.NetworkInterface.1.ConnectionTrackingSpecification.UdpStreamTimeout=90
          LaunchTemplateData.NetworkInterface.1.ConnectionTrackingSpecification.UdpTimeout=30
          LaunchTemplateData.NetworkInterface.1.DeviceIndex=0
          LaunchTemplateData.NetworkInterface.1.InterfaceType=interface
          LaunchTemplateData.NetworkInterface.1.Ipv6AddressCount=1
          LaunchTemplateData.NetworkInterface.1.Ipv6PrefixCount=1
          LaunchTemplateData.NetworkInterface.1.NetworkCardIndex=0
          LaunchTemplateData.NetworkInterface.1.PrimaryIpv6=true
          LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1=sg-1
          LaunchTemplateData.NetworkInterface.1.SecurityGroupId.2=sg-2
          LaunchTemplateData.NetworkInterface.2.DeviceIndex=1
          LaunchTemplateData.NetworkInterface.2.InterfaceType=efa-only
          LaunchTemplateData.NetworkInterface.2.NetworkCardIndex=1
          LaunchTemplateData.NetworkInterface.2.SecurityGroupId.1=sg-1
          LaunchTemplateData.Placement.GroupId=pg-1
          LaunchTemplateData.Placement.PartitionNumber=3
          LaunchTemplateData.Placement.Tenancy=dedicated
          LaunchTemplateData.TagSpecification.1.ResourceType=network-interface
          LaunchTemplateData.TagSpecification.1.Tag.1.Key=team
          LaunchTemplateData.TagSpecification.1.Tag.1.Value=web
          LaunchTemplateData.TagSpecification.2.ResourceType=spot-instances-request
          LaunchTemplateData.TagSpecification.2.Tag.1.Key=empty
          LaunchTemplateData.TagSpecification.2.Tag.1.Value=
          LaunchTemplateData.TagSpecification.2.Tag.2.Key=team
          LaunchTemplateData.TagSpecification.2.Tag.2.Value=web
          LaunchTemplateData.UserData=aGVsbG8=
          LaunchTemplateName=karpenter.k8s.aws/1
          TagSpecification.1.ResourceType=launch-template
          TagSpecification.1.Tag.1.Key=team
          TagSpecification.1.Tag.1.Value=web
    "#]]);
}

#[tokio::test]
async fn open_reservations_are_declined_by_name() {
    let data = TemplateData {
        reservation: Some(ReservationPreference::None),
        market: Some(MarketType::CapacityBlock),
        ..bare()
    };
    let script = Script::of([made()]).await;
    let ec2 = &script.aws().ec2;
    ec2.create_launch_template("karpenter.k8s.aws/1", &Tags::new(), &data)
        .await
        .expect("a template");
    let form = script.seen()[0].form();
    let field = |name: &str| form.get(&format!("LaunchTemplateData.{name}")).map(String::as_str);
    let reservation = "CapacityReservationSpecification";
    assert_eq!(
        field(&format!("{reservation}.CapacityReservationPreference")),
        Some("none")
    );
    assert!(!form.keys().any(|name| name.contains("CapacityReservationTarget")));
    assert_eq!(field("InstanceMarketOptions.MarketType"), Some("capacity-block"));
}

#[tokio::test]
async fn a_template_is_deleted_by_id_or_name() {
    let script = Script::of([ec2("DeleteLaunchTemplate", ""), ec2("DeleteLaunchTemplate", "")]).await;
    let ec2 = &script.aws().ec2;
    let by_id = TemplateKey::Id("lt-1".to_owned());
    assert_eq!(ec2.delete_launch_template(&by_id).await, Ok(()));
    let by_name = TemplateKey::Name("karpenter.k8s.aws/1".to_owned());
    assert_eq!(ec2.delete_launch_template(&by_name).await, Ok(()));
    script.check(&expect![[r#"
        us-west-2/ec2 DeleteLaunchTemplate
          LaunchTemplateId=lt-1

        us-west-2/ec2 DeleteLaunchTemplate
          LaunchTemplateName=karpenter.k8s.aws/1
    "#]]);
}
