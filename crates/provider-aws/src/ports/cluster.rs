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
}

#[async_trait]
pub trait Eks: Send + Sync + 'static {
    async fn cluster(&self, name: &str) -> Result<ClusterInfo, AwsError>;
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
