//! Whether the controller runs, on a Kubernetes that it knows, with settings that mean something, and finds names.

use operator::settings::retired_variables;
use serde_json::Value;

use super::or_ok;
use crate::doctor::{
    facts::{
        CONTROLLER_PODS, DEPLOYMENTS, DNS_PODS, Facts, GLOBAL_SETTINGS, NODES, called, condition, containers, list,
        text, variable,
    },
    finding::Finding,
};

/// Minor versions of Kubernetes that this release has been tried with.
const SUPPORTED: std::ops::RangeInclusive<u32> = 26..=36;

pub fn version(facts: &Facts) -> Vec<Finding> {
    let check = "kubernetes";
    let mut numbers = facts.version.trim_start_matches('v').split('.');
    let major = numbers.next().and_then(|number| number.parse::<u32>().ok());
    let minor = numbers.next().map(|number| number.trim_end_matches('+'));
    let minor = minor.and_then(|number| number.parse::<u32>().ok());
    vec![match (major, minor) {
        (Some(1), Some(minor)) if SUPPORTED.contains(&minor) => Finding::ok(check, facts.version.clone()),
        (Some(1), Some(minor)) if minor < *SUPPORTED.start() => {
            let what = format!(
                "{} is too old: definitions need 1.{} at least",
                facts.version,
                SUPPORTED.start()
            );
            Finding::problem(check, what).fix("upgrade the control plane, or stay with an older release")
        }
        _ => {
            let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
            let what = format!(
                "{} has not been tried with this release (1.{first} to 1.{last})",
                facts.version
            );
            Finding::warning(check, what)
        }
    }]
}

pub fn deployment(facts: &Facts) -> Vec<Finding> {
    let check = "controller";
    if let Some(why) = facts.unread(DEPLOYMENTS) {
        return vec![Finding::unknown(check, format!("deployments cannot be read: {why}"))];
    }
    let controllers: Vec<&Value> = facts.controllers().collect();
    let mut findings = Vec::new();
    let [controller, others @ ..] = controllers.as_slice() else {
        let fix = "install the chart (docs/install.md); a controller that runs outside of the cluster is fine";
        return vec![Finding::warning(check, "no deployment of Karpenter is in this cluster").fix(fix)];
    };
    for other in others {
        let what = format!("is a second Karpenter beside {}", called(controller));
        findings.push(
            Finding::problem(check, what)
                .about(called(other))
                .fix("scale one of them to zero; with different lease names both act, and work against each other"),
        );
    }
    let replicas = |place: &str| controller.pointer(place).and_then(Value::as_i64).unwrap_or_default();
    let (wanted, ready) = (replicas("/spec/replicas"), replicas("/status/readyReplicas"));
    if wanted == 0 {
        let what = "is scaled to zero: nobody acts";
        let fix = "kubectl scale, or the value replicas of the chart";
        findings.push(Finding::problem(check, what).about(called(controller)).fix(fix));
    } else if ready == 0 {
        let fix = "kubectl logs and kubectl describe of its pods tell why";
        let what = format!("none of {wanted} replicas is ready");
        findings.push(Finding::problem(check, what).about(called(controller)).fix(fix));
    } else if ready < wanted {
        let what = format!("{ready} of {wanted} replicas are ready");
        let fix = "Karpenter makes no node for itself, and wants its replicas on different hosts and zones: add a node, or set replicas to 1";
        findings.push(Finding::warning(check, what).about(called(controller)).fix(fix));
    }
    findings.extend(facts.of(CONTROLLER_PODS).iter().filter_map(complaint));
    let summary = format!("{} runs with {ready} of {wanted} replicas", called(controller));
    or_ok(findings, check, summary)
}

