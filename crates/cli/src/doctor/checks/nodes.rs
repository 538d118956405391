//! Nodes that joined and are not taken into service, or that nobody answers for.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use model::taint::UNREGISTERED;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{CLAIMS, Facts, NODES, called, condition, is_deleting, list, text},
    finding::Finding,
};

const CHECK: &str = "nodes";
/// Registration takes seconds once a node is there.
const REGISTRATION: SignedDuration = SignedDuration::from_mins(2);
const RECOVERY: SignedDuration = SignedDuration::from_mins(10);

pub fn nodes(facts: &Facts) -> Vec<Finding> {
    if let Some(why) = facts.unread(NODES) {
        return vec![Finding::unknown(CHECK, format!("nodes cannot be read: {why}"))];
    }
    let claimed: BTreeSet<&str> = facts
        .of(CLAIMS)
        .iter()
        .map(|claim| text(claim, "/status/nodeName"))
        .collect();
    let is_own = |node: &&Value| !text(node, "/metadata/labels/karpenter.sh~1nodepool").is_empty();
    let is_unregistered = |node: &Value| {
        list(node, "/spec/taints")
            .iter()
            .any(|taint| taint["key"] == UNREGISTERED)
    };
    let mut findings = Vec::new();
    let mut count = 0;
    for node in facts
        .of(NODES)
        .iter()
        .filter(|node| is_own(node) || is_unregistered(node))
    {
        count += 1;
        let unready = condition(node, "Ready").filter(|ready| ready.status != "True");
        if is_deleting(node) {
            continue;
        }
        if is_unregistered(node) && facts.age(node) > REGISTRATION {
            let what = format!("still has the taint {UNREGISTERED} after {:#}", facts.age(node));
            let fix = "no claim has its provider id, or the controller does not run; the taint goes at registration, and by nobody else";
            findings.push(Finding::problem(CHECK, what).about(called(node)).fix(fix));
        } else if is_own(&node) && facts.unread(CLAIMS).is_none() && !claimed.contains(text(node, "/metadata/name")) {
            let what = "has the label of a node pool and no node claim";
            let fix = "its claim was removed by force: drain it and terminate its instance by hand";
            findings.push(Finding::warning(CHECK, what).about(called(node)).fix(fix));
        } else if let Some(ready) = unready.filter(|ready| facts.since(ready.since) > RECOVERY) {
            let what = format!(
                "has not been ready for {:#}: {} {}",
                facts.since(ready.since),
                ready.reason,
                ready.message
            );
            let fix = "kubectl describe node; with the feature gate NodeRepair, Karpenter replaces it";
            findings.push(Finding::warning(CHECK, what.trim_end()).about(called(node)).fix(fix));
        }
    }
    or_ok(findings, CHECK, format!("{count} of Karpenter's in service"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn node(extra: Value) -> Value {
        let mut node = json!({"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2026-01-01T11:00:00Z",
            "labels": {"karpenter.sh/nodepool": "general"}}});
        for (key, value) in extra.as_object().expect("fields") {
            node[key] = value.clone();
        }
        node
    }

    #[test]
    fn a_node_out_of_service_is_told() {
        let claim = || vec![json!({"kind": "NodeClaim", "status": {"nodeName": "n"}})];
        let with = |extra| {
            Situation::default()
                .with(CLAIMS, claim())
                .with(NODES, vec![node(extra)])
        };
        check(nodes, with(json!({})), "ok: 1 of Karpenter's in service");
        check(
            nodes,
            with(json!({"spec": {"taints": [{"key": "karpenter.sh/unregistered"}]}})),
            "problem node/n: still has the taint karpenter.sh/unregistered after 1h",
        );
        check(
            nodes,
            with(
                json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady",
                "lastTransitionTime": "2026-01-01T11:30:00Z"}]}}),
            ),
            "warning node/n: has not been ready for 30m: KubeletNotReady",
        );
        check(
            nodes,
            with(json!({})).with(CLAIMS, vec![]),
            "warning node/n: has the label of a node pool and no node claim",
        );
    }
}
