//! SQS: the queue that announces what happens to instances.

use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    types::{self, MessageSystemAttributeName, QueueAttributeName},
};
use jiff::Timestamp;
use provider_aws::{
    error::AwsError,
    ports::{Message, Sqs},
};

use crate::refusal::{incomplete, refused};

/// As many as SQS hands out at once.
const MESSAGES: i32 = 10;
/// As long as SQS lets a request wait for messages.
const WAIT_SECS: i32 = 20;
/// What is not deleted by then is told again.
const INVISIBLE_SECS: i32 = 20;

pub(crate) struct SdkQueue(pub Client);

#[async_trait]
impl Sqs for SdkQueue {
    async fn url(&self, queue: &str) -> Result<String, AwsError> {
        let answer = self.0.get_queue_url().queue_name(queue).send().await.map_err(refused)?;
        answer.queue_url.ok_or_else(|| incomplete("queue URL"))
    }

    async fn receive(&self, url: &str) -> Result<Vec<Message>, AwsError> {
        let sent = QueueAttributeName::from(MessageSystemAttributeName::SentTimestamp.as_str());
        let request = self
            .0
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(MESSAGES)
            .visibility_timeout(INVISIBLE_SECS)
            .wait_time_seconds(WAIT_SECS)
            .message_attribute_names("All");
        // The newer field for the same is unknown to emulators, and upstream sends this one.
        #[expect(deprecated, reason = "the request is to be the one that upstream makes")]
        let request = request.attribute_names(sent);
        let answer = request.send().await.map_err(refused)?;
        Ok(answer.messages.into_iter().flatten().map(message).collect())
    }

    async fn delete(&self, url: &str, receipt: &str) -> Result<(), AwsError> {
        let request = self.0.delete_message().queue_url(url).receipt_handle(receipt);
        request.send().await.map(drop).map_err(refused)
    }
}

fn message(message: types::Message) -> Message {
    let attributes = message.attributes.unwrap_or_default();
    let sent = attributes.get(&MessageSystemAttributeName::SentTimestamp);
    let sent = sent.and_then(|millis| Timestamp::from_millisecond(millis.parse().ok()?).ok());
    Message {
        body: message.body.unwrap_or_default(),
        receipt: message.receipt_handle.unwrap_or_default(),
        sent,
    }
}
