//! What a machine of a type has.

use api::aws::{AmiFamily, BlockDeviceMapping, InstanceStorePolicy};
use model::{Quantity, ResourceName, Resources};

use super::{Setting, Unreadable, quantity};
use crate::{class_view, facts, family, ports::InstanceTypeInfo};

const MIB: i64 = 1 << 20;
/// What machines with arm processors lack of the memory that EC2 names.
const ARM_DEDUCTION_MIB: i64 = 64;
const DEFAULT_STORAGE: Quantity = Quantity::from_bytes(20 << 30);

pub const POD_ENI: &str = "vpc.amazonaws.com/pod-eni";
pub const PRIVATE_IPV4: &str = "vpc.amazonaws.com/PrivateIPv4Address";
pub const EFA: &str = "vpc.amazonaws.com/efa";
const NVIDIA: &str = "nvidia.com/gpu";
const AMD: &str = "amd.com/gpu";
const GAUDI: &str = "habana.ai/gaudi";
const NEURON: &str = "aws.amazon.com/neuron";
const NEURON_CORE: &str = "aws.amazon.com/neuroncore";

/// Resources that make a type too dear for pods that did not ask for them.
pub const ACCELERATORS: &[&str] = &[NVIDIA, AMD, NEURON, NEURON_CORE, GAUDI];

pub(super) fn capacity(info: &InstanceTypeInfo, pods: i64, setting: &Setting<'_>) -> Result<Resources, Unreadable> {
    let gpus = |manufacturer: &str| -> i64 {
        let own = info.gpus.iter().filter(|gpu| gpu.manufacturer == manufacturer);
        own.map(|gpu| gpu.count).sum()
    };
    let ami_family = class_view::family(setting.class);
    let facts = facts::network(&info.name);
    let private_ipv4 = match family::is_windows(&ami_family) && info.architectures.iter().any(|arch| arch == "x86_64") {
        true => facts.ipv4_per_interface.map_or(0, |addresses| addresses - 1),
        false => 0,
    };
    let efa = match setting.class.spec.network_interfaces {
        Some(_) => class_view::efa_only_interfaces(setting.class) as i64,
        None => info.network.max_efa_interfaces,
    };
    let counts = [
        ("cpu", info.vcpus),
        ("pods", pods),
        (POD_ENI, facts.branch_interfaces.unwrap_or(0)),
        (PRIVATE_IPV4, private_ipv4),
        (NVIDIA, gpus("NVIDIA")),
        (AMD, gpus("AMD")),
        (GAUDI, gpus("Habana")),
        (NEURON, info.neuron.iter().map(|device| device.count).sum()),
        (
            NEURON_CORE,
            info.neuron.first().map_or(0, |device| device.count * device.cores),
        ),
        (EFA, efa),
    ];
    let mut all: Resources = counts
        .into_iter()
        .map(|(name, count)| (ResourceName::from(name), Quantity::from_int(count)))
        .collect();
    all.set(ResourceName::MEMORY, memory(info, setting.options.vm_memory_overhead));
    all.set(ResourceName::EPHEMERAL_STORAGE, ephemeral_storage(info, setting)?);
    Ok(all)
}

/// What EC2 names, less what the hypervisor keeps.
fn memory(info: &InstanceTypeInfo, overhead: f64) -> Quantity {
    let is_arm = info.architectures.first().is_some_and(|arch| arch == "arm64");
    let named = info.memory_mib - if is_arm { ARM_DEDUCTION_MIB } else { 0 };
    let kept = ((named * MIB) as f64 * overhead / 1024.0 / 1024.0).ceil() as i64;
    Quantity::from_bytes((named - kept) * MIB)
}

fn ephemeral_storage(info: &InstanceTypeInfo, setting: &Setting<'_>) -> Result<Quantity, Unreadable> {
    let spec = &setting.class.spec;
    if let (Some(InstanceStorePolicy::Raid0), Some(storage)) = (&spec.instance_store_policy, &info.storage) {
        return Ok(Quantity::from_int(storage.total_gb * 1_000_000_000));
    }
    let ami_family = class_view::family(setting.class);
    let mappings = spec.block_device_mappings.as_deref().unwrap_or_default();
    let root = mappings.iter().find(|mapping| mapping.root_volume == Some(true));
    if let Some(size) = root.and_then(size_text) {
        return quantity("blockDeviceMappings", size);
    }
    if ami_family == AmiFamily::Custom {
        // Only the image knows which device is the root; the last one is where most put it.
        return match mappings.last().and_then(size_text) {
            Some(size) => quantity("blockDeviceMappings", size),
            None => Ok(DEFAULT_STORAGE),
        };
    }
    let device = family::ephemeral_device(&ami_family);
    let on_device = |mapping: &&BlockDeviceMapping| mapping.device_name.as_deref() == device;
    let defaults = family::default_volumes(&ami_family);
    let named = mappings.iter().find(on_device).and_then(size_text);
    let size = named.or_else(|| defaults.iter().find(on_device).and_then(size_text));
    size.map_or(Ok(DEFAULT_STORAGE), |size| quantity("blockDeviceMappings", size))
}

fn size_text(mapping: &BlockDeviceMapping) -> Option<&str> {
    mapping.ebs.as_ref()?.volume_size.as_deref()
}
