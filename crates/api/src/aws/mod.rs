//! `karpenter.k8s.aws/v1`: the node class of the AWS provider.

mod ec2_node_class;
mod kubelet;
mod node_template;
mod selectors;
mod status;
mod storage;

pub use ec2_node_class::{
    AmiFamily, ConnectionTracking, CpuOptions, EC2NodeClass, EC2NodeClassSpec, InstanceStorePolicy, InterfaceType,
    MetadataOptions, NetworkInterface, Switch, TokenPolicy,
};
pub use kubelet::KubeletConfiguration;
pub use node_template::{AwsNodeTemplate, NodeTemplateSpec, NodeTemplateStatus, OldImage};
pub use selectors::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm, Tags,
};
pub use status::{
    Ami, AmiRequirement, CapacityReservation, EC2NodeClassStatus, ReservationState, ReservationType, SecurityGroup,
    Subnet,
};
pub use storage::{BlockDevice, BlockDeviceMapping, VolumeType};
