use api::aws::{
    AmiFamily, BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, EC2NodeClass, InstanceStorePolicy,
    InterfaceType, KubeletConfiguration, NetworkInterface, Switch,
};
use expect_test::expect;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;
use crate::testing::samples::{self, REGION};

fn shape_with(info: &InstanceTypeInfo, class: &EC2NodeClass, options: &Options) -> Result<Shape, Unreadable> {
    let zones = class_view::zones(class);
    let setting = Setting {
        region: REGION,
        options,
        formulas: &samples::formulas(),
        class,
        zones: &zones,
        placement_group: None,
    };
    let sold_in = ["us-west-2a", "us-west-2c"].map(str::to_owned);
    Shape::of(info, &sold_in, &setting)
}

#[track_caller]
fn shape(info: &InstanceTypeInfo, class: &EC2NodeClass) -> Shape {
    shape_with(info, class, &samples::options()).expect("the class can be read")
}

fn class_of(family: AmiFamily, kubelet: KubeletConfiguration) -> EC2NodeClass {
    let mut class = samples::class();
    class.spec.ami_family = Some(family);
    class.spec.kubelet = Some(kubelet);
    class
}

fn interface(card: i32, device: i32, kind: InterfaceType) -> NetworkInterface {
    NetworkInterface {
        network_card_index: card,
        device_index: device,
        interface_type: kind,
    }
}

fn amounts(text: &[(&str, &str)]) -> Option<std::collections::BTreeMap<String, String>> {
    let entry = |(name, amount): &(&str, &str)| ((*name).to_owned(), (*amount).to_owned());
    Some(text.iter().map(entry).collect())
}

