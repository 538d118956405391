//! The hash of an EC2NodeClass: its spec without the selectors, its image family, and the cluster's certificate.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::Quantity;
use serde_json::Value;

use super::{Struct, boolean, go_duration, int32, int64, list, map, plain_int32, plain_text, text, text_map};
use crate::aws::{
    AmiFamily, BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, EC2NodeClassSpec, KubeletConfiguration,
    MetadataOptions, NetworkInterface, PlacementGroupSelector,
};
use crate::field_error::FieldError;

/// The versions of the hash. They differ in how kubelet settings enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ec2Version {
    /// Kubelet settings as a struct inside the spec: upstream 1.12 to 1.14, and what we publish.
    V5,
    /// Kubelet settings as JSON text beside the spec: upstream after 1.14.
    V6,
}

impl Ec2Version {
    pub fn as_str(self) -> &'static str {
        match self {
            Ec2Version::V5 => "v5",
            Ec2Version::V6 => "v6",
        }
    }
}

/// The hash of everything in the class whose change makes nodes drift.
///
/// `ca_bundle` is the cluster's certificate as the controller knows it, empty when it does not.
///
/// # Errors
///
/// If a duration or a volume size cannot be read.
pub fn ec2_node_class(spec: &EC2NodeClassSpec, ca_bundle: &str, version: Ec2Version) -> Result<String, FieldError> {
    let mut parts = vec![
        spec_hash(spec, version)?,
        text(ami_family(spec).as_str()),
        text(ca_bundle),
    ];
    if version == Ec2Version::V6 {
        parts.push(text(&kubelet_text(spec.kubelet.as_ref())));
    }
    Ok(list(parts).to_string())
}

/// The family in use: as given, or that of the alias, or Custom.
pub fn ami_family(spec: &EC2NodeClassSpec) -> AmiFamily {
    if let Some(family) = &spec.ami_family {
        return family.clone();
    }
    let alias = spec.ami_selector_terms.iter().find_map(|term| term.alias.as_deref());
    match alias.and_then(|alias| alias.split('@').next()) {
        Some("al2") => AmiFamily::Al2,
        Some("al2023") => AmiFamily::Al2023,
        Some("bottlerocket") => AmiFamily::Bottlerocket,
        Some("windows2019") => AmiFamily::Windows2019,
        Some("windows2022") => AmiFamily::Windows2022,
        Some("windows2025") => AmiFamily::Windows2025,
        _ => AmiFamily::Custom,
    }
}

fn spec_hash(spec: &EC2NodeClassSpec, version: Ec2Version) -> Result<u64, FieldError> {
    let kubelet = match (&spec.kubelet, version) {
        (Some(kubelet), Ec2Version::V5) => Some(kubelet_hash(kubelet)?),
        _ => None,
    };
    let devices = match &spec.block_device_mappings {
        Some(devices) => {
            let hashes: Result<Vec<u64>, _> = devices
                .iter()
                .enumerate()
                .map(|(index, device)| block_device_mapping(index, device))
                .collect();
            Some(list(hashes?))
        }
        None => None,
    };
    let interfaces = |interfaces: &Vec<NetworkInterface>| list(interfaces.iter().map(network_interface));
    Ok(Struct::named("EC2NodeClassSpec")
        .field(
            "PlacementGroupSelector",
            spec.placement_group_selector.as_ref().map(placement_group),
        )
        .field(
            "AssociatePublicIPAddress",
            spec.associate_public_ip_address.map(boolean),
        )
        .field("UserData", spec.user_data.as_deref().map(text))
        .field("Role", spec.role.as_deref().and_then(plain_text))
        .field("InstanceProfile", spec.instance_profile.as_deref().map(text))
        .field("Tags", spec.tags.as_ref().map(text_map))
        .field("Kubelet", kubelet)
        .field("BlockDeviceMappings", devices)
        .field(
            "InstanceStorePolicy",
            spec.instance_store_policy.as_ref().map(|policy| text(policy.as_str())),
        )
        .field("NetworkInterfaces", spec.network_interfaces.as_ref().map(interfaces))
        .field("DetailedMonitoring", spec.detailed_monitoring.map(boolean))
        .field("MetadataOptions", spec.metadata_options.as_ref().map(metadata_options))
        .field(
            "ConnectionTracking",
            spec.connection_tracking.as_ref().map(connection_tracking),
        )
        .field("Context", spec.context.as_deref().map(text))
        .field("CPUOptions", spec.cpu_options.as_ref().map(cpu_options))
        .hash())
}

fn placement_group(selector: &PlacementGroupSelector) -> u64 {
    Struct::named("PlacementGroupSelector")
        .field("Name", selector.name.as_deref().map(text))
        .field("ID", selector.id.as_deref().map(text))
        .hash()
}

fn block_device_mapping(index: usize, device: &BlockDeviceMapping) -> Result<u64, FieldError> {
    let ebs = device.ebs.as_ref().map(|ebs| block_device(index, ebs)).transpose()?;
    Ok(Struct::named("BlockDeviceMapping")
        .field("DeviceName", device.device_name.as_deref().map(text))
        .field("EBS", ebs)
        .field("RootVolume", device.root_volume.filter(|root| *root).map(boolean))
        .hash())
}

