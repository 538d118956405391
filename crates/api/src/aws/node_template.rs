//! `karpenter.k8s.aws/v1alpha1`: AWSNodeTemplate, which became the EC2NodeClass.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{BlockDeviceMapping, MetadataOptions, SecurityGroup, Subnet, Tags};
use crate::v1::Requirement;
use crate::v1alpha5::OldCondition;

/// How the instances of Provisioners were launched.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1alpha1",
    kind = "AWSNodeTemplate",
    root = "AwsNodeTemplate",
    plural = "awsnodetemplates",
    singular = "awsnodetemplate",
    category = "karpenter",
    status = "NodeTemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What became an EC2NodeClass: how instances are launched. Converted while it is there."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateSpec {
    /// The family of images: AL2, Bottlerocket, Ubuntu, Windows2019, Windows2022 or Custom.
    pub ami_family: Option<String>,
    /// Tags of the images to choose from; aws::ids, aws::name and aws::owners mean what they say.
    pub ami_selector: Option<Tags>,
    /// Tags of the subnets to launch into; aws-ids means ids.
    pub subnet_selector: Option<Tags>,
    /// Tags of the security groups to attach; aws-ids means ids.
    pub security_group_selector: Option<Tags>,
    /// The instance profile of the nodes.
    pub instance_profile: Option<String>,
    /// The name of a launch template to use instead of a generated one.
    pub launch_template: Option<String>,
    /// What an instance runs when it starts.
    pub user_data: Option<String>,
    /// Tags of whatever is launched.
    pub tags: Option<Tags>,
    /// How the metadata service of the instances can be reached.
    pub metadata_options: Option<MetadataOptions>,
    /// The volumes of the instances.
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// Whether metrics are collected each minute.
    pub detailed_monitoring: Option<bool>,
    /// EC2's context of a fleet request.
    pub context: Option<String>,
}

/// What the selectors resolved to, taken over from the EC2NodeClass.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateStatus {
    /// The subnets found.
    pub subnets: Option<Vec<Subnet>>,
    /// The security groups found.
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The images found.
    pub amis: Option<Vec<OldImage>>,
    /// The state of the template.
    pub conditions: Option<Vec<OldCondition>>,
}

/// An image that was found.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OldImage {
    /// The id of the image.
    pub id: String,
    /// The name of the image.
    pub name: Option<String>,
    /// Which instance types it is for.
    pub requirements: Option<Vec<Requirement>>,
}
