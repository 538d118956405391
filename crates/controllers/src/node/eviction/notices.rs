//! What people are told about pods that were sent away.

use model::Pod;

use crate::outbox::{About, Notice};

pub fn evicted(pod: &Pod, reason: &str) -> Notice {
    Notice::normal("Evicted", About::pod(pod), format!("Evicted pod: {reason}"))
}

pub fn disrupted(pod: &Pod, granted_secs: u32) -> Notice {
    let own = pod.shape.termination_grace.as_secs();
    let message = format!(
        "Deleted pod to meet the termination time of its node, past disruption budgets and do-not-disrupt; \
         it was granted {granted_secs} of its {own} seconds of grace"
    );
    Notice::normal("Disrupted", About::pod(pod), message)
}
