//! Node conditions become taints, and cordoned nodes get the taint that says so: the part of the node lifecycle
//! controller that pods feel.

use k8s_openapi::{
    api::core::v1::{Node, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::api::Patch;
use serde_json::json;

use super::ready_condition;
use crate::{
    component::{Component, Ctx, Next},
    mirror::{Key, Mirror, Seen},
};

pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub struct Lifecycle;

impl Component for Lifecycle {
    type Item = Key;
    const NAME: &'static str = "node-lifecycle";

    fn touched(_: &Mirror, seen: &Seen, items: &mut Vec<Key>) {
        if let Seen::Node(change) = seen
            && change.new.is_some()
        {
            items.push(change.key.clone());
        }
    }

    async fn reconcile(&self, ctx: &Ctx, key: &Key) -> Result<Next, kube::Error> {
        let Some(node) = ctx.mirror.nodes.get(key) else {
            return Ok(Next::OnChange);
        };
        let old = node
            .spec
            .as_ref()
            .and_then(|spec| spec.taints.clone())
            .unwrap_or_default();
        let new = taints(&node, &old, &ctx.time());
        if new != old {
            // The list is replaced as a whole, so it must be the list that was looked at.
            let version = &node.metadata.resource_version;
            let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "taints": new } });
            ctx.patch::<Node>(key, &Patch::Merge(patch)).await?;
        }
        Ok(Next::OnChange)
    }
}

/// The taints that the node should have, with all foreign ones left as they are.
fn taints(node: &Node, old: &[Taint], now: &Time) -> Vec<Taint> {
    let mut wanted: Vec<(&str, &str)> = match ready_condition(node).map(|condition| condition.status.as_str()) {
        Some("False") => vec![(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")],
        Some("Unknown") => vec![(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
        // Admission gives every node this taint; it goes when the kubelet reports for the first time.
        None => vec![(NOT_READY, "NoSchedule")],
        Some(_) => vec![],
    };
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let ours = |taint: &Taint| [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str());
    let is = |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    let mut taints: Vec<Taint> = old
        .iter()
        .filter(|taint| !ours(taint) || wanted.iter().any(|want| is(taint, *want)))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| is(taint, (key, effect))) {
            let time_added = (effect == "NoExecute").then(|| now.clone());
            taints.push(Taint {
                key: key.into(),
                effect: effect.into(),
                time_added,
                value: None,
            });
        }
    }
    taints
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{NodeCondition, NodeSpec, NodeStatus};

    fn check(ready: Option<&str>, cordoned: bool, before: &[(&str, &str)], after: &[(&str, &str)]) {
        let condition = |status: &str| NodeCondition {
            type_: "Ready".into(),
            status: status.into(),
            ..Default::default()
        };
        let node = Node {
            spec: Some(NodeSpec {
                unschedulable: Some(cordoned),
                ..Default::default()
            }),
            status: Some(NodeStatus {
                conditions: Some(ready.map(condition).into_iter().collect()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let taint = |(key, effect): &(&str, &str)| Taint {
            key: (*key).into(),
            effect: (*effect).into(),
            ..Default::default()
        };
        let before: Vec<Taint> = before.iter().map(taint).collect();
        let got = taints(&node, &before, &Time(clock::VirtualClock::EPOCH));
        let got: Vec<(&str, &str)> = got.iter().map(|taint| (&*taint.key, &*taint.effect)).collect();
        assert_eq!(got, after);
    }

    #[test]
    fn taints_say_what_the_conditions_say() {
        check(
            Some("True"),
            false,
            &[(NOT_READY, "NoSchedule"), ("team", "NoSchedule")],
            &[("team", "NoSchedule")],
        );
        check(None, false, &[(NOT_READY, "NoSchedule")], &[(NOT_READY, "NoSchedule")]);
        check(
            Some("False"),
            false,
            &[],
            &[(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")],
        );
        check(
            Some("Unknown"),
            false,
            &[(NOT_READY, "NoExecute")],
            &[(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
        );
        check(Some("True"), true, &[], &[(UNSCHEDULABLE, "NoSchedule")]);
        check(Some("True"), false, &[(UNSCHEDULABLE, "NoSchedule")], &[]);
    }
}
