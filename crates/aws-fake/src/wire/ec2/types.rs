//! DescribeInstanceTypes and DescribeInstanceTypeOfferings.

use std::sync::Arc;

use super::{filters, unless_dry};
use crate::{
    facts::{InstanceType, Part},
    refusal::Refusal,
    region::{
        Region, Tags,
        filter::{Filtered, admit, admitted},
        market,
        network::zone_id,
    },
    wire::{query::Params, query_page, xml::Xml},
};

pub fn describe(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["Filter", "InstanceType", "MaxResults", "NextToken"])?;
    let asked = params.texts("InstanceType");
    if let Some(unknown) = asked.iter().find(|name| market::fact(name).is_none()) {
        let message = format!("The following supplied instance types do not exist: [{unknown}]");
        return Err(Refusal::new("InvalidInstanceType", message));
    }
    unless_dry(params)?;
    let all = region.types().map(AsRef::as_ref);
    let mut found = admitted(all, &filters(params)?)?;
    found.retain(|fact| asked.is_empty() || asked.contains(&fact.name));
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("instanceTypeSet", found, write);
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for InstanceType {
    fn tags(&self) -> &Tags {
        static NONE: Tags = Tags::new();
        &NONE
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        Some(match name {
            "instance-type" => vec![self.name.clone()],
            "supported-virtualization-type" => self.virtualization.clone(),
            "processor-info.supported-architecture" => self.architectures.clone(),
            "supported-usage-class" => self.usage_classes.clone(),
            "bare-metal" => vec![self.bare_metal.to_string()],
            "current-generation" => vec![self.current_generation.to_string()],
            "burstable-performance-supported" => vec![self.burstable.to_string()],
            "hypervisor" => self.hypervisor.iter().cloned().collect(),
            "instance-storage-supported" => vec![(!self.disks.is_empty()).to_string()],
            "vcpu-info.default-vcpus" => vec![self.vcpus.to_string()],
            "memory-info.size-in-mib" => vec![self.memory_mib.to_string()],
            _ => return None,
        })
    }
}

fn write(xml: &mut Xml, fact: &InstanceType) {
    xml.leaf("instanceType", &fact.name);
    xml.leaf("currentGeneration", fact.current_generation);
    xml.leaf("freeTierEligible", false);
    xml.words("supportedUsageClasses", &fact.usage_classes);
    xml.words("supportedRootDeviceTypes", ["ebs"]);
    xml.words("supportedVirtualizationTypes", &fact.virtualization);
    xml.leaf("bareMetal", fact.bare_metal);
    xml.maybe("hypervisor", fact.hypervisor.as_ref());
    xml.node("processorInfo", |xml| {
        xml.words("supportedArchitectures", &fact.architectures);
        xml.maybe("sustainedClockSpeedInGhz", fact.clock_ghz);
        if !fact.cpu_features.is_empty() {
            xml.words("supportedFeatures", &fact.cpu_features);
        }
        xml.leaf("manufacturer", &fact.cpu_manufacturer);
    });
    xml.node("vCpuInfo", |xml| {
        xml.leaf("defaultVCpus", fact.vcpus);
        xml.leaf("defaultCores", fact.vcpus / fact.threads_per_core.max(1));
        xml.leaf("defaultThreadsPerCore", fact.threads_per_core);
    });
    xml.node("memoryInfo", |xml| xml.leaf("sizeInMiB", fact.memory_mib));
    xml.leaf("instanceStorageSupported", !fact.disks.is_empty());
    if !fact.disks.is_empty() {
        xml.node("instanceStorageInfo", |xml| {
            xml.leaf("totalSizeInGB", total(&fact.disks));
            xml.items("disks", &fact.disks, |xml, disk| {
                xml.leaf("sizeInGB", disk.size);
                xml.leaf("count", disk.count);
                xml.leaf("type", &disk.kind);
            });
            xml.leaf("nvmeSupport", &fact.disks_nvme);
        });
    }
    write_ebs(xml, fact);
    write_network(xml, fact);
    write_devices(xml, fact);
    xml.node("placementGroupInfo", |xml| {
        xml.words("supportedStrategies", &fact.placement_strategies);
    });
    xml.leaf("burstablePerformanceSupported", fact.burstable);
    xml.leaf(
        "nitroEnclavesSupport",
        if fact.enclaves { "supported" } else { "unsupported" },
    );
}

fn total(parts: &[Part]) -> u64 {
    parts.iter().map(|part| u64::from(part.count) * part.size).sum()
}

fn write_ebs(xml: &mut Xml, fact: &InstanceType) {
    xml.node("ebsInfo", |xml| {
        xml.leaf("ebsOptimizedSupport", &fact.ebs.optimized);
        xml.leaf("encryptionSupport", "supported");
        if let (Some((mbps, max_mbps)), Some((iops, max_iops))) = (fact.ebs.mbps, fact.ebs.iops) {
            xml.node("ebsOptimizedInfo", |xml| {
                xml.leaf("baselineBandwidthInMbps", mbps);
                xml.leaf("baselineThroughputInMBps", f64::from(mbps) / 8.0);
                xml.leaf("baselineIops", iops);
                xml.leaf("maximumBandwidthInMbps", max_mbps);
                xml.leaf("maximumThroughputInMBps", f64::from(max_mbps) / 8.0);
                xml.leaf("maximumIops", max_iops);
            });
        }
        xml.leaf("nvmeSupport", &fact.ebs.nvme);
    });
}

