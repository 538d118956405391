//! What people are told about claims and nodes that are on their way out.

use jiff::Timestamp;

use crate::outbox::{About, Notice};

/// RFC 3339 with whole seconds, as Kubernetes writes times.
pub fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn grace_period_expiring(about: About, due: Timestamp) -> Notice {
    let message = format!("All pods will be deleted by {}", stamp(due));
    Notice::warning("TerminationGracePeriodExpiring", about, message)
}
