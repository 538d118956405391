//! Node classes that cannot be launched from, and which of their conditions says why.

use super::or_ok;
use crate::doctor::{
    facts::{EC2_CLASSES, Facts, KWOK_CLASSES, called, condition},
    finding::Finding,
};

const CHECK: &str = "node-classes";

/// What helps against each of the conditions that make a class unready.
const REMEDIES: [(&str, &str); 7] = [
    (
        "SubnetsReady",
        "tag the cluster's subnets karpenter.sh/discovery=<cluster>, or name them in spec.subnetSelectorTerms",
    ),
    (
        "SecurityGroupsReady",
        "tag one security group karpenter.sh/discovery=<cluster>, or name groups in spec.securityGroupSelectorTerms",
    ),
    (
        "AMIsReady",
        "spec.amiSelectorTerms matches no image: check the alias, the ids and the region",
    ),
    (
        "InstanceProfileReady",
        "check that spec.role exists, and that the controller may pass it and make instance profiles",
    ),
    (
        "PlacementGroupReady",
        "check spec.placementGroupSelector and ec2:DescribePlacementGroups",
    ),
    (
        "CapacityReservationsReady",
        "check spec.capacityReservationSelectorTerms and ec2:DescribeCapacityReservations",
    ),
    (
        "ValidationSucceeded",
        "the message names the call that EC2 refused; any change of an annotation has it tried again",
    ),
];

pub fn classes(facts: &Facts) -> Vec<Finding> {
    if let Some(why) = facts.unread(EC2_CLASSES) {
        return vec![Finding::unknown(CHECK, format!("node classes cannot be read: {why}"))];
    }
    let mut findings = Vec::new();
    let mut count = 0;
    for class in facts.of(EC2_CLASSES).iter().chain(facts.of(KWOK_CLASSES)) {
        count += 1;
        let mut named = false;
        for (kind, remedy) in REMEDIES {
            let Some(found) = condition(class, kind).filter(|found| found.status == "False") else {
                continue;
            };
            named = true;
            let what = format!("{kind} is False: {} {}", found.reason, found.message);
            findings.push(
                Finding::problem(CHECK, what.trim_end())
                    .about(called(class))
                    .fix(remedy),
            );
        }
        match condition(class, "Ready") {
            Some(ready) if ready.status == "True" || named => {}
            Some(ready) => {
                let what = format!("Ready is {}: {} {}", ready.status, ready.reason, ready.message);
                let fix = "the controller's log tells what it waits for";
                findings.push(Finding::problem(CHECK, what.trim_end()).about(called(class)).fix(fix));
            }
            None if facts.is_controlled() => {
                let fix = "the controller's log tells why";
                findings.push(
                    Finding::problem(CHECK, "no controller has looked at it")
                        .about(called(class))
                        .fix(fix),
                );
            }
            None => findings.push(Finding::unknown(CHECK, "no controller has looked at it").about(called(class))),
        }
    }
    or_ok(findings, CHECK, format!("{count} ready"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn class(conditions: Value) -> Situation {
        let class =
            json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}, "status": {"conditions": conditions}});
        Situation::default().with(EC2_CLASSES, vec![class])
    }

    #[test]
    fn the_condition_that_is_at_fault_is_named() {
        check(
            classes,
            class(json!([{"type": "Ready", "status": "True"}])),
            "ok: 1 ready",
        );
        check(
            classes,
            class(json!([
                {"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "message": "SubnetSelector did not match any Subnets"},
                {"type": "Ready", "status": "False", "reason": "UnhealthyDependents"}])),
            "problem ec2nodeclass/default: SubnetsReady is False: SubnetsNotFound SubnetSelector did not match any Subnets",
        );
        check(
            classes,
            class(json!([{"type": "Ready", "status": "Unknown", "reason": "AwaitingReconciliation"}])),
            "problem ec2nodeclass/default: Ready is Unknown: AwaitingReconciliation",
        );
        check(
            classes,
            class(json!([])),
            "unknown ec2nodeclass/default: no controller has looked at it",
        );
    }
}
