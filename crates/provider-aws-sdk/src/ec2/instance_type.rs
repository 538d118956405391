//! An instance type, as DescribeInstanceTypes describes it.

use aws_sdk_ec2::types::{
    self, EbsInfo, EbsOptimizedSupport, EnaSupport, EphemeralNvmeSupport, GpuDeviceInfo, InferenceDeviceInfo,
    NetworkCardInfo, NeuronDeviceInfo, NitroEnclavesSupport,
};
use provider_aws::ports::{
    AcceleratorInfo, GpuInfo, InstanceStorage, InstanceTypeInfo, NetworkCard, NetworkInfo, NeuronInfo,
};

use crate::words::{word, words};

pub(super) fn read(info: types::InstanceTypeInfo) -> InstanceTypeInfo {
    let processor = info.processor_info;
    let processor = processor.as_ref();
    InstanceTypeInfo {
        name: word(info.instance_type.as_ref()),
        architectures: words(processor.map(types::ProcessorInfo::supported_architectures)),
        usage_classes: words(info.supported_usage_classes.as_deref()),
        vcpus: number(info.v_cpu_info.and_then(|cpus| cpus.default_v_cpus)),
        manufacturer: processor.and_then(|processor| processor.manufacturer.clone()),
        clock_ghz: processor.and_then(|processor| processor.sustained_clock_speed_in_ghz),
        processor_features: words(processor.map(types::ProcessorInfo::supported_features)),
        memory_mib: info.memory_info.and_then(|memory| memory.size_in_mib).unwrap_or(0),
        ebs_bandwidth_mbps: info.ebs_info.and_then(ebs_bandwidth),
        storage: info.instance_storage_info.and_then(storage),
        gpus: list(info.gpu_info.and_then(|gpus| gpus.gpus), gpu),
        inference_accelerators: list(
            info.inference_accelerator_info.and_then(|info| info.accelerators),
            accelerator,
        ),
        neuron: list(info.neuron_info.and_then(|neuron| neuron.neuron_devices), neuron),
        hypervisor: word(info.hypervisor.as_ref()),
        nitro_enclaves: info.nitro_enclaves_support == Some(NitroEnclavesSupport::Supported),
        network: info.network_info.map(network).unwrap_or_default(),
        placement_strategies: words(
            info.placement_group_info
                .as_ref()
                .map(types::PlacementGroupInfo::supported_strategies),
        ),
    }
}

fn number(number: Option<i32>) -> i64 {
    i64::from(number.unwrap_or(0))
}

fn list<T, U>(items: Option<Vec<T>>, read: fn(T) -> U) -> Vec<U> {
    items.into_iter().flatten().map(read).collect()
}

fn ebs_bandwidth(ebs: EbsInfo) -> Option<i64> {
    let by_default = ebs.ebs_optimized_support == Some(EbsOptimizedSupport::Default);
    let optimized = ebs.ebs_optimized_info.filter(|_| by_default)?;
    Some(number(optimized.maximum_bandwidth_in_mbps))
}

fn storage(storage: types::InstanceStorageInfo) -> Option<InstanceStorage> {
    Some(InstanceStorage {
        total_gb: storage.total_size_in_gb?,
        nvme: storage.nvme_support != Some(EphemeralNvmeSupport::Unsupported),
    })
}

fn gpu(device: GpuDeviceInfo) -> GpuInfo {
    GpuInfo {
        name: device.name.unwrap_or_default(),
        manufacturer: device.manufacturer.unwrap_or_default(),
        count: number(device.count),
        memory_mib: number(device.memory_info.and_then(|memory| memory.size_in_mib)),
    }
}

fn accelerator(device: InferenceDeviceInfo) -> AcceleratorInfo {
    AcceleratorInfo {
        name: device.name.unwrap_or_default(),
        manufacturer: device.manufacturer.unwrap_or_default(),
        count: number(device.count),
    }
}

fn neuron(device: NeuronDeviceInfo) -> NeuronInfo {
    NeuronInfo {
        name: device.name.unwrap_or_default(),
        count: number(device.count),
        cores: number(device.core_info.and_then(|cores| cores.count)),
    }
}

fn network(network: types::NetworkInfo) -> NetworkInfo {
    NetworkInfo {
        default_card: number(network.default_network_card_index),
        cards: list(network.network_cards, card),
        ipv4_per_interface: number(network.ipv4_addresses_per_interface),
        max_efa_interfaces: number(network.efa_info.and_then(|efa| efa.maximum_efa_interfaces)),
        // Absent counts as present: upstream refuses types that say `unsupported`, and no others.
        ena: network.ena_support != Some(EnaSupport::Unsupported),
        encryption_in_transit: network.encryption_in_transit_supported.unwrap_or(false),
    }
}

fn card(card: NetworkCardInfo) -> NetworkCard {
    NetworkCard {
        index: number(card.network_card_index),
        max_interfaces: number(card.maximum_network_interfaces),
    }
}
