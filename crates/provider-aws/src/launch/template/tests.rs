use std::net::IpAddr;

use api::aws::{
    AmiFamily, AmiSelectorTerm, BlockDevice, BlockDeviceMapping, ConnectionTracking, InterfaceType,
    KubeletConfiguration, MetadataOptions, NetworkInterface, Switch, TokenPolicy, VolumeType,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::{Effect, Offering, Overhead, Quantity, Requirement, ResourceName, Resources};

use super::*;
use crate::{ports::Ebs, testing::samples};

struct Case {
    class: EC2NodeClass,
    cluster: ClusterFacts,
    capacity_type: CapacityType,
    labels: Labels,
    taints: Vec<Taint>,
    requirements: Requirements,
    wants_efa: bool,
    wants_enclave: bool,
    tags: Tags,
    placement_group: Option<&'static str>,
    reserved_capacity: bool,
    types: Vec<InstanceType>,
    reserved: BTreeMap<String, Reserved>,
}

fn shape(name: &str, arch: &str, pods: i64, efa: i64) -> InstanceType {
    let requirements = [Requirement::one_of(api::labels::ARCH, [arch])];
    let capacity = Resources::new()
        .with(ResourceName::PODS, Quantity::from_int(pods))
        .with(EFA.into(), Quantity::from_int(efa));
    InstanceType::new(
        name.into(),
        requirements.into_iter().collect(),
        Vec::new(),
        capacity,
        Overhead::default(),
    )
}

fn case() -> Case {
    Case {
        class: samples::class(),
        cluster: ClusterFacts {
            name: "demo".to_owned(),
            region: "us-west-2".to_owned(),
            endpoint: "https://demo".to_owned(),
            ca_bundle: Some("Y2E=".to_owned()),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            dns: Some(IpAddr::from([10, 100, 0, 10])),
        },
        capacity_type: CapacityType::OnDemand,
        labels: Labels::new(),
        taints: Vec::new(),
        requirements: Requirements::default(),
        wants_efa: false,
        wants_enclave: false,
        tags: [("karpenter.sh/nodepool".to_owned(), "pool".to_owned())].into(),
        placement_group: None,
        reserved_capacity: true,
        types: vec![shape("m5.large", "amd64", 29, 0)],
        reserved: BTreeMap::new(),
    }
}

impl Case {
    fn plans(&self) -> Result<Vec<Plan>, TemplateError> {
        let order = Order {
            class: &self.class,
            cluster: &self.cluster,
            capacity_type: self.capacity_type,
            tenancy: "default",
            labels: &self.labels,
            taints: &self.taints,
            startup_taints: &[],
            requirements: &self.requirements,
            wants_efa: self.wants_efa,
            wants_enclave: self.wants_enclave,
            tags: &self.tags,
            placement_group: self.placement_group,
            partition: None,
            reserved_capacity: self.reserved_capacity,
            reserved: &self.reserved,
        };
        plans(&self.types, order)
    }

    fn only(&self) -> Plan {
        let [plan] = <[Plan; 1]>::try_from(self.plans().expect("there are templates")).expect("there is one");
        plan
    }

    fn user_data(&self) -> String {
        let bytes = STANDARD.decode(self.only().data.user_data).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

/// The name before a change and after it.
fn names(change: impl FnOnce(&mut Case)) -> (String, String) {
    let mut case = case();
    let before = case.only().name;
    change(&mut case);
    (before, case.only().name)
}

/// AW24.12.1, AW24.12.2
#[test]
fn a_name_stands_for_the_contents_and_for_nothing_else() {
    let same: [fn(&mut Case); 2] = [
        |case| case.types = vec![shape("c5.large", "amd64", 29, 0)],
        |case| case.class.status.as_mut().unwrap().subnets = None,
    ];
    for change in same {
        let (before, after) = names(change);
        assert_eq!(before, after);
    }
    let different: [fn(&mut Case); 12] = [
        |case| case.tags = [("karpenter.sh/nodepool".to_owned(), "other".to_owned())].into(),
        |case| case.types = vec![shape("c5.large", "amd64", 58, 0)],
        |case| case.labels = [("team".into(), "a".into())].into(),
        |case| case.taints = vec![Taint::new("a", "b", Effect::NoSchedule)],
        |case| case.cluster.ca_bundle = Some("eA==".to_owned()),
        |case| case.class.spec.user_data = Some("echo".to_owned()),
        |case| case.class.spec.detailed_monitoring = Some(true),
        |case| case.class.spec.ip_prefix_count = Some(1),
        |case| case.class.status.as_mut().unwrap().instance_profile = Some("other".to_owned()),
        |case| case.placement_group = Some("pg-1"),
        |case| case.wants_enclave = true,
        |case| case.capacity_type = CapacityType::Spot,
    ];
    for (index, change) in different.into_iter().enumerate() {
        let (before, after) = names(change);
        assert_ne!(before, after, "change {index}");
        assert!(after.starts_with("karpenter.k8s.aws/"));
    }
    let taints = [
        Taint::new("a", "b", Effect::NoSchedule),
        Taint::new("c", "d", Effect::NoExecute),
    ];
    let mut one = case();
    one.taints = taints.to_vec();
    let mut other = case();
    other.taints = taints.into_iter().rev().collect();
    assert_eq!(one.only().name, other.only().name, "order does not count");
}

/// AW24.12.3
#[test]
fn what_the_fleet_cannot_tag_is_tagged_by_the_template() {
    let kinds = |capacity_type| {
        let mut case = case();
        case.capacity_type = capacity_type;
        case.only()
            .data
            .tags
            .into_iter()
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(CapacityType::OnDemand), ["network-interface"]);
    assert_eq!(
        kinds(CapacityType::Spot),
        ["network-interface", "spot-instances-request"]
    );
}

/// AW24.12.4
#[test]
fn volumes_are_the_classs_or_the_familys() {
    let of = |family: AmiFamily| {
        let mut case = case();
        case.class.spec.ami_family = Some(family);
        let volumes = case.only().data.volumes;
        let shown = |volume: &crate::ports::Volume| {
            let ebs = volume.ebs.as_ref().unwrap();
            format!("{} {}", volume.device_name.as_deref().unwrap(), ebs.size_gib.unwrap())
        };
        volumes.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(of(AmiFamily::Al2023), "/dev/xvda 20");
    assert_eq!(of(AmiFamily::Bottlerocket), "/dev/xvda 4, /dev/xvdb 20");
    assert_eq!(of(AmiFamily::Windows2022), "/dev/sda1 50");
    assert_eq!(of(AmiFamily::Custom), "");
    let mut case = case();
    case.class.spec.block_device_mappings = Some(vec![BlockDeviceMapping {
        device_name: Some("/dev/xvda".to_owned()),
        ebs: Some(BlockDevice {
            iops: Some(0),
            throughput: Some(125),
            kms_key_id: Some("key".to_owned()),
            snapshot_id: Some("snap-1".to_owned()),
            volume_initialization_rate: Some(200),
            volume_size: Some("200G".to_owned()),
            volume_type: Some(VolumeType::Io2),
            ..BlockDevice::default()
        }),
        root_volume: None,
    }]);
    let expected = Ebs {
        throughput: Some(125),
        kms_key_id: Some("key".to_owned()),
        snapshot_id: Some("snap-1".to_owned()),
        volume_initialization_rate: Some(200),
        size_gib: Some(187),
        volume_type: Some("io2".to_owned()),
        ..Ebs::default()
    };
    assert_eq!(case.only().data.volumes[0].ebs, Some(expected));
    let bare = |size: &str| {
        let mut bad = self::case();
        bad.class.spec.block_device_mappings = Some(vec![BlockDeviceMapping {
            ebs: Some(BlockDevice {
                volume_size: Some(size.to_owned()),
                ..BlockDevice::default()
            }),
            ..BlockDeviceMapping::default()
        }]);
        bad.plans()
    };
    assert!(matches!(bare("T"), Err(TemplateError::Volume(_))));
}

/// AW24.12.5, AW24.12.6
#[test]
fn nodes_get_the_labels_that_a_kubelet_may_set() {
    let mut case = case();
    case.labels = [
        ("team", "a"),
        ("kubernetes.io/arch", "amd64"),
        ("topology.k8s.io/x", "y"),
        ("node-restriction.kubernetes.io/x", "y"),
        ("notkubernetes.io/x", "y"),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), value.into()))
    .collect();
    let flag = |case: &Case| {
        let text = case.user_data();
        let line = text
            .lines()
            .find_map(|line| line.split_once("--node-labels="))
            .unwrap()
            .1
            .to_owned();
        line.split('"').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        flag(&case),
        "karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,notkubernetes.io/x=y,team=a"
    );
    let order_has_sync = |family: AmiFamily| {
        let mut case = self::case();
        case.class.spec.ami_family = Some(family);
        case.user_data().contains("do-not-sync-taints")
    };
    assert!(order_has_sync(AmiFamily::Bottlerocket) && order_has_sync(AmiFamily::Windows2022));
    assert!(!order_has_sync(AmiFamily::Custom));
}

/// AW24.12.12
#[test]
fn types_are_grouped_by_what_their_template_depends_on() {
    let mut case = case();
    case.types = vec![
        shape("m5.large", "amd64", 29, 0),
        shape("c5.large", "amd64", 29, 0),
        shape("m5.xlarge", "amd64", 58, 0),
        shape("m6g.large", "arm64", 29, 0),
        shape("odd.large", "riscv64", 29, 0),
    ];
    let shown: Vec<String> = case
        .plans()
        .unwrap()
        .iter()
        .map(|plan| format!("{}: {}", plan.data.image_id, plan.types.join(" ")))
        .collect();
    assert_eq!(
        shown,
        ["ami-amd: m5.large c5.large", "ami-amd: m5.xlarge", "ami-arm: m6g.large"]
    );
    case.types = vec![shape("odd.large", "riscv64", 29, 0)];
    assert!(matches!(case.plans(), Err(TemplateError::NoImageFits { .. })));
    case.class.status.as_mut().unwrap().amis = None;
    assert!(matches!(case.plans(), Err(TemplateError::NoImages)));
    let mut bare = self::case();
    bare.class.status.as_mut().unwrap().security_groups = None;
    assert!(matches!(bare.plans(), Err(TemplateError::NoSecurityGroups)));
}

/// What is set aside by expressions differs from type to type; the texts of the class never reach a node.
#[test]
fn types_share_a_template_only_if_the_same_is_set_aside_on_them() {
    let amounts = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        entries.iter().map(entry).collect()
    };
    let mut case = case();
    case.class.spec.kubelet = Some(KubeletConfiguration {
        max_pods: Some(IntOrString::String("max_pods - 9".to_owned())),
        kube_reserved: Some(amounts(&[("cpu", "vcpus * 35")])),
        system_reserved: Some(amounts(&[("memory", "0 - vcpus")])),
        passed_on: [("seccompDefault".to_owned(), serde_json::json!(true))].into(),
        ..KubeletConfiguration::default()
    });
    let names = ["c5.large", "m5.large", "m5.xlarge"];
    case.types = names.map(|name| shape(name, "amd64", 20, 0)).to_vec();
    for (name, cpu) in names.into_iter().zip(["70m", "70m", "140m"]) {
        let reserved = Reserved {
            kube: amounts(&[("cpu", cpu)]),
            system: BTreeMap::new(),
        };
        case.reserved.insert(name.to_owned(), reserved);
    }
    let plans = case.plans().unwrap();
    let shared: Vec<String> = plans.iter().map(|plan| plan.types.join(" ")).collect();
    assert_eq!(shared, ["m5.xlarge", "c5.large m5.large"]);
    for (plan, cpu) in plans.iter().zip(["140m", "70m"]) {
        let text = String::from_utf8(STANDARD.decode(&plan.data.user_data).unwrap()).unwrap();
        for part in [&format!("cpu: {cpu}"), "maxPods: 20", "seccompDefault: true"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("vcpus") && !text.contains("systemReserved"), "{text}");
    }
    assert_ne!(plans[0].name, plans[1].name);
}

/// AW24.12.13, AW24.12.14
#[test]
fn interfaces_are_addressed_unless_they_carry_efa_traffic_only() {
    let tracking = ConnectionTracking {
        udp_timeout: Some(30),
        ..ConnectionTracking::default()
    };
    let mut case = case();
    case.class.spec.associate_public_ip_address = Some(true);
    case.class.spec.ip_prefix_count = Some(10);
    case.class.spec.connection_tracking = Some(tracking);
    let shown = |case: &Case| {
        let one = |interface: &crate::ports::Interface| {
            format!(
                "{}.{} {} {:?} {:?}/{:?} {} {}",
                interface.card.unwrap_or(0),
                interface.device,
                interface.kind.as_deref().unwrap_or("-"),
                interface.public_ip,
                interface.ipv4_prefixes,
                interface.ipv6_prefixes,
                interface.primary_ipv6,
                interface.connection_tracking.is_some(),
            )
        };
        case.only()
            .data
            .interfaces
            .iter()
            .map(one)
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(shown(&case), "0.0 - Some(true) Some(10)/None false true");
    case.cluster.dns = Some("fd00::10".parse().unwrap());
    assert_eq!(shown(&case), "0.0 - Some(true) None/Some(10) true true");
    case.wants_efa = true;
    case.types = vec![shape("p5.large", "amd64", 29, 2)];
    assert_eq!(
        shown(&case),
        "0.0 efa Some(true) None/Some(10) true true; 1.1 efa Some(true) None/Some(10) true true"
    );
    let interface = |card, device, interface_type| NetworkInterface {
        network_card_index: card,
        device_index: device,
        interface_type,
    };
    case.class.spec.network_interfaces = Some(vec![
        interface(0, 0, InterfaceType::Interface),
        interface(1, 1, InterfaceType::EfaOnly),
    ]);
    assert_eq!(
        shown(&case),
        "0.0 interface Some(true) None/Some(10) true true; 1.1 efa-only None None/None false false"
    );
    assert!(
        case.only()
            .data
            .interfaces
            .iter()
            .all(|interface| interface.groups == ["sg-1"])
    );
}

/// AW24.12.15
#[test]
fn metadata_monitoring_and_enclaves_follow_the_class_and_the_claim() {
    let mut case = case();
    let plain = case.only().data;
    assert!(!plain.detailed_monitoring && !plain.enclaves);
    let shown = |case: &Case| {
        let metadata = case.only().data.metadata;
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let hops = metadata.hop_limit.unwrap_or(0);
        format!(
            "{} {} {hops} {}",
            text(metadata.endpoint),
            text(metadata.ipv6),
            text(metadata.tokens)
        )
    };
    assert_eq!(shown(&case), "disabled disabled 2 required");
    case.cluster.region = "us-iso-east-1".to_owned();
    assert_eq!(shown(&case), "disabled - 2 required");
    case.cluster.region = "us-west-2".to_owned();
    case.class.spec.metadata_options = Some(MetadataOptions {
        http_endpoint: Some(Switch::Enabled),
        http_protocol_ipv6: Some(Switch::Enabled),
        http_put_response_hop_limit: Some(1),
        http_tokens: Some(TokenPolicy::Optional),
    });
    assert_eq!(shown(&case), "enabled enabled 1 optional");
}

/// AW24.12.16, AW24.11.17
#[test]
fn reservations_have_templates_of_their_own() {
    let reserved = |id: &str, kind: &str, interruptible: &str| Offering {
        capacity_type: CapacityType::Reserved,
        zone: "us-west-2a".into(),
        price: 0.1,
        available: true,
        requirements: [
            Requirement::one_of(aws::CAPACITY_RESERVATION_ID, [id]),
            Requirement::one_of(aws::CAPACITY_RESERVATION_TYPE, [kind]),
            Requirement::one_of(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, [interruptible]),
        ]
        .into_iter()
        .collect(),
        reservation_capacity: Some(1),
        capacity_override: None,
        overhead_override: None,
    };
    let mut case = case();
    assert_eq!(case.only().data.reservation, Some(ReservationPreference::None));
    case.reserved_capacity = false;
    assert_eq!(case.only().data.reservation, None);
    case.reserved_capacity = true;
    case.capacity_type = CapacityType::Reserved;
    case.types[0].offerings = vec![
        reserved("cr-1", "default", "false"),
        reserved("cr-2", "capacity-block", "false"),
        reserved("cr-3", "default", "true"),
    ];
    let plans = case.plans().unwrap();
    let shown: Vec<_> = plans
        .iter()
        .map(|plan| (plan.data.reservation.clone(), plan.data.market))
        .collect();
    let only = |id: &str| Some(ReservationPreference::Only(id.to_owned()));
    assert_eq!(
        shown,
        [
            (only("cr-1"), None),
            (only("cr-2"), Some(MarketType::CapacityBlock)),
            (only("cr-3"), Some(MarketType::InterruptibleReservation)),
        ]
    );
    assert_eq!(plans[0].reservation.as_deref(), Some("cr-1"));
}

#[test]
fn the_bottlerocket_release_is_taken_from_where_it_is_told() {
    let with = |term: AmiSelectorTerm| {
        let mut case = case();
        case.class.spec.ami_family = Some(AmiFamily::Bottlerocket);
        case.class.spec.instance_store_policy = Some(api::aws::InstanceStorePolicy::Raid0);
        case.class.spec.ami_selector_terms = vec![term];
        case.class.status.as_mut().unwrap().amis.as_mut().unwrap()[0].name =
            Some("bottlerocket-aws-k8s-1.30-x86_64-v1.46.0-7c3e".to_owned());
        case.user_data().contains("--dirs")
    };
    let term = AmiSelectorTerm::default;
    assert!(with(AmiSelectorTerm {
        alias: Some("bottlerocket@1.45.0".to_owned()),
        ..term()
    }));
    assert!(with(AmiSelectorTerm {
        name: Some("bottlerocket-x-v1.45.1-1".to_owned()),
        ..term()
    }));
    assert!(!with(AmiSelectorTerm {
        id: Some("ami-amd".to_owned()),
        ..term()
    }));
    assert!(!with(AmiSelectorTerm {
        owner: Some("self".to_owned()),
        ..term()
    }));
}