/// Why a pod of the controller is not what it should be.
fn complaint(pod: &Value) -> Option<Finding> {
    let check = "controller";
    let waiting = list(pod, "/status/containerStatuses").iter().find_map(|status| {
        let reason = text(status, "/state/waiting/reason");
        let last = status.pointer("/lastState/terminated/exitCode").and_then(Value::as_i64);
        (!reason.is_empty() && reason != "ContainerCreating").then(|| (reason.to_owned(), last))
    });
    if let Some((reason, last)) = waiting {
        let fix = match reason.contains("Image") {
            true => {
                "set controller.image.repository to where your image is, and imagePullSecrets where it wants them: unless set, the chart names upstream's image"
            }
            false => {
                "kubectl logs --previous tells what it said last; a lookup of sts that times out wants dnsPolicy: Default"
            }
        };
        let what = match last {
            Some(code) => format!("{reason}, last exit code {code}"),
            None => reason,
        };
        return Some(Finding::problem(check, what).about(called(pod)).fix(fix));
    }
    let scheduled = condition(pod, "PodScheduled").filter(|condition| condition.status == "False")?;
    let what = format!("has no node: {}", scheduled.message);
    Some(
        Finding::warning(check, what)
            .about(called(pod))
            .fix("Karpenter makes no node for itself: add one that is not its own"),
    )
}

pub fn settings(facts: &Facts) -> Vec<Finding> {
    let check = "settings";
    let mut findings = Vec::new();
    for controller in facts.controllers() {
        let about = called(controller);
        let Some(container) = containers(controller).find(|container| variable(container, "METRICS_PORT").is_some())
        else {
            continue;
        };
        let set = |name: &str| variable(container, name).map(str::to_owned);
        for warning in retired_variables(set) {
            findings.push(
                Finding::warning(check, warning)
                    .about(&about)
                    .fix("take it out of controller.env"),
            );
        }
        if set("CLUSTER_NAME").is_none_or(|name| name.is_empty()) && set("CLUSTER_ENDPOINT").is_none() {
            let fix = "helm upgrade --reset-then-reuse-values --set settings.clusterName=<cluster>";
            findings.push(
                Finding::warning(check, "CLUSTER_NAME is not set, which AWS needs")
                    .about(&about)
                    .fix(fix),
            );
        } else if set("INTERRUPTION_QUEUE").is_none_or(|queue| queue.is_empty()) {
            let what = "no interruption queue: nodes that AWS takes back are not drained in time";
            let fix = "deploy/aws makes one; then --set settings.interruptionQueue=<queue>";
            findings.push(Finding::warning(check, what).about(&about).fix(fix));
        }
    }
    // Where older kinds are followed, it says what node templates leave out.
    let follows = facts.follows_older_kinds();
    for map in facts.of(GLOBAL_SETTINGS) {
        let finding = match &follows {
            Ok(true) => continue,
            Ok(false) => Finding::warning(check, "has had no effect since 0.33")
                .fix("karpenter convert -f reads it and prints the values of today; then delete it"),
            Err(why) => Finding::unknown(check, format!("whether it is read is not known: {why}")),
        };
        findings.push(finding.about(called(map)));
    }
    or_ok(findings, check, "none that has no effect")
}

