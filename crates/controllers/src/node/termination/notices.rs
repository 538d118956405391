//! What people are told about nodes that take their time to go.

use api::{labels::annotations::TERMINATION_TIMESTAMP, v1::NodeClaim};
use k8s_openapi::api::core::v1::Node;

use crate::{
    objects::{about_claim, about_node},
    outbox::{About, Notice},
};

pub fn pods_waiting(node: &Node, waiting: usize) -> Notice {
    failed_draining(about_node(node), &format!("{waiting} pods are waiting to be evicted"))
}

pub fn failed_draining(about: About, why: &str) -> Notice {
    Notice::warning("FailedDraining", about, format!("Failed to drain node, {why}"))
}

/// A deadline that nobody can read protects the pods: they are waited for as if there were none.
pub fn unreadable_deadline(claim: &NodeClaim, value: &str) -> Notice {
    let message = format!(
        "annotation {TERMINATION_TIMESTAMP} is {value:?}, which is not an RFC 3339 time, and is ignored; \
         set it to a time or remove it"
    );
    Notice::warning("InvalidTerminationTimestamp", about_claim(claim), message)
}

/// Names the first five.
pub fn awaiting_volumes(node: &Node, attached: &[String]) -> Notice {
    let named = attached.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let more = attached.len().saturating_sub(5);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Notice::normal(
        "AwaitingVolumeDetachment",
        about_node(node),
        format!("Awaiting deletion of bound volumeattachments ({named}{rest})"),
    )
}
