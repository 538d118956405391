//! IAM: instance profiles, and the roles in them.

use async_trait::async_trait;

use super::Tags;
use crate::error::AwsError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileInfo {
    pub name: String,
    /// The names of the attached roles, without their paths. IAM allows one.
    pub roles: Vec<String>,
}

#[async_trait]
pub trait Iam: Send + Sync + 'static {
    async fn profile(&self, name: &str) -> Result<ProfileInfo, AwsError>;

    /// `path` is left out of the request when empty.
    async fn create_profile(&self, name: &str, path: &str, tags: &Tags) -> Result<(), AwsError>;

    async fn add_role(&self, profile: &str, role: &str) -> Result<(), AwsError>;

    async fn remove_role(&self, profile: &str, role: &str) -> Result<(), AwsError>;

    async fn delete_profile(&self, name: &str) -> Result<(), AwsError>;

    /// Fails if there is no such role. The controller has no permission to ask and does not; people have.
    async fn role(&self, name: &str) -> Result<(), AwsError>;

    async fn profiles(&self, path_prefix: &str) -> Result<Vec<ProfileInfo>, AwsError>;
}
