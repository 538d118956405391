//! EC2: what instances are made of, and the instances themselves.

use api::aws::Subnet;
use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    DryLaunch, Filter, FleetAnswer, FleetRequest, InstanceInfo, InstanceQuery, InstanceStatusInfo, InstanceTypeInfo,
    SpotPrice, StateChange, StatusQuery, Tags, Template, TemplateData, TemplateKey, TemplateQuery, TypeOffering,
};
use crate::error::AwsError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetInfo {
    pub id: String,
    pub zone: String,
    pub zone_id: String,
    pub available_addresses: i64,
}

impl From<SubnetInfo> for Subnet {
    /// As the status of a class shows it.
    fn from(info: SubnetInfo) -> Self {
        Self {
            id: info.id,
            zone: info.zone,
            zone_id: Some(info.zone_id),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroupInfo {
    pub id: String,
    pub name: String,
}

/// Which images to list. Deprecated ones are always among them, unavailable ones never.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageQuery {
    pub filters: Vec<Filter>,
    /// Any owner when empty.
    pub owners: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageInfo {
    pub id: String,
    pub name: String,
    /// EC2's word: `x86_64`, `arm64`, …
    pub architecture: String,
    /// RFC 3339, as EC2 writes it.
    pub created: String,
    pub deprecated_at: Option<String>,
}

/// Which capacity reservations to list. Only active ones are wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReservationQuery {
    Id(String),
    Matching(Vec<Filter>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationInfo {
    pub id: String,
    pub zone: String,
    pub instance_type: String,
    pub owner: String,
    /// EC2's words: `open`, `targeted`.
    pub match_criteria: String,
    /// EC2's words: `default`, `capacity-block`; empty where EC2 does not say.
    pub reservation_type: String,
    pub interruptible: bool,
    pub ends: Option<Timestamp>,
    pub available: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementGroupQuery {
    Id(String),
    Name(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementGroupInfo {
    pub id: String,
    pub name: String,
    /// EC2's words: `cluster`, `partition`, `spread`.
    pub strategy: String,
    pub partitions: u32,
    pub spread_level: Option<String>,
}

/// EC2 in one region.
#[async_trait]
pub trait Ec2: Send + Sync + 'static {
    /// DescribeInstanceTypes as a dry run: whether credentials and region are good.
    async fn check_access(&self) -> Result<(), AwsError>;

    /// All types that run HVM images on x86_64 or arm64, 100 to a page.
    async fn instance_types(&self) -> Result<Vec<InstanceTypeInfo>, AwsError>;

    /// Which type is sold in which zone, 1000 to a page.
    async fn type_offerings(&self) -> Result<Vec<TypeOffering>, AwsError>;

    /// 500 to a page.
    async fn subnets(&self, filters: &[Filter]) -> Result<Vec<SubnetInfo>, AwsError>;

    /// 500 to a page.
    async fn security_groups(&self, filters: &[Filter]) -> Result<Vec<SecurityGroupInfo>, AwsError>;

    /// 1000 to a page.
    async fn images(&self, query: &ImageQuery) -> Result<Vec<ImageInfo>, AwsError>;

    /// 1000 to a page; a query by id takes no page size.
    async fn capacity_reservations(&self, query: &ReservationQuery) -> Result<Vec<ReservationInfo>, AwsError>;

    /// Groups in state `available`.
    async fn placement_groups(&self, query: &PlacementGroupQuery) -> Result<Vec<PlacementGroupInfo>, AwsError>;

    /// The current prices of Linux spot capacity, inside a VPC and without, 2000 to a page.
    async fn spot_prices(&self, now: Timestamp) -> Result<Vec<SpotPrice>, AwsError>;

    /// By name, or 200 to a page.
    async fn launch_templates(&self, query: &TemplateQuery) -> Result<Vec<Template>, AwsError>;

    async fn create_launch_template(&self, name: &str, tags: &Tags, data: &TemplateData) -> Result<Template, AwsError>;

    async fn delete_launch_template(&self, key: &TemplateKey) -> Result<(), AwsError>;

    /// A dry run is made once, without retries.
    async fn create_fleet(&self, request: &FleetRequest) -> Result<FleetAnswer, AwsError>;

    /// RunInstances as a dry run, without retries.
    async fn try_launch(&self, request: &DryLaunch) -> Result<(), AwsError>;

    /// By id, or 1000 to a page.
    async fn instances(&self, query: &InstanceQuery) -> Result<Vec<InstanceInfo>, AwsError>;

    async fn instance_status(&self, query: &StatusQuery) -> Result<Vec<InstanceStatusInfo>, AwsError>;

    async fn terminate_instances(&self, ids: &[String]) -> Result<Vec<StateChange>, AwsError>;

    async fn create_tags(&self, instance: &str, tags: &Tags) -> Result<(), AwsError>;
}