fn write_network(xml: &mut Xml, fact: &InstanceType) {
    let network = &fact.network;
    xml.node("networkInfo", |xml| {
        xml.leaf("networkPerformance", &network.performance);
        xml.leaf("maximumNetworkInterfaces", fact.interfaces());
        xml.leaf("maximumNetworkCards", network.cards.len());
        xml.leaf("defaultNetworkCardIndex", 0);
        xml.items(
            "networkCards",
            network.cards.iter().enumerate(),
            |xml, (index, card)| {
                xml.leaf("networkCardIndex", index);
                xml.leaf("networkPerformance", &network.performance);
                xml.leaf("maximumNetworkInterfaces", card.interfaces);
                xml.maybe("peakBandwidthInGbps", card.gbps);
            },
        );
        xml.leaf("ipv4AddressesPerInterface", network.ipv4_per_interface);
        xml.leaf("ipv6AddressesPerInterface", network.ipv6_per_interface);
        xml.leaf("ipv6Supported", network.ipv6_per_interface > 0);
        xml.leaf("enaSupport", &network.ena);
        xml.leaf("efaSupported", network.efa_interfaces.is_some());
        if let Some(most) = network.efa_interfaces {
            xml.node("efaInfo", |xml| xml.leaf("maximumEfaInterfaces", most));
        }
        xml.leaf("encryptionInTransitSupported", network.encrypted);
    });
}

fn write_devices(xml: &mut Xml, fact: &InstanceType) {
    if !fact.gpus.is_empty() {
        xml.node("gpuInfo", |xml| {
            xml.items("gpus", &fact.gpus, write_device);
            xml.leaf("totalGpuMemoryInMiB", total(&fact.gpus));
        });
    }
    if !fact.accelerators.is_empty() {
        xml.node("inferenceAcceleratorInfo", |xml| {
            // Alone among EC2's lists this one has members.
            xml.members("accelerators", &fact.accelerators, write_device);
            xml.leaf("totalInferenceMemoryInMiB", total(&fact.accelerators));
        });
    }
    if !fact.neuron.is_empty() {
        xml.node("neuronInfo", |xml| {
            xml.items("neuronDevices", &fact.neuron, |xml, device| {
                xml.leaf("count", device.count);
                xml.leaf("name", &device.name);
                xml.node("coreInfo", |xml| xml.leaf("count", &device.kind));
                xml.node("memoryInfo", |xml| xml.leaf("sizeInMiB", device.size));
            });
            xml.leaf("totalNeuronDeviceMemoryInMiB", total(&fact.neuron));
        });
    }
}

fn write_device(xml: &mut Xml, device: &Part) {
    xml.leaf("name", &device.name);
    xml.leaf("manufacturer", &device.kind);
    xml.leaf("count", device.count);
    xml.node("memoryInfo", |xml| xml.leaf("sizeInMiB", device.size));
}

/// A type in a place.
struct Offered {
    instance_type: String,
    location: String,
}

impl Filtered for Offered {
    fn tags(&self) -> &Tags {
        static NONE: Tags = Tags::new();
        &NONE
    }

    fn field(&self, name: &str) -> Option<Vec<String>> {
        match name {
            "instance-type" => Some(vec![self.instance_type.clone()]),
            "location" => Some(vec![self.location.clone()]),
            _ => None,
        }
    }
}

pub fn offerings(region: &Region, params: &Params) -> Result<Xml, Refusal> {
    params.only(&["Filter", "LocationType", "MaxResults", "NextToken"])?;
    unless_dry(params)?;
    let kind = params.text("LocationType").unwrap_or("region");
    let name = &region.plan.region;
    let places = |fact: &Arc<InstanceType>| -> Result<Vec<String>, Refusal> {
        match kind {
            "region" => Ok(vec![name.clone()]),
            "availability-zone" => Ok(fact.zones.chars().map(|letter| format!("{name}{letter}")).collect()),
            "availability-zone-id" => Ok(fact.zones.chars().map(|letter| zone_id(name, letter)).collect()),
            other => Err(Refusal::bad_value(format!("Invalid value '{other}' for LocationType"))),
        }
    };
    let filters = filters(params)?;
    let mut found = Vec::new();
    for fact in region.types() {
        for location in places(fact)? {
            let offered = Offered {
                instance_type: fact.name.clone(),
                location,
            };
            if admit(&offered, &filters)? {
                found.push(offered);
            }
        }
    }
    let (found, next) = query_page(found, params)?;
    let mut xml = Xml::default();
    xml.items("instanceTypeOfferingSet", found, |xml, offered| {
        xml.leaf("instanceType", offered.instance_type);
        xml.leaf("locationType", kind);
        xml.leaf("location", offered.location);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}