/// A controller that has to make the nodes for the cluster's DNS must not need that DNS.
pub fn dns(facts: &Facts) -> Vec<Finding> {
    let check = "dns";
    let asks_cluster = |controller: &&Value| {
        let policy = text(controller, "/spec/template/spec/dnsPolicy");
        policy.is_empty() || policy == "ClusterFirst"
    };
    let Some(controller) = facts.controllers().find(asks_cluster) else {
        return vec![Finding::ok(check, "the controller does not ask the cluster's DNS")];
    };
    let servers = facts.of(DNS_PODS);
    if servers.is_empty() {
        return vec![Finding::unknown(
            check,
            "no pods with the label k8s-app=kube-dns to look at",
        )];
    }
    let is_own = |node: &str| {
        let nodes = facts.of(NODES).iter();
        let mut named = nodes.filter(|found| text(found, "/metadata/name") == node);
        named.any(|found| !text(found, "/metadata/labels/karpenter.sh~1nodepool").is_empty())
    };
    let stands_alone = |pod: &&Value| {
        let ready = condition(pod, "Ready").is_some_and(|ready| ready.status == "True");
        ready && !is_own(text(pod, "/spec/nodeName"))
    };
    let fix = "--set dnsPolicy=Default, or a node group that CoreDNS tolerates";
    if servers.iter().any(|pod| stands_alone(&pod)) {
        vec![Finding::ok(
            check,
            "the cluster's DNS has pods on nodes that are not Karpenter's",
        )]
    } else if facts.is_controlled() {
        let what = "the cluster's DNS runs on Karpenter's own nodes alone; a restart of both ends in a deadlock";
        vec![Finding::warning(check, what).about(called(controller)).fix(fix)]
    } else {
        let what = "needs the cluster's DNS, which has no pod on a node that is not Karpenter's";
        vec![Finding::problem(check, what).about(called(controller)).fix(fix)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };
    use crate::{doctor::facts::DEFINITIONS, reader::Unread};

    fn deployed(name: &str, wanted: i64, ready: i64, env: &[(&str, &str)]) -> Value {
        let mut variables = vec![json!({"name": "METRICS_PORT", "value": "8080"})];
        variables.extend(env.iter().map(|(name, value)| json!({"name": name, "value": value})));
        json!({"kind": "Deployment", "metadata": {"name": name, "namespace": "kube-system",
            "labels": {"app.kubernetes.io/name": "karpenter"}},
          "spec": {"replicas": wanted, "template": {"spec": {"containers": [{"name": "controller", "image": "x", "env": variables}]}}},
          "status": {"readyReplicas": ready}})
    }

    #[test]
    fn versions_out_of_range_are_told() {
        let of = |version| Situation {
            version: Some(version),
            ..Situation::default()
        };
        check(version, of("v1.35.2"), "ok: v1.35.2");
        check(version, of("v1.33+"), "ok: v1.33+");
        check(
            version,
            of("v1.25.0"),
            "problem: v1.25.0 is too old: definitions need 1.26 at least",
        );
        check(
            version,
            of("v1.99.0-eks"),
            "warning: v1.99.0-eks has not been tried with this release (1.26 to 1.36)",
        );
    }

    #[test]
    fn a_controller_that_does_not_run_is_told() {
        let with = |deployments| Situation::default().with(DEPLOYMENTS, deployments);
        check(
            deployment,
            with(vec![]),
            "warning: no deployment of Karpenter is in this cluster",
        );
        check(
            deployment,
            with(vec![deployed("karpenter", 2, 2, &[])]),
            "ok: deployment/kube-system/karpenter runs with 2 of 2 replicas",
        );
        let mut renamed = deployed("keeper", 2, 2, &[("KARPENTER_SERVICE", "keeper")]);
        renamed["metadata"]["labels"] = json!({"app.kubernetes.io/name": "keeper"});
        check(
            deployment,
            with(vec![renamed]),
            "ok: deployment/kube-system/keeper runs with 2 of 2 replicas",
        );
        check(
            deployment,
            with(vec![deployed("karpenter", 0, 0, &[])]),
            "problem deployment/kube-system/karpenter: is scaled to zero: nobody acts",
        );
        check(
            deployment,
            with(vec![deployed("karpenter", 2, 1, &[]), deployed("upstream", 2, 2, &[])]),
            "problem deployment/kube-system/upstream: is a second Karpenter beside deployment/kube-system/karpenter\n\
             warning deployment/kube-system/karpenter: 1 of 2 replicas are ready",
        );
        let crashed = json!({"kind": "Pod", "metadata": {"name": "karpenter-1", "namespace": "kube-system"}, "status":
            {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}}}]}});
        check(
            deployment,
            with(vec![deployed("karpenter", 1, 0, &[])]).with(CONTROLLER_PODS, vec![crashed]),
            "problem deployment/kube-system/karpenter: none of 1 replicas is ready\n\
             problem pod/kube-system/karpenter-1: CrashLoopBackOff, last exit code 2",
        );
        check(
            deployment,
            Situation::default().without(DEPLOYMENTS, Unread::Forbidden("no".to_owned())),
            "unknown: deployments cannot be read: not allowed: no",
        );
    }

    #[test]
    fn settings_without_effect_are_named() {
        let with =
            |env: &[(&str, &str)]| Situation::default().with(DEPLOYMENTS, vec![deployed("karpenter", 1, 1, env)]);
        check(
            settings,
            with(&[("CLUSTER_NAME", "demo"), ("INTERRUPTION_QUEUE", "demo")]),
            "ok: none that has no effect",
        );
        check(
            settings,
            with(&[("CLUSTER_NAME", "demo"), ("LEADER_ELECT", "false")]),
            "warning deployment/kube-system/karpenter: environment variable LEADER_ELECT has no effect: use \
             DISABLE_LEADER_ELECTION, with the opposite value\n\
             warning deployment/kube-system/karpenter: no interruption queue: nodes that AWS takes back are not drained in time",
        );
        check(
            settings,
            with(&[]),
            "warning deployment/kube-system/karpenter: CLUSTER_NAME is not set, which AWS needs",
        );
    }

    #[test]
    fn global_settings_have_no_effect_unless_older_kinds_are_followed() {
        let with = |lists_provisioners| {
            let env = [("CLUSTER_NAME", "demo"), ("INTERRUPTION_QUEUE", "demo")];
            let map = json!({"kind": "ConfigMap", "metadata": {"name": "karpenter-global-settings", "namespace": "kube-system"}});
            let provisioners = json!({"metadata": {"name": "provisioners.karpenter.sh"},
                "spec": {"versions": [{"name": "v1alpha5", "served": true}]}});
            let situation = Situation {
                lists_provisioners,
                ..Situation::default()
            };
            situation
                .with(DEPLOYMENTS, vec![deployed("karpenter", 1, 1, &env)])
                .with(DEFINITIONS, vec![provisioners])
                .with(GLOBAL_SETTINGS, vec![map])
        };
        check(settings, with(Ok(true)), "ok: none that has no effect");
        check(
            settings,
            with(Ok(false)),
            "warning configmap/kube-system/karpenter-global-settings: has had no effect since 0.33",
        );
        check(
            settings,
            with(Err(Unread::Forbidden("ask".to_owned()))),
            "unknown configmap/kube-system/karpenter-global-settings: whether it is read is not known: the API server does \
             not say whether the controller may list provisioners: not allowed: ask",
        );
    }

    #[test]
    fn dns_that_waits_for_its_own_nodes_is_a_deadlock() {
        let server = |node: &str| {
            json!({"kind": "Pod", "metadata": {"name": "coredns"}, "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        };
        let nodes = vec![
            json!({"kind": "Node", "metadata": {"name": "own", "labels": {"karpenter.sh/nodepool": "general"}}}),
            json!({"kind": "Node", "metadata": {"name": "other", "labels": {}}}),
        ];
        let with = |node: &str, ready| {
            let deployments = vec![deployed("karpenter", 1, ready, &[])];
            let situation = Situation::default()
                .with(DEPLOYMENTS, deployments)
                .with(NODES, nodes.clone());
            situation.with(DNS_PODS, vec![server(node)])
        };
        check(
            dns,
            with("other", 1),
            "ok: the cluster's DNS has pods on nodes that are not Karpenter's",
        );
        check(
            dns,
            with("own", 1),
            "warning deployment/kube-system/karpenter: the cluster's DNS runs on Karpenter's own nodes alone; a restart \
             of both ends in a deadlock",
        );
        check(
            dns,
            with("own", 0),
            "problem deployment/kube-system/karpenter: needs the cluster's DNS, which has no pod on a node that is not \
             Karpenter's",
        );
    }
}