/// AW24.9.1
#[test]
fn a_type_has_every_label_that_its_facts_tell() {
    let shape = shape(&samples::m6idn_32xlarge(), &samples::class());
    let text = shape.requirements.to_string().replace(", ", "\n");
    expect![[r#"
        karpenter.k8s.aws/capacity-reservation-id DoesNotExist
        karpenter.k8s.aws/capacity-reservation-interruptible DoesNotExist
        karpenter.k8s.aws/capacity-reservation-type DoesNotExist
        karpenter.k8s.aws/instance-accelerator-count DoesNotExist
        karpenter.k8s.aws/instance-accelerator-manufacturer DoesNotExist
        karpenter.k8s.aws/instance-accelerator-name DoesNotExist
        karpenter.k8s.aws/instance-capability-flex In [false]
        karpenter.k8s.aws/instance-category In [m]
        karpenter.k8s.aws/instance-cpu In [128]
        karpenter.k8s.aws/instance-cpu-manufacturer In [intel]
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz In [3100]
        karpenter.k8s.aws/instance-ebs-bandwidth In [4750]
        karpenter.k8s.aws/instance-encryption-in-transit-supported In [true]
        karpenter.k8s.aws/instance-family In [m6idn]
        karpenter.k8s.aws/instance-generation In [6]
        karpenter.k8s.aws/instance-gpu-count DoesNotExist
        karpenter.k8s.aws/instance-gpu-manufacturer DoesNotExist
        karpenter.k8s.aws/instance-gpu-memory DoesNotExist
        karpenter.k8s.aws/instance-gpu-name DoesNotExist
        karpenter.k8s.aws/instance-hypervisor In [nitro]
        karpenter.k8s.aws/instance-local-nvme In [7600]
        karpenter.k8s.aws/instance-memory In [524288]
        karpenter.k8s.aws/instance-network-bandwidth In [200000]
        karpenter.k8s.aws/instance-size In [32xlarge]
        karpenter.k8s.aws/instance-tenancy In [dedicated default]
        karpenter.k8s.aws/nitro-sandbox In [true]
        karpenter.sh/capacity-type In [on-demand spot]
        kubernetes.io/arch In [amd64]
        kubernetes.io/os In [linux]
        node.kubernetes.io/instance-type In [m6idn.32xlarge]
        node.kubernetes.io/windows-build DoesNotExist
        topology.k8s.aws/zone-id In [usw2-az1]
        topology.kubernetes.io/region In [us-west-2]
        topology.kubernetes.io/zone In [us-west-2a]"#]]
    .assert_eq(&text);
}

/// AW24.9.1, AW24.9.3, AW24.9.19
#[test]
fn accelerators_have_labels_and_resources() {
    let class = samples::class();
    let gpu = shape(&samples::g4dn_8xlarge(), &class);
    let label = |shape: &Shape, name: &str| {
        let key = format!("karpenter.k8s.aws/{name}");
        shape.requirements.get(&key).single().map(ToString::to_string)
    };
    assert_eq!(label(&gpu, "instance-gpu-name").as_deref(), Some("t4"));
    assert_eq!(label(&gpu, "instance-gpu-manufacturer").as_deref(), Some("nvidia"));
    assert_eq!(label(&gpu, "instance-gpu-memory").as_deref(), Some("16384"));
    assert_eq!(gpu.capacity.get("nvidia.com/gpu").to_string(), "1");
    assert_eq!(label(&gpu, "nitro-sandbox").as_deref(), Some("false"));
    let neuron = shape(&samples::trn1_2xlarge(), &class);
    assert_eq!(label(&neuron, "instance-accelerator-name").as_deref(), Some("trainium"));
    assert_eq!(
        label(&neuron, "instance-accelerator-manufacturer").as_deref(),
        Some("aws")
    );
    assert_eq!(neuron.capacity.get("aws.amazon.com/neuron").to_string(), "1");
    assert_eq!(neuron.capacity.get("aws.amazon.com/neuroncore").to_string(), "2");
    let efa = shape(&samples::m6idn_32xlarge(), &class);
    assert_eq!(efa.capacity.get("vpc.amazonaws.com/efa").to_string(), "2");
    for (manufacturer, resource) in [("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi")] {
        let mut info = samples::g4dn_8xlarge();
        info.gpus[0].manufacturer = manufacturer.to_owned();
        assert_eq!(
            shape(&info, &class).capacity.get(resource).to_string(),
            "1",
            "{resource}"
        );
    }
}

/// AW24.9.2, AW24.9.4
#[test]
fn trunking_windows_addresses_and_flex_follow_the_type() {
    let class = samples::class();
    let pod_eni = |info| shape(&info, &class).capacity.get(capacity::POD_ENI).to_string();
    assert_eq!(pod_eni(samples::m5_large()), "9");
    assert_eq!(pod_eni(samples::t3_large()), "0");
    let windows = class_of(AmiFamily::Windows2022, KubeletConfiguration::default());
    let private = |info| shape(&info, &windows).capacity.get(capacity::PRIVATE_IPV4).to_string();
    assert_eq!(private(samples::m5_large()), "9");
    assert_eq!(private(samples::plain("x99.large", 2, 8192, 3, 10)), "0");
    assert_eq!(
        shape(&samples::m5_large(), &class)
            .capacity
            .get(capacity::PRIVATE_IPV4)
            .to_string(),
        "0"
    );
    let arm = shape(&samples::m6g_large(), &windows);
    assert!(
        arm.requirements.get("kubernetes.io/os").is_empty(),
        "Windows does not run on arm64"
    );
    let flex = shape(&samples::plain("m7i-flex.large", 2, 8192, 3, 10), &class);
    let label = flex.requirements.get("karpenter.k8s.aws/instance-capability-flex");
    assert!(label.has("true"));
}

/// AW24.9.5, AW24.9.7
#[test]
fn pods_are_bounded_by_the_addresses_of_the_interfaces() {
    let pods = |info: &InstanceTypeInfo, class: &EC2NodeClass, reserved_enis: u32| {
        let options = Options {
            reserved_enis,
            ..samples::options()
        };
        shape_with(info, class, &options)
            .unwrap()
            .capacity
            .get("pods")
            .value_ceil()
    };
    let plain = samples::class();
    assert_eq!(pods(&samples::t3_large(), &plain, 0), 35);
    assert_eq!(pods(&samples::m6idn_32xlarge(), &plain, 0), 394);
    let with = |card: i32| {
        let mut class = samples::class();
        class.spec.network_interfaces = Some(vec![
            interface(0, 0, InterfaceType::Interface),
            interface(card, 1, InterfaceType::EfaOnly),
        ]);
        class
    };
    assert_eq!(pods(&samples::m6idn_32xlarge(), &with(0), 0), 345);
    assert_eq!(pods(&samples::m6idn_32xlarge(), &with(1), 0), 394);
    assert_eq!(pods(&samples::t3_large(), &plain, 1), 24);
    assert_eq!(pods(&samples::t3_large(), &plain, 9), 0);
}

/// AW24.9.6, AW24.9.8
#[test]
fn families_differ_in_pods_and_in_what_the_kubelet_reserves() {
    use AmiFamily::{Al2, Al2023, Bottlerocket, Custom, Windows2022};
    let max_pods = |pods| KubeletConfiguration {
        max_pods: Some(IntOrString::Int(pods)),
        ..KubeletConfiguration::default()
    };
    let per_core = |cores, max_pods: Option<i32>| KubeletConfiguration {
        pods_per_core: Some(cores),
        max_pods: max_pods.map(IntOrString::Int),
        ..KubeletConfiguration::default()
    };
    let plain = KubeletConfiguration::default;
    let table = [
        (Al2, plain(), 0, 35, "640Mi"),
        (Al2, max_pods(10), 0, 10, "640Mi"),
        (Al2023, max_pods(10), 0, 10, "640Mi"),
        (Custom, max_pods(10), 0, 10, "640Mi"),
        (Bottlerocket, max_pods(10), 0, 10, "365Mi"),
        (Windows2022, max_pods(10), 0, 10, "365Mi"),
        (Windows2022, plain(), 0, 110, "1465Mi"),
        (Bottlerocket, plain(), 1, 24, "519Mi"),
        (Al2023, plain(), 1, 24, "640Mi"),
        (Al2023, per_core(4, None), 0, 8, "640Mi"),
        (Al2023, per_core(4, Some(5)), 0, 5, "640Mi"),
        (Al2023, per_core(0, None), 0, 35, "640Mi"),
        (Bottlerocket, per_core(4, None), 0, 35, "640Mi"),
    ];
    for (family, kubelet, reserved_enis, pods, memory) in table {
        let case = format!("{family} {kubelet:?}");
        let options = Options {
            reserved_enis,
            ..samples::options()
        };
        let shape = shape_with(&samples::t3_large(), &class_of(family, kubelet), &options).unwrap();
        assert_eq!(shape.capacity.get("pods").value_ceil(), pods, "{case}");
        assert_eq!(shape.overhead.kube_reserved.get("memory").to_string(), memory, "{case}");
    }
}

/// AW24.9.9
#[test]
fn the_class_replaces_what_is_kept_back() {
    let shown = |kubelet: KubeletConfiguration| {
        let shape = shape(&samples::t3_large(), &class_of(AmiFamily::Al2023, kubelet));
        let overhead = &shape.overhead;
        format!(
            "{} | {} | {}",
            overhead.kube_reserved, overhead.system_reserved, overhead.eviction_threshold
        )
    };
    let plain = KubeletConfiguration::default;
    expect!["cpu=70m ephemeral-storage=1Gi memory=640Mi | nothing | ephemeral-storage=2Gi memory=100Mi"]
        .assert_eq(&shown(plain()));
    expect!["cpu=1 ephemeral-storage=1Gi memory=640Mi | memory=2Gi | ephemeral-storage=2Gi memory=100Mi"].assert_eq(
        &shown(KubeletConfiguration {
            kube_reserved: amounts(&[("cpu", "1")]),
            system_reserved: amounts(&[("memory", "2Gi")]),
            eviction_soft: amounts(&[("memory.available", "5Gi")]),
            ..plain()
        }),
    );
    let hard = |memory: &str, storage: &str| KubeletConfiguration {
        eviction_hard: amounts(&[("memory.available", memory), ("nodefs.available", storage)]),
        eviction_soft: amounts(&[("memory.available", "5Gi")]),
        ..plain()
    };
    assert!(shown(hard("500Mi", "5Gi")).ends_with("ephemeral-storage=5Gi memory=500Mi"));
    assert!(shown(hard("100%", "50%")).ends_with("ephemeral-storage=10Gi memory=0"));
    let ten_percent = shape(&samples::t3_large(), &class_of(AmiFamily::Al2023, hard("10%", "10%")));
    let memory = ten_percent.overhead.eviction_threshold.get("memory");
    assert_eq!(memory.value_ceil(), (7577.0_f64 * 1024.0 * 1024.0 / 10.0).ceil() as i64);
}

/// AW24.9.10, AW24.9.15
#[test]
fn memory_is_what_the_hypervisor_leaves_and_unreadable_settings_are_named() {
    let class = samples::class();
    let memory = |info| shape(&info, &class).capacity.get("memory").to_string();
    assert_eq!(memory(samples::t3_large()), "7577Mi");
    assert_eq!(memory(samples::m6g_large()), "7518Mi");
    let bad = class_of(
        AmiFamily::Al2023,
        KubeletConfiguration {
            eviction_hard: amounts(&[("memory.available", "much")]),
            ..KubeletConfiguration::default()
        },
    );
    let error = shape_with(&samples::t3_large(), &bad, &samples::options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"spec.kubelet.evictionHard.memory.available: "much" cannot be read"#
    );
}

/// AW24.9.12
#[test]
fn ephemeral_storage_is_that_of_the_volume_in_use() {
    let volume = |device: &str, size: Option<&str>, root: bool| BlockDeviceMapping {
        device_name: Some(device.to_owned()),
        ebs: Some(BlockDevice {
            volume_size: size.map(str::to_owned),
            snapshot_id: Some("snap-1".to_owned()),
            ..BlockDevice::default()
        }),
        root_volume: Some(root),
    };
    let table = [
        (AmiFamily::Al2023, vec![], "20Gi"),
        (AmiFamily::Windows2022, vec![], "50Gi"),
        (AmiFamily::Custom, vec![], "20Gi"),
        (
            AmiFamily::Custom,
            vec![
                volume("/dev/a", Some("30Gi"), false),
                volume("/dev/b", Some("40Gi"), false),
            ],
            "40Gi",
        ),
        (AmiFamily::Al2, vec![volume("/dev/xvda", None, false)], "20Gi"),
        (AmiFamily::Bottlerocket, vec![volume("/dev/xvdb", None, false)], "20Gi"),
        (
            AmiFamily::Bottlerocket,
            vec![volume("/dev/xvdb", Some("100Gi"), false)],
            "100Gi",
        ),
        (
            AmiFamily::Al2023,
            vec![
                volume("/dev/other", Some("60Gi"), true),
                volume("/dev/xvda", Some("5Gi"), false),
            ],
            "60Gi",
        ),
    ];
    for (family, volumes, expected) in table {
        let mut class = class_of(family.clone(), KubeletConfiguration::default());
        class.spec.block_device_mappings = Some(volumes.clone());
        let storage = shape(&samples::m6idn_32xlarge(), &class)
            .capacity
            .get("ephemeral-storage");
        assert_eq!(storage.to_string(), expected, "{family} {volumes:?}");
    }
    let mut raid = samples::class();
    raid.spec.instance_store_policy = Some(InstanceStorePolicy::Raid0);
    let storage = |info| shape(&info, &raid).capacity.get("ephemeral-storage").to_string();
    assert_eq!(storage(samples::m6idn_32xlarge()), "7600G");
    assert_eq!(
        storage(samples::t3_large()),
        "20Gi",
        "a type without disks keeps its volume"
    );
}

/// AW24.9.18
#[test]
fn some_classes_cannot_use_some_types() {
    let why = |info: &InstanceTypeInfo, class: &EC2NodeClass| shape(info, class).incompatible;
    assert_eq!(why(&samples::a1_large(), &samples::class()), Some(Incompatible::Image));
    let bottlerocket = class_of(AmiFamily::Bottlerocket, KubeletConfiguration::default());
    assert_eq!(why(&samples::a1_large(), &bottlerocket), None);

    let mut arm = samples::class();
    arm.status.get_or_insert_default().amis = Some(vec![samples::ami("ami-arm", "arm64")]);
    assert_eq!(why(&samples::m5_large(), &arm), Some(Incompatible::NoImage));
    assert_eq!(why(&samples::m6g_large(), &arm), None);
    arm.status.get_or_insert_default().amis = None;
    assert_eq!(why(&samples::m5_large(), &arm), None, "images are not known yet");

    let mut interfaces = samples::class();
    interfaces.spec.network_interfaces = Some(vec![
        interface(0, 0, InterfaceType::Interface),
        interface(1, 1, InterfaceType::EfaOnly),
    ]);
    assert_eq!(why(&samples::m6idn_32xlarge(), &interfaces), None);
    assert_eq!(
        why(&samples::m5_large(), &interfaces),
        Some(Incompatible::NetworkInterfaces)
    );
    let mut old = samples::m6idn_32xlarge();
    old.network.ena = false;
    assert_eq!(why(&old, &interfaces), Some(Incompatible::NetworkInterfaces));

    let mut nested = samples::class();
    nested.spec.cpu_options = Some(CpuOptions {
        nested_virtualization: Some(Switch::Enabled),
    });
    let mut able = samples::m5_large();
    able.processor_features = vec!["nested-virtualization".to_owned()];
    assert_eq!(why(&able, &nested), None);
    assert_eq!(
        why(&samples::m5_large(), &nested),
        Some(Incompatible::NestedVirtualization)
    );

    let mut tracking = samples::class();
    tracking.spec.connection_tracking = Some(ConnectionTracking::default());
    assert_eq!(why(&samples::m5_large(), &tracking), None);
    assert_eq!(
        why(&samples::m5_metal(), &tracking),
        Some(Incompatible::ConnectionTracking)
    );
}
