//! What AWS knows about the cluster as a whole, and the parameters that name its images.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::AwsError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    pub arn: String,
    pub endpoint: String,
    pub version: String,
    pub service_cidr_v4: Option<String>,
    pub service_cidr_v6: Option<String>,
    /// Where it is written who may join: `API`, `CONFIG_MAP` or `API_AND_CONFIG_MAP`.
    pub authentication_mode: Option<String>,
}

/// How a principal of IAM gets into the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessEntryInfo {
    /// `EC2_LINUX`, `EC2_WINDOWS`, `STANDARD` and others.
    pub kind: String,
    pub groups: Vec<String>,
}

#[async_trait]
pub trait Eks: Send + Sync + 'static {
    async fn cluster(&self, name: &str) -> Result<ClusterInfo, AwsError>;

    /// The ARNs of all principals that have an access entry.
    async fn access_entries(&self, cluster: &str) -> Result<Vec<String>, AwsError>;

    async fn access_entry(&self, cluster: &str, principal: &str) -> Result<AccessEntryInfo, AwsError>;
}

#[async_trait]
pub trait Ssm: Send + Sync + 'static {
    /// The value of a parameter, by name or ARN, without decryption.
    async fn parameter(&self, name: &str) -> Result<String, AwsError>;
}

/// Traffic is moved away from a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// The id of the zone.
    pub away_from: String,
    pub expires: Timestamp,
    pub applied: bool,
}

#[async_trait]
pub trait ZonalShift: Send + Sync + 'static {
    async fn shifts(&self, cluster_arn: &str) -> Result<Vec<Shift>, AwsError>;
}
