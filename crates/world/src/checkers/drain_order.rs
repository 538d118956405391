//! Drain tiers are never overtaken except by deadline (lifecycle.md 18.6): a critical or daemon pod is evicted only when
//! the tiers before its own are empty.

use k8s_openapi::api::core::v1::Pod;

use super::{Checker, Moment, Verdict, deletions_are_gentle::evicted_pod};
use crate::{
    history::Deed,
    kubelet::pods::node_of,
    mirror::{Group, Key, controller_of},
};

pub struct DrainOrder;

impl Checker for DrainOrder {
    fn name(&self) -> &'static str {
        "drain order"
    }

    fn called(&mut self, deed: &Deed, moment: &Moment<'_>) -> Verdict {
        let Some((method, path, _)) = deed.granted() else {
            return Ok(());
        };
        let Some(pod) = evicted_pod(method, path).and_then(|key| moment.scene.pods.get(&key)) else {
            return Ok(());
        };
        let Some(node) = node_of(&pod) else { return Ok(()) };
        let on_node = moment.scene.pods.group(&Group::Node(node.to_owned()));
        let waits = |other: &Pod| {
            let facts = api::convert::pod(other).value;
            facts.is_waiting_eviction(moment.now) && tier(other) < tier(&pod)
        };
        match on_node.iter().find(|other| waits(other)) {
            None => Ok(()),
            Some(other) => Err(format!(
                "pod {} (tier {}) was evicted from {node} before {} (tier {})",
                Key::of(&pod.metadata),
                tier(&pod),
                Key::of(&other.metadata),
                tier(other)
            )),
        }
    }
}

/// From one to four, in the order of leaving.
fn tier(pod: &Pod) -> u8 {
    let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref());
    let critical = matches!(class, Some("system-cluster-critical" | "system-node-critical"));
    let daemon = controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "DaemonSet");
    1 + u8::from(daemon) + 2 * u8::from(critical)
}
