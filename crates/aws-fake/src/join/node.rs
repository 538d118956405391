//! The node object that a kubelet registers, with the labels that the cloud's node controller adds.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeAddress, NodeSpec, NodeStatus, NodeSystemInfo, Taint as NodeTaint},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::api::ObjectMeta;

use crate::{
    facts::InstanceType,
    region::{Region, instances::Instance},
    user_data::Bootstrap,
};

/// The share of the memory that the hypervisor and the kernel leave to the kubelet.
const MEMORY_SHARE: f64 = 0.95;
/// The root volume of images that are launched without a word about volumes.
const ROOT_GIB: u32 = 20;
/// What kubelets evict at.
const EVICTION_MIB: u64 = 100;

pub fn object(region: &Region, instance: &Instance, bootstrap: &Bootstrap) -> Node {
    let name = instance.private_dns(&region.plan.region);
    let system = if instance.windows { "windows" } else { "linux" };
    let architecture = if instance.architecture == "arm64" {
        "arm64"
    } else {
        "amd64"
    };
    let mut labels = bootstrap.labels.clone();
    for (key, value) in [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", system),
        ("kubernetes.io/arch", architecture),
        ("node.kubernetes.io/instance-type", &instance.fact.name),
        ("topology.kubernetes.io/zone", &instance.zone),
        ("topology.kubernetes.io/region", &region.plan.region),
        ("topology.k8s.aws/zone-id", &instance.zone_id),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let taints = bootstrap.taints.iter().map(|taint| NodeTaint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.clone(),
        time_added: None,
    });
    // Bottlerocket keeps pods on its second volume, which is the larger; the others have one.
    let gibibytes = instance.volumes.iter().map(|volume| volume.gibibytes).max();
    let (capacity, allocatable) = resources(&instance.fact, bootstrap, gibibytes.unwrap_or(ROOT_GIB));
    let address = |kind: &str, address: &str| NodeAddress {
        type_: kind.to_owned(),
        address: address.to_owned(),
    };
    Node {
        metadata: ObjectMeta {
            // The world's kubelet acts for nodes with this annotation only.
            annotations: Some(BTreeMap::from([("kwok.x-k8s.io/node".to_owned(), "fake".to_owned())])),
            labels: Some(labels),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(instance.provider_id()),
            taints: Some(taints.collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: Some(capacity),
            allocatable: Some(allocatable),
            addresses: Some(vec![
                address("InternalIP", &instance.address),
                address("InternalDNS", &name),
                address("Hostname", &name),
            ]),
            node_info: Some(NodeSystemInfo {
                architecture: architecture.to_owned(),
                operating_system: system.to_owned(),
                kubelet_version: format!("v{}.0-eks-fake", region.plan.version),
                os_image: "aws-fake".to_owned(),
                container_runtime_version: "containerd://2.0.0".to_owned(),
                machine_id: instance.id.clone(),
                system_uuid: instance.id.clone(),
                boot_id: instance.id.clone(),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

type Amounts = BTreeMap<String, Quantity>;

/// What the machine has, and what of it pods can have. Devices are there as if their plugins ran.
fn resources(fact: &InstanceType, bootstrap: &Bootstrap, gibibytes: u32) -> (Amounts, Amounts) {
    let pods = bootstrap.max_pods.unwrap_or(110);
    let memory = mebibytes(fact.memory_mib);
    let devices = devices(fact);
    let amounts = |cpu: String, memory: u64, gibibytes: u32| {
        let mut all = Amounts::from([
            ("cpu".to_owned(), Quantity(cpu)),
            ("memory".to_owned(), Quantity(format!("{memory}Mi"))),
            ("ephemeral-storage".to_owned(), Quantity(format!("{gibibytes}Gi"))),
            ("pods".to_owned(), Quantity(pods.to_string())),
        ]);
        all.extend(
            devices
                .iter()
                .map(|(name, count)| ((*name).to_owned(), Quantity(count.to_string()))),
        );
        all
    };
    let reserved = 255 + 11 * u64::from(pods) + EVICTION_MIB;
    let millis = u64::from(fact.vcpus) * 1000 - reserved_millis(fact.vcpus);
    (
        amounts(fact.vcpus.to_string(), memory, gibibytes),
        // A tenth is what kubelets evict at, and one gibibyte is reserved.
        amounts(
            format!("{millis}m"),
            memory.saturating_sub(reserved),
            (gibibytes - gibibytes.div_ceil(10)).saturating_sub(1),
        ),
    )
}

fn mebibytes(advertised: u64) -> u64 {
    let advertised = u32::try_from(advertised).unwrap_or(u32::MAX);
    // The conversion drops what is less than a mebibyte.
    let share = (f64::from(advertised) * MEMORY_SHARE).floor();
    format!("{share:.0}").parse().unwrap_or(0)
}

/// What EKS images reserve: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest.
fn reserved_millis(vcpus: u32) -> u64 {
    let cores = u64::from(vcpus);
    let band = |from: u64, to: u64, per_core: u64| cores.min(to).saturating_sub(from) * per_core;
    // In hundredths of a millicore, because a quarter of a per cent of a core is 2.5.
    (band(0, 1, 6000) + band(1, 2, 1000) + band(2, 4, 500) + band(4, u64::MAX, 250)) / 100
}

fn devices(fact: &InstanceType) -> Vec<(&'static str, u64)> {
    let count = |manufacturer: &str| -> u64 {
        let gpus = fact.gpus.iter().filter(|gpu| gpu.kind == manufacturer);
        gpus.map(|gpu| u64::from(gpu.count)).sum()
    };
    let neuron: u64 = fact.neuron.iter().map(|device| u64::from(device.count)).sum();
    let cores = fact
        .neuron
        .iter()
        .map(|device| u64::from(device.count) * device.kind.parse().unwrap_or(0))
        .sum();
    let all = [
        ("nvidia.com/gpu", count("NVIDIA")),
        ("amd.com/gpu", count("AMD")),
        ("habana.ai/gaudi", count("Habana")),
        ("aws.amazon.com/neuron", neuron),
        ("aws.amazon.com/neuroncore", cores),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::market::fact;

    fn shown(name: &str, max_pods: u32) -> Vec<String> {
        let bootstrap = Bootstrap {
            max_pods: Some(max_pods),
            ..Bootstrap::default()
        };
        let (capacity, allocatable) = resources(fact(name).expect("a type of the table"), &bootstrap, 20);
        let line = |(key, whole): (&String, &Quantity)| format!("{key} {} of {}", allocatable[key].0, whole.0);
        capacity.iter().map(line).collect()
    }

    #[test]
    fn nodes_offer_less_than_they_have() {
        let expected = [
            "cpu 1930m of 2",
            "ephemeral-storage 17Gi of 20Gi",
            "memory 7108Mi of 7782Mi",
            "pods 29 of 29",
        ];
        assert_eq!(shown("m5.large", 29), expected);
    }

    #[test]
    fn devices_are_there_as_if_their_plugins_ran() {
        assert!(shown("p4d.24xlarge", 110).contains(&"nvidia.com/gpu 8 of 8".to_owned()));
        let chips = shown("inf2.xlarge", 58);
        assert!(
            chips.contains(&"aws.amazon.com/neuroncore 2 of 2".to_owned()),
            "{chips:?}"
        );
    }

    #[test]
    fn cores_are_reserved_as_eks_images_do() {
        for (vcpus, expected) in [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310)] {
            assert_eq!(reserved_millis(vcpus), expected, "{vcpus}");
        }
    }
}
