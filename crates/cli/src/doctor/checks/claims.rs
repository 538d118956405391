//! Node claims that do not get on: not launched, not registered, not initialized, or not gone.

use jiff::SignedDuration;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{CLAIMS, Facts, called, condition, is_deleting, text},
    finding::Finding,
};

const CHECK: &str = "node-claims";
/// A launch takes seconds, and is given up after five minutes.
const LAUNCH: SignedDuration = SignedDuration::from_mins(2);
/// A node joins within a minute or two, and is given up after fifteen.
const REGISTRATION: SignedDuration = SignedDuration::from_mins(5);
const INITIALIZATION: SignedDuration = SignedDuration::from_mins(10);
/// Drains may take long on purpose; after this somebody should look.
const TERMINATION: SignedDuration = SignedDuration::from_mins(30);

pub fn claims(facts: &Facts) -> Vec<Finding> {
    if let Some(why) = facts.unread(CLAIMS) {
        return vec![Finding::unknown(CHECK, format!("node claims cannot be read: {why}"))];
    }
    let claims = facts.of(CLAIMS);
    let findings = claims.iter().filter_map(|claim| complaint(claim, facts)).collect();
    or_ok(findings, CHECK, format!("{} get on", claims.len()))
}

fn complaint(claim: &Value, facts: &Facts) -> Option<Finding> {
    if is_deleting(claim) {
        let since = facts.since(text(claim, "/metadata/deletionTimestamp"));
        // Without a controller, `finalizers` tells more.
        return (since > TERMINATION && facts.is_controlled()).then(|| {
            let waits = ["Drained", "VolumesDetached", "InstanceTerminating"];
            let waits = waits.iter().find_map(|kind| {
                let found = condition(claim, kind).filter(|found| found.status != "True")?;
                Some(format!(": {kind} is {} {} {}", found.status, found.reason, found.message))
            });
            let what = format!("has been on its way out for {since:#}{}", waits.unwrap_or_default());
            let fix = "a PodDisruptionBudget or karpenter.sh/do-not-disrupt may hold it: events of the node name the pods; spec.terminationGracePeriod bounds the wait";
            Finding::warning(CHECK, what.trim_end()).about(called(claim)).fix(fix)
        });
    }
    let age = facts.age(claim);
    let steps = [
        (
            "Launched",
            LAUNCH,
            "the message is EC2's: capacity, permissions, service-linked role, image or template",
        ),
        (
            "Registered",
            REGISTRATION,
            "the instance runs but its kubelet does not join: role mapping, security groups, DNS, CNI, user data; the console log of the instance tells",
        ),
        (
            "Initialized",
            INITIALIZATION,
            "the node is not ready, a startup taint stays, or a device plugin does not report its resource",
        ),
    ];
    let (kind, patience, fix) = steps
        .into_iter()
        .find(|(kind, _, _)| condition(claim, kind).is_none_or(|found| found.status != "True"))?;
    if age <= patience {
        return None;
    }
    let found = condition(claim, kind);
    let (reason, message) = found.map_or(("", ""), |found| (found.reason, found.message));
    let what = format!("not {} after {age:#}: {reason} {message}", kind.to_lowercase());
    Some(
        Finding::problem(CHECK, what.trim_end_matches([' ', ':']))
            .about(called(claim))
            .fix(fix),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };
    use crate::doctor::facts::DEPLOYMENTS;

    fn claim(created: &str, conditions: Value) -> Situation {
        let claim = json!({"kind": "NodeClaim", "metadata": {"name": "general-1", "creationTimestamp": created},
            "status": {"conditions": conditions}});
        Situation::default().with(CLAIMS, vec![claim])
    }

    #[test]
    fn a_claim_gets_time_and_then_a_word() {
        let launched = json!([{"type": "Launched", "status": "True"}, {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound"}]);
        check(claims, claim("2026-01-01T11:58:00Z", launched.clone()), "ok: 1 get on");
        check(
            claims,
            claim("2026-01-01T11:50:00Z", launched),
            "problem nodeclaim/general-1: not registered after 10m: NodeNotFound",
        );
        let refused =
            json!([{"type": "Launched", "status": "False", "reason": "LaunchFailed", "message": "no subnets"}]);
        check(
            claims,
            claim("2026-01-01T11:57:00Z", refused),
            "problem nodeclaim/general-1: not launched after 3m: LaunchFailed no subnets",
        );
    }

    #[test]
    fn a_long_goodbye_is_told_with_what_it_waits_for() {
        let claim = json!({"kind": "NodeClaim", "metadata": {"name": "general-1", "deletionTimestamp": "2026-01-01T11:00:00Z"},
            "status": {"conditions": [{"type": "Drained", "status": "Unknown", "reason": "Draining"}]}});
        let controller = json!({"kind": "Deployment", "metadata": {"labels": {"app.kubernetes.io/name": "karpenter"}}, "status": {"readyReplicas": 1}});
        check(
            claims,
            Situation::default()
                .with(CLAIMS, vec![claim])
                .with(DEPLOYMENTS, vec![controller]),
            "warning nodeclaim/general-1: has been on its way out for 1h: Drained is Unknown Draining",
        );
    }
}
