//! What the cloud said about instances without being asked.

use jiff::SignedDuration;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use provider::NoticeKind;

use super::durations;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Received {
    message_type: &'static str,
}

pub struct InterruptionMetrics {
    received: Family<Received, Counter>,
    acknowledged: Counter,
    age: Histogram,
}

impl Default for InterruptionMetrics {
    fn default() -> Self {
        Self {
            received: Family::default(),
            acknowledged: Counter::default(),
            age: durations(),
        }
    }
}

impl InterruptionMetrics {
    pub fn register(&self, to: &mut Registry) {
        to.register(
            "karpenter_interruption_received_messages",
            "Notices of the cloud, by kind",
            self.received.clone(),
        );
        to.register(
            "karpenter_interruption_deleted_messages",
            "Notices of the cloud that were acted on",
            self.acknowledged.clone(),
        );
        to.register(
            "karpenter_interruption_message_queue_duration_seconds",
            "How old notices of the cloud are when they are handled",
            self.age.clone(),
        );
    }

    pub fn received(&self, kind: NoticeKind, age: SignedDuration) {
        let message_type = kind.label();
        self.received.get_or_create(&Received { message_type }).inc();
        self.age.observe(age.as_secs_f64());
    }

    pub fn acknowledged(&self) {
        self.acknowledged.inc();
    }
}
