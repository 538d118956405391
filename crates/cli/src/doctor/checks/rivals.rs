//! Whether exactly one autoscaler acts, and nobody does its work a second time.

use jiff::SignedDuration;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{DAEMON_SETS, DEPLOYMENTS, Facts, LEASES, called, containers, text},
    finding::Finding,
};

/// A lease is renewed every two seconds and lapses after fifteen; a minute allows for clocks that differ.
const LAPSED: SignedDuration = SignedDuration::from_mins(1);

pub fn lease(facts: &Facts) -> Vec<Finding> {
    let check = "lease";
    if let Some(why) = facts.unread(LEASES) {
        return vec![Finding::unknown(check, format!("leases cannot be read: {why}"))];
    }
    let leases = facts.of(LEASES);
    let [lease] = leases else {
        return match leases.len() {
            0 if !facts.is_controlled() => vec![Finding::unknown(check, "nobody has ever led")],
            0 => vec![
                Finding::warning(check, "no lease karpenter-leader-election, although a controller runs")
                    .fix("expected with DISABLE_LEADER_ELECTION or another LEADER_ELECTION_NAME; otherwise its log tells why it does not lead"),
            ],
            _ => {
                let names: Vec<String> = leases.iter().map(called).collect();
                vec![
                    Finding::problem(check, format!("{} exist: two installations lead at a time", names.join(" and ")))
                        .fix("uninstall one, or delete the lease of an installation that is gone"),
                ]
            }
        };
    };
    let holder = text(lease, "/spec/holderIdentity");
    let silent = facts.since(text(lease, "/spec/renewTime"));
    vec![if holder.is_empty() {
        let what = "nobody holds it";
        if facts.is_controlled() {
            Finding::warning(check, what)
                .about(called(lease))
                .fix("fine for a moment after a restart")
        } else {
            Finding::problem(check, what)
                .about(called(lease))
                .fix("start the controller")
        }
    } else if silent > LAPSED {
        let what = format!("{holder} has not renewed it for {silent:#}");
        Finding::problem(check, what)
            .about(called(lease))
            .fix("its holder is gone and nobody took over: start the controller")
    } else {
        Finding::ok(check, format!("held by {holder}"))
    }]
}

/// Programs that scale the same nodes or drain them for the same reasons.
pub fn autoscalers(facts: &Facts) -> Vec<Finding> {
    let check = "rivals";
    let running = |workload: &&Value| {
        let replicas = workload.pointer("/spec/replicas").and_then(Value::as_i64);
        replicas.unwrap_or(1) > 0
    };
    let mut findings = Vec::new();
    for workload in facts
        .of(DEPLOYMENTS)
        .iter()
        .chain(facts.of(DAEMON_SETS))
        .filter(running)
    {
        let of = |image: &str| containers(workload).any(|container| text(container, "/image").contains(image));
        if of("cluster-autoscaler") {
            let what = "Cluster Autoscaler runs beside Karpenter: both answer the same pending pods";
            let (namespace, name) = (text(workload, "/metadata/namespace"), text(workload, "/metadata/name"));
            let fix = format!(
                "kubectl scale deployment {name} -n {namespace} --replicas=0, when Karpenter has taken over its groups"
            );
            findings.push(Finding::warning(check, what).about(called(workload)).fix(fix));
        } else if of("aws-node-termination-handler") {
            let what = "drains nodes for the same notices as the interruption queue";
            let fix = "uninstall it, or keep it off Karpenter's nodes (karpenter.sh/nodepool DoesNotExist)";
            findings.push(Finding::warning(check, what).about(called(workload)).fix(fix));
        } else if of("descheduler") {
            let what = "evicts pods on its own account; what it moves, Karpenter may move again";
            findings.push(
                Finding::warning(check, what)
                    .about(called(workload))
                    .fix("leave LowNodeUtilization off"),
            );
        }
    }
    or_ok(findings, check, "no other autoscaler or drain handler")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };

    fn held(namespace: &str, holder: &str, renewed: &str) -> Value {
        json!({"kind": "Lease", "metadata": {"name": "karpenter-leader-election", "namespace": namespace},
            "spec": {"holderIdentity": holder, "renewTime": renewed}})
    }

    #[test]
    fn a_lease_tells_whether_somebody_leads() {
        let with = |leases| Situation::default().with(LEASES, leases);
        check(
            lease,
            with(vec![held("a", "k-1", "2026-01-01T11:59:58.000000Z")]),
            "ok: held by k-1",
        );
        check(
            lease,
            with(vec![held("a", "k-1", "2026-01-01T11:50:00.000000Z")]),
            "problem lease/a/karpenter-leader-election: k-1 has not renewed it for 10m",
        );
        check(
            lease,
            with(vec![held("a", "", "2026-01-01T11:50:00Z")]),
            "problem lease/a/karpenter-leader-election: nobody holds it",
        );
        check(
            lease,
            with(vec![
                held("a", "x", "2026-01-01T11:59:59Z"),
                held("b", "y", "2026-01-01T11:59:59Z"),
            ]),
            "problem: lease/a/karpenter-leader-election and lease/b/karpenter-leader-election exist: two installations \
             lead at a time",
        );
    }

    #[test]
    fn others_that_do_the_same_work_are_named() {
        let runs = |name: &str, image: &str, replicas: i64| {
            json!({"kind": "Deployment", "metadata": {"name": name, "namespace": "ops"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}}})
        };
        check(
            autoscalers,
            Situation::default().with(
                DEPLOYMENTS,
                vec![
                    runs("web", "nginx", 1),
                    runs("scaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.30.0", 1),
                    runs("asleep", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.30.0", 0),
                ],
            ),
            "warning deployment/ops/scaler: Cluster Autoscaler runs beside Karpenter: both answer the same pending pods",
        );
        check(
            autoscalers,
            Situation::default(),
            "ok: no other autoscaler or drain handler",
        );
    }
}
