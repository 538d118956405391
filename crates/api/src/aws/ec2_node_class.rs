//! EC2NodeClass: what the instances of a pool are launched with.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{
    AmiSelectorTerm, BlockDeviceMapping, CapacityReservationSelectorTerm, EC2NodeClassStatus, KubeletConfiguration,
    PlacementGroupSelector, SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags,
};
use crate::absent_spec::absent_spec_is_default;
use crate::text_enum::text_enum;

/// What instances are launched with.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    singular = "ec2nodeclass",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    category = "karpenter",
    status = "EC2NodeClassStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What EC2 instances are launched with: network, image, storage, identity."
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct EC2NodeClassSpec {
    /// The subnets that instances may be launched in.
    #[serde(default)]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// The security groups that instances get.
    #[serde(default)]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// The capacity reservations that instances may use.
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// The images that instances may run.
    #[serde(default)]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// The placement group that instances are launched into.
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// The family that decides user data and defaults; taken from the alias when absent.
    pub ami_family: Option<AmiFamily>,
    /// The IAM role of the instances; a profile is made for it. Not together with instanceProfile.
    pub role: Option<String>,
    /// The IAM instance profile of the instances. Not together with role.
    pub instance_profile: Option<String>,
    /// Extra user data, merged with what the family needs.
    pub user_data: Option<String>,
    /// Tags for everything that is created for the instances.
    pub tags: Option<Tags>,
    /// Settings of the kubelet.
    pub kubelet: Option<KubeletConfiguration>,
    /// The volumes of the instances.
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What becomes of the disks that come with an instance type.
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// The network interfaces of the instances.
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether detailed monitoring is on.
    pub detailed_monitoring: Option<bool>,
    /// Whether instances get a public address; absent means that the subnet decides.
    #[serde(rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    /// How many address prefixes are assigned to the primary interface.
    #[serde(rename = "ipPrefixCount")]
    pub ip_prefix_count: Option<i32>,
    /// The instance metadata service.
    pub metadata_options: Option<MetadataOptions>,
    /// Idle timeouts of tracked connections.
    pub connection_tracking: Option<ConnectionTracking>,
    /// Options of the processor.
    #[serde(rename = "cpuOptions")]
    pub cpu_options: Option<CpuOptions>,
    /// Text that is passed to the fleet request as it is.
    pub context: Option<String>,
}

absent_spec_is_default!(EC2NodeClassSpec);

text_enum! {
    /// A family of machine images.
    pub enum AmiFamily {
        Al2 = "AL2",
        Al2023 = "AL2023",
        Bottlerocket = "Bottlerocket",
        Custom = "Custom",
        Windows2019 = "Windows2019",
        Windows2022 = "Windows2022",
        Windows2025 = "Windows2025",
    }
}

text_enum! {
    /// What becomes of the disks that come with an instance type.
    pub enum InstanceStorePolicy {
        Raid0 = "RAID0",
    }
}

text_enum! {
    /// The kind of a network interface.
    pub enum InterfaceType {
        Interface = "interface",
        EfaOnly = "efa-only",
    }
}

text_enum! {
    /// On or off, in the words of EC2.
    pub enum Switch {
        Enabled = "enabled",
        Disabled = "disabled",
    }
}

text_enum! {
    /// Whether a metadata request needs a session token.
    pub enum TokenPolicy {
        Required = "required",
        Optional = "optional",
    }
}

/// One network interface of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network card, from 0.
    pub network_card_index: i32,
    /// The device on the card, from 0.
    pub device_index: i32,
    /// The kind of the interface.
    pub interface_type: InterfaceType,
}

/// The instance metadata service.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether the service answers at all.
    pub http_endpoint: Option<Switch>,
    /// Whether it answers over IPv6.
    #[serde(rename = "httpProtocolIPv6")]
    pub http_protocol_ipv6: Option<Switch>,
    /// How many hops an answer may travel; 1 keeps pods without host network away.
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether a request needs a session token.
    pub http_tokens: Option<TokenPolicy>,
}

/// Idle timeouts of tracked connections, in seconds.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Established TCP connections.
    #[serde(rename = "tcpEstablishedTimeout")]
    pub tcp_established_timeout: Option<i32>,
    /// UDP flows that have seen more than one request and answer.
    #[serde(rename = "udpStreamTimeout")]
    pub udp_stream_timeout: Option<i32>,
    /// UDP flows that have seen traffic in one direction or one exchange only.
    #[serde(rename = "udpTimeout")]
    pub udp_timeout: Option<i32>,
}

/// Options of the processor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether the instance may run virtual machines of its own.
    pub nested_virtualization: Option<Switch>,
}
