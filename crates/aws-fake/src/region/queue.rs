//! The queue of interruptions: messages are hidden while somebody works on them, and forgotten after five minutes.

use jiff::{SignedDuration, Timestamp};

/// How long the queue of upstream's CloudFormation stack keeps messages.
const RETENTION: SignedDuration = SignedDuration::from_secs(300);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub body: String,
    pub sent: Timestamp,
    /// Changes with every delivery; only the newest deletes the message.
    pub receipt: String,
    pub received: u32,
    visible_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Queue {
    pub name: String,
    messages: Vec<Message>,
    deliveries: u64,
}

impl Queue {
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            messages: Vec::new(),
            deliveries: 0,
        }
    }

    pub fn send(&mut self, id: String, body: String, now: Timestamp) {
        self.messages.push(Message {
            id,
            body,
            sent: now,
            receipt: String::new(),
            received: 0,
            visible_at: now,
        });
    }

    /// The oldest messages that nobody works on, at most so many; they are hidden from others for that long.
    pub fn receive(&mut self, most: usize, hidden: SignedDuration, now: Timestamp) -> Vec<Message> {
        let mut received = Vec::new();
        for message in self
            .messages
            .iter_mut()
            .filter(|message| message.visible_at <= now)
            .take(most)
        {
            self.deliveries += 1;
            message.receipt = format!("{}#{}", message.id, self.deliveries);
            message.received += 1;
            message.visible_at = now + hidden;
            received.push(message.clone());
        }
        received
    }

    /// Deleting what is not there any more is no error, as in SQS.
    pub fn delete(&mut self, receipt: &str) {
        self.messages.retain(|message| message.receipt != receipt);
    }

    pub fn depth(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn forget_old(&mut self, now: Timestamp) {
        self.messages
            .retain(|message| now.duration_since(message.sent) <= RETENTION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const HIDDEN: SignedDuration = SignedDuration::from_secs(20);

    #[test]
    fn a_message_comes_again_until_its_last_receipt_deletes_it() {
        let mut queue = Queue::named("demo");
        queue.send("m-1".to_owned(), "{}".to_owned(), NOW);
        let first = queue.receive(10, HIDDEN, NOW);
        assert_eq!(first.len(), 1);
        assert_eq!(queue.receive(10, HIDDEN, NOW), []);
        let second = queue.receive(10, HIDDEN, NOW + HIDDEN);
        assert_eq!(second[0].received, 2);
        queue.delete(&first[0].receipt);
        assert_eq!(queue.depth(), 1);
        queue.delete(&second[0].receipt);
        assert_eq!(queue.depth(), 0);
    }

    #[test]
    fn a_delivery_has_at_most_as_many_as_asked_for_and_none_that_are_too_old() {
        let mut queue = Queue::named("demo");
        for number in 0..12 {
            queue.send(format!("m-{number}"), String::new(), NOW);
        }
        assert_eq!(queue.receive(10, HIDDEN, NOW).len(), 10);
        queue.forget_old(NOW + SignedDuration::from_secs(301));
        assert_eq!(queue.depth(), 0);
    }
}
