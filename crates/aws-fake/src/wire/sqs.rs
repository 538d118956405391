//! SQS, in JSON and in the older query protocol.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::{Call, Parameters, Reply, Service, xml::Xml};
use crate::{
    refusal::Refusal,
    region::{Region, queue::Message},
};

/// What this service calls an error when it speaks the query protocol.
pub(super) fn query_code(service: Service, code: &str) -> &str {
    match (service, code) {
        (Service::Sqs, "QueueDoesNotExist") => "AWS.SimpleQueueService.NonExistentQueue",
        _ => code,
    }
}

pub(super) fn carry_out(
    region: &mut Region,
    call: &Call,
    parameters: &Parameters,
    now: Timestamp,
) -> Result<Option<Reply>, Refusal> {
    let field = |name: &str| -> Option<String> {
        match parameters {
            Parameters::Form(params) => params.text(name).map(str::to_owned),
            Parameters::Json(value) => match &value[name] {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            },
        }
    };
    let required = |name: &str| field(name).ok_or_else(|| Refusal::missing(name));
    let number = |name: &str, fallback: i64| field(name).and_then(|text| text.parse().ok()).unwrap_or(fallback);
    let own = |queue: &str| {
        if queue == region.queue.name {
            Ok(())
        } else {
            Err(Refusal::new("QueueDoesNotExist", "The specified queue does not exist."))
        }
    };
    // The path of a queue's URL ends with its name.
    let check_url = || own(required("QueueUrl")?.rsplit('/').next().unwrap_or_default());
    let value = match call.action.as_str() {
        "GetQueueUrl" => {
            own(&required("QueueName")?)?;
            let (plan, name) = (&region.plan, &region.queue.name);
            // Some clients send the next request to this place and not to the endpoint that they were given.
            let place = match &call.host {
                Some(host) => format!("http://{host}"),
                None => format!("https://sqs.{}.amazonaws.com", plan.region),
            };
            json!({"QueueUrl": format!("{place}/{}/{name}", plan.account)})
        }
        "ReceiveMessage" => {
            check_url()?;
            let most = usize::try_from(number("MaxNumberOfMessages", 1)).unwrap_or(1);
            let hidden = SignedDuration::from_secs(number("VisibilityTimeout", 30));
            let received = region.queue.receive(most, hidden, now);
            let patience = number("WaitTimeSeconds", 0);
            if received.is_empty() && patience > 0 {
                return Ok(Some(Reply::Wait(now + SignedDuration::from_secs(patience))));
            }
            return Ok(Some(delivery(parameters, &received)));
        }
        "DeleteMessage" => {
            check_url()?;
            region.queue.delete(&required("ReceiptHandle")?);
            json!({})
        }
        "SendMessage" => {
            check_url()?;
            let body = required("MessageBody")?;
            let sum = checksum(&body);
            json!({"MessageId": region.send(body, now), "MD5OfMessageBody": sum})
        }
        "GetQueueAttributes" => {
            check_url()?;
            json!({"Attributes": {"ApproximateNumberOfMessages": region.queue.depth().to_string()}})
        }
        _ => return Ok(None),
    };
    Ok(Some(match parameters {
        Parameters::Json(_) => Reply::Json(value),
        Parameters::Form(_) => Reply::Xml(plain(&value)),
    }))
}

/// Answers without a list: a leaf for each field.
fn plain(value: &Value) -> Xml {
    let mut xml = Xml::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    xml.node("Attribute", |xml| {
                        xml.leaf("Name", key);
                        xml.leaf("Value", value.as_str().unwrap_or_default());
                    });
                }
            }
            other => xml.leaf(name, other.as_str().unwrap_or_default()),
        }
    }
    xml
}

fn delivery(parameters: &Parameters, messages: &[Message]) -> Reply {
    let attributes = |message: &Message| {
        [
            ("SentTimestamp", message.sent.as_millisecond().to_string()),
            ("ApproximateReceiveCount", message.received.to_string()),
        ]
    };
    match parameters {
        Parameters::Json(_) if messages.is_empty() => Reply::Json(json!({})),
        Parameters::Json(_) => {
            let written = messages.iter().map(|message| {
                json!({
                    "MessageId": message.id,
                    "ReceiptHandle": message.receipt,
                    "MD5OfBody": checksum(&message.body),
                    "Body": message.body,
                    "Attributes": attributes(message).into_iter().map(|(name, value)| (name.to_owned(), Value::String(value)))
                        .collect::<serde_json::Map<_, _>>(),
                })
            });
            Reply::Json(json!({"Messages": written.collect::<Vec<_>>()}))
        }
        Parameters::Form(_) => {
            let mut xml = Xml::default();
            for message in messages {
                xml.node("Message", |xml| {
                    xml.leaf("MessageId", &message.id);
                    xml.leaf("ReceiptHandle", &message.receipt);
                    xml.leaf("MD5OfBody", checksum(&message.body));
                    xml.leaf("Body", &message.body);
                    for (name, value) in attributes(message) {
                        xml.node("Attribute", |xml| {
                            xml.leaf("Name", name);
                            xml.leaf("Value", value);
                        });
                    }
                });
            }
            Reply::Xml(xml)
        }
    }
}

/// What clients compare a message's body with.
fn checksum(body: &str) -> String {
    let mut text = String::new();
    for byte in Md5::digest(body.as_bytes()) {
        write!(text, "{byte:02x}").expect("writing to a string succeeds");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_md5_in_hexadecimal() {
        assert_eq!(checksum("hello"), "5d41402abc4b2a76b9719d911017c592");
    }
}
