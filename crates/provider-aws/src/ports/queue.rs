//! The queue that announces what happens to instances.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::AwsError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub body: String,
    pub receipt: String,
    pub sent: Option<Timestamp>,
}

#[async_trait]
pub trait Sqs: Send + Sync + 'static {
    async fn url(&self, queue: &str) -> Result<String, AwsError>;

    /// Up to ten messages, waiting up to 20 s; what is not deleted within 20 s is told again.
    async fn receive(&self, url: &str) -> Result<Vec<Message>, AwsError>;

    async fn delete(&self, url: &str, receipt: &str) -> Result<(), AwsError>;
}
