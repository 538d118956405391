//! Whether exactly one autoscaler acts, and nobody does its work a second time.

use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{DAEMON_SETS, DEPLOYMENTS, Facts, LEASES, called, containers, text},
    finding::Finding,
};

pub fn lease(facts: &Facts) -> Vec<Finding> {
    let check = "lease";
    if let Some(why) = facts.unread(LEASES) {
        return vec![Finding::unknown(check, format!("leases cannot be read: {why}"))];
    }
    let leases = facts.of(LEASES);
    let (held, idle): (Vec<&Value>, Vec<&Value>) = leases.iter().partition(|lease| facts.is_held(lease));
    if held.len() > 1 {
        let names: Vec<String> = held.iter().map(|lease| called(lease)).collect();
        let what = format!("{} are held: two installations lead at a time", names.join(" and "));
        return vec![Finding::problem(check, what).fix("uninstall one of them")];
    }
    let Some(lease) = held.first().or(idle.first()) else {
        return vec![if facts.is_controlled() {
            Finding::warning(check, "no lease karpenter-leader-election, although a controller runs")
                .fix("expected with DISABLE_LEADER_ELECTION or another LEADER_ELECTION_NAME; otherwise its log tells why it does not lead")
        } else {
            Finding::unknown(check, "nobody has ever led")
        }];
    };
    let mut findings = vec![standing(lease, facts)];
    findings.extend(idle.iter().filter(|other| !std::ptr::eq(**other, *lease)).map(|left| {
        let (namespace, name) = (text(left, "/metadata/namespace"), text(left, "/metadata/name"));
        let fix = format!("kubectl delete lease {name} -n {namespace}, if its installation is gone");
        let what = "nobody renews it: an installation was here, or is and does not lead";
        Finding::warning(check, what).about(called(left)).fix(fix)
    }));
    findings
}

fn standing(lease: &Value, facts: &Facts) -> Finding {
    let check = "lease";
    let holder = text(lease, "/spec/holderIdentity");
    if facts.is_held(lease) {
        return Finding::ok(check, format!("held by {holder}"));
    }
    if !holder.is_empty() {
        let silent = facts.since(text(lease, "/spec/renewTime"));
        let what = format!("{holder} has not renewed it for {silent:#}");
        return Finding::problem(check, what)
            .about(called(lease))
            .fix("its holder is gone and nobody took over: start the controller");
    }
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
            "problem: lease/a/karpenter-leader-election and lease/b/karpenter-leader-election are held: two installations \
             lead at a time",
        );
        // A namespace that an installation has left.
        check(
            lease,
            with(vec![
                held("a", "x", "2026-01-01T09:00:00Z"),
                held("b", "y", "2026-01-01T11:59:59Z"),
            ]),
            "ok: held by y\n\
             warning lease/a/karpenter-leader-election: nobody renews it: an installation was here, or is and does not lead",
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
