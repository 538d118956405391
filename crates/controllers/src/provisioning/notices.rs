//! What people are told about pods that wait.

use api::{FieldError, joined, v1::NodePool};
use jiff::SignedDuration;
use kube::ResourceExt;
use model::Pod;
use scheduler::Refusal;

use crate::outbox::{About, Notice};

pub fn nominated(pod: &Pod, claim: Option<&str>, node: Option<&str>) -> Notice {
    let parts = [("nodeclaim", claim), ("node", node)];
    let places: Vec<_> = parts
        .iter()
        .filter_map(|(kind, name)| name.map(|name| format!("{kind}/{name}")))
        .collect();
    let message = format!("Pod should schedule on: {}", places.join(", "));
    Notice::normal("Nominated", About::pod(pod), message).at_most(5, 10)
}

pub fn failed_scheduling(pod: &Pod, refusal: &Refusal) -> Notice {
    let message = format!("Failed to schedule pod, {refusal}");
    Notice::warning("FailedScheduling", About::pod(pod), message).every(SignedDuration::from_mins(5))
}

pub fn unreadable_demand(pod: &Pod, fields: &[FieldError]) -> Notice {
    let message = format!("Failed to schedule pod, its demand cannot be read: {}", joined(fields));
    Notice::warning("FailedScheduling", About::pod(pod), message).every(SignedDuration::from_mins(5))
}

pub fn no_compatible_instance_types(pool: &NodePool) -> Notice {
    let message = "NodePool requirements filtered out all compatible available instance types".to_owned();
    let about = About::pool(&pool.name_any(), &pool.uid().unwrap_or_default());
    Notice::warning("NoCompatibleInstanceTypes", about, message).every(SignedDuration::from_mins(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::samples::pod;

    #[test]
    fn a_nomination_names_what_there_is() {
        let text = |claim, node| nominated(&pod("p"), claim, node).message;
        assert_eq!(
            text(Some("a"), Some("b")),
            "Pod should schedule on: nodeclaim/a, node/b"
        );
        assert_eq!(text(Some("a"), None), "Pod should schedule on: nodeclaim/a");
    }
}
