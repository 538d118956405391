//! Node pools that launch nothing: not ready, without a class, or at their limit.

use model::Quantity;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{EC2_CLASSES, Facts, KWOK_CLASSES, POOLS, called, condition, text},
    finding::Finding,
};

const CHECK: &str = "node-pools";

pub fn pools(facts: &Facts) -> Vec<Finding> {
    if let Some(why) = facts.unread(POOLS) {
        return vec![Finding::unknown(CHECK, format!("node pools cannot be read: {why}"))];
    }
    let pools = facts.of(POOLS);
    if pools.is_empty() {
        let fix = "apply a NodePool and a node class; deploy/blueprint/karpenter.yaml is a start";
        return vec![Finding::warning(CHECK, "there is none: nothing is launched").fix(fix)];
    }
    let findings: Vec<Finding> = pools.iter().flat_map(|pool| complaints(pool, facts)).collect();
    or_ok(findings, CHECK, format!("{} ready", pools.len()))
}

fn complaints(pool: &Value, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let class = |place: &str| text(pool, &format!("/spec/template/spec/nodeClassRef/{place}"));
    let (kind, name) = (class("kind"), class("name"));
    let classes = match kind {
        "EC2NodeClass" => Some(EC2_CLASSES),
        "KWOKNodeClass" => Some(KWOK_CLASSES),
        _ => None,
    };
    let is_there = |kind| facts.of(kind).iter().any(|class| text(class, "/metadata/name") == name);
    if classes.is_some_and(|kind| facts.unread(kind).is_none() && !is_there(kind)) {
        let what = format!("refers to {kind} {name}, which does not exist");
        findings.push(
            Finding::problem(CHECK, what)
                .about(called(pool))
                .fix("create it, or change spec.template.spec.nodeClassRef"),
        );
    } else {
        let faults = ["ValidationSucceeded", "NodeClassReady", "Ready"];
        let fault = faults.iter().find_map(|kind| {
            let found = condition(pool, kind).filter(|found| found.status != "True")?;
            Some(format!(
                "{kind} is {}: {} {}",
                found.status, found.reason, found.message
            ))
        });
        if let Some(fault) = fault {
            let fix = "what its node class or its spec has to change is in the message; kubectl describe shows all conditions";
            findings.push(Finding::problem(CHECK, fault.trim_end()).about(called(pool)).fix(fix));
        }
    }
    let unhealthy = condition(pool, "NodeRegistrationHealthy").filter(|found| found.status == "False");
    if let Some(found) = unhealthy {
        let what = format!("its nodes do not register: {} {}", found.reason, found.message);
        let fix = "see role mapping below; then security groups, the CNI, and the kubelet's log on the instance";
        findings.push(Finding::problem(CHECK, what.trim_end()).about(called(pool)).fix(fix));
    }
    findings.extend(at_limit(pool));
    findings
}

fn at_limit(pool: &Value) -> Option<Finding> {
    let limits = pool.pointer("/spec/limits")?.as_object()?;
    let quantity = |value: &Value| -> Option<Quantity> {
        match value {
            Value::String(text) => text.parse().ok(),
            number => number.to_string().parse().ok(),
        }
    };
    let reached = limits.iter().find(|(resource, limit)| {
        let used = pool.pointer("/status/resources").and_then(|used| used.get(resource));
        used.and_then(quantity)
            .zip(quantity(limit))
            .is_some_and(|(used, limit)| used >= limit)
    });
    let (resource, limit) = reached?;
    let what = format!("is at its limit of {} {resource}", limit.to_string().trim_matches('"'));
    Some(
        Finding::warning(CHECK, what)
            .about(called(pool))
            .fix("raise spec.limits, or add a pool"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn pool(status: Value) -> Situation {
        let pool = json!({"kind": "NodePool", "metadata": {"name": "general"}, "status": status, "spec": {"limits": {"cpu": 100},
            "template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass", "name": "default"}}}}});
        let class = json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}});
        Situation::default()
            .with(POOLS, vec![pool])
            .with(EC2_CLASSES, vec![class])
    }

    #[test]
    fn a_pool_that_launches_nothing_says_why() {
        check(
            pools,
            Situation::default(),
            "warning: there is none: nothing is launched",
        );
        check(
            pools,
            pool(json!({"conditions": [{"type": "Ready", "status": "True"}]})),
            "ok: 1 ready",
        );
        check(
            pools,
            pool(
                json!({"conditions": [{"type": "NodeClassReady", "status": "False", "reason": "NotReady", "message": "no subnets"},
                {"type": "Ready", "status": "False"}]}),
            ),
            "problem nodepool/general: NodeClassReady is False: NotReady no subnets",
        );
        check(
            pools,
            pool(
                json!({"conditions": [{"type": "NodeRegistrationHealthy", "status": "False", "reason": "RegistrationFailed"}]}),
            ),
            "problem nodepool/general: its nodes do not register: RegistrationFailed",
        );
        check(
            pools,
            pool(json!({"resources": {"cpu": "100"}})),
            "warning nodepool/general: is at its limit of 100 cpu",
        );
        check(
            pools,
            pool(json!({})).with(EC2_CLASSES, vec![]),
            "problem nodepool/general: refers to EC2NodeClass default, which does not exist",
        );
    }
}