fn block_device(index: usize, device: &BlockDevice) -> Result<u64, FieldError> {
    let size = device
        .volume_size
        .as_deref()
        .map(|size| {
            let field = || format!("spec.blockDeviceMappings[{index}].ebs.volumeSize");
            let quantity = Quantity::parse(size).map_err(|error| FieldError::new(field(), error))?;
            Ok(text(&quantity.to_string()))
        })
        .transpose()?;
    Ok(Struct::named("BlockDevice")
        .field("DeleteOnTermination", device.delete_on_termination.map(boolean))
        .field("Encrypted", device.encrypted.map(boolean))
        .field("IOPS", device.iops.map(int64))
        .field("KMSKeyID", device.kms_key_id.as_deref().map(text))
        .field("SnapshotID", device.snapshot_id.as_deref().map(text))
        .field("Throughput", device.throughput.map(int64))
        .field("VolumeInitializationRate", device.volume_initialization_rate.map(int32))
        .field("VolumeSize", size)
        .field(
            "VolumeType",
            device.volume_type.as_ref().map(|kind| text(kind.as_str())),
        )
        .hash())
}

/// The indexes are plain integers in Go, so 0 is left out.
fn network_interface(interface: &NetworkInterface) -> u64 {
    Struct::named("NetworkInterface")
        .field("NetworkCardIndex", plain_int32(interface.network_card_index))
        .field("DeviceIndex", plain_int32(interface.device_index))
        .field("InterfaceType", plain_text(interface.interface_type.as_str()))
        .hash()
}

fn metadata_options(options: &MetadataOptions) -> u64 {
    Struct::named("MetadataOptions")
        .field(
            "HTTPEndpoint",
            options.http_endpoint.as_ref().map(|switch| text(switch.as_str())),
        )
        .field(
            "HTTPProtocolIPv6",
            options.http_protocol_ipv6.as_ref().map(|switch| text(switch.as_str())),
        )
        .field(
            "HTTPPutResponseHopLimit",
            options.http_put_response_hop_limit.map(int64),
        )
        .field(
            "HTTPTokens",
            options.http_tokens.as_ref().map(|policy| text(policy.as_str())),
        )
        .hash()
}

fn connection_tracking(tracking: &ConnectionTracking) -> u64 {
    Struct::named("ConnectionTracking")
        .field("TCPEstablishedTimeout", tracking.tcp_established_timeout.map(int32))
        .field("UDPStreamTimeout", tracking.udp_stream_timeout.map(int32))
        .field("UDPTimeout", tracking.udp_timeout.map(int32))
        .hash()
}

fn cpu_options(options: &CpuOptions) -> u64 {
    let nested = options.nested_virtualization.as_ref();
    Struct::named("CPUOptions")
        .field("NestedVirtualization", nested.map(|switch| text(switch.as_str())))
        .hash()
}

fn kubelet_hash(kubelet: &KubeletConfiguration) -> Result<u64, FieldError> {
    let grace = kubelet
        .eviction_soft_grace_period
        .as_ref()
        .map(|periods| {
            let nanos = periods.iter().map(|(signal, period)| {
                let field = || format!("spec.kubelet.evictionSoftGracePeriod[{signal}]");
                let duration = period.parse().map_err(|error| FieldError::new(field(), error))?;
                let nanos = i64::try_from(duration.as_nanos()).map_err(|error| FieldError::new(field(), error))?;
                Ok((signal.clone(), nanos))
            });
            let nanos = nanos.collect::<Result<_, FieldError>>()?;
            Ok(map(&nanos, |nanos| go_duration(*nanos)))
        })
        .transpose()?;
    let servers = |servers: &Vec<String>| list(servers.iter().map(|server| text(server)));
    Ok(Struct::named("KubeletConfiguration")
        .field("ClusterDNS", kubelet.cluster_dns.as_ref().map(servers))
        .field("MaxPods", kubelet.max_pods.as_ref().map(max_pods))
        .field("PodsPerCore", kubelet.pods_per_core.map(int32))
        .field("SystemReserved", kubelet.system_reserved.as_ref().map(text_map))
        .field("KubeReserved", kubelet.kube_reserved.as_ref().map(text_map))
        .field("EvictionHard", kubelet.eviction_hard.as_ref().map(text_map))
        .field("EvictionSoft", kubelet.eviction_soft.as_ref().map(text_map))
        .field("EvictionSoftGracePeriod", grace)
        .field(
            "EvictionMaxPodGracePeriod",
            kubelet.eviction_max_pod_grace_period.map(int32),
        )
        .field(
            "ImageGCHighThresholdPercent",
            kubelet.image_gc_high_threshold_percent.map(int32),
        )
        .field(
            "ImageGCLowThresholdPercent",
            kubelet.image_gc_low_threshold_percent.map(int32),
        )
        .field("CPUCFSQuota", kubelet.cpu_cfs_quota.map(boolean))
        .field("PassedOn", passed_on(kubelet))
        .hash())
}

/// Upstream's `v5` knows numbers only.
fn max_pods(max_pods: &IntOrString) -> u64 {
    match max_pods {
        IntOrString::Int(count) => int32(*count),
        IntOrString::String(expression) => text(expression),
    }
}

/// Upstream's `v5` knows no such settings, so that a class without them has the hash that upstream gives it.
fn passed_on(kubelet: &KubeletConfiguration) -> Option<u64> {
    let settings = &kubelet.passed_on;
    (!settings.is_empty()).then(|| text(&serde_json::json!(settings).to_string()))
}

/// The settings as Go writes them: keys sorted, no spaces, and what could end a script tag escaped.
fn kubelet_text(kubelet: Option<&KubeletConfiguration>) -> String {
    let settings = kubelet.and_then(|kubelet| serde_json::to_value(kubelet).ok());
    let Some(Value::Object(mut settings)) = settings.filter(|settings| *settings != Value::Object(Default::default()))
    else {
        return "null".to_owned();
    };
    settings.sort_keys();
    let mut text = Value::Object(settings).to_string();
    for (plain, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        text = text.replace(plain, escaped);
    }
    text
}

#[cfg(test)]
mod tests;
