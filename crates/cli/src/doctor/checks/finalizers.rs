//! Objects that wait for a controller which is not there any more.

use api::labels::finalizers::{EC2_NODE_CLASS, TERMINATION};
use serde_json::Value;

use crate::doctor::{
    facts::{CLAIMS, EC2_CLASSES, Facts, MACHINES, NODES, called, is_deleting, list, text},
    finding::Finding,
};

const CHECK: &str = "finalizers";

pub fn left_behind(facts: &Facts) -> Vec<Finding> {
    if facts.is_controlled() {
        return vec![Finding::ok(CHECK, "a controller is there to remove its own")];
    }
    let ours = |object: &&Value| {
        let mut finalizers = list(object, "/metadata/finalizers").iter().filter_map(Value::as_str);
        is_deleting(object) && finalizers.any(|name| name == TERMINATION || name == EC2_NODE_CLASS)
    };
    let objects = [NODES, CLAIMS, EC2_CLASSES, MACHINES]
        .into_iter()
        .flat_map(|kind| facts.of(kind))
        .filter(ours);
    let findings: Vec<Finding> = objects.map(held).collect();
    super::or_ok(findings, CHECK, "no object waits for a controller")
}

fn held(object: &Value) -> Finding {
    let what = "waits for a controller that is not there";
    let instance = match text(object, "/spec/providerID") {
        "" => text(object, "/status/providerID"),
        id => id,
    };
    let instance = instance.rsplit('/').next().filter(|id| !id.is_empty());
    let terminate = instance.map(|id| format!("aws ec2 terminate-instances --instance-ids {id}: nobody else will\n"));
    let (kind, name) = (text(object, "/kind").to_lowercase(), text(object, "/metadata/name"));
    let fix = format!(
        "start the controller again and it finishes; or by hand:\n{}kubectl patch {kind} {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        terminate.unwrap_or_default()
    );
    Finding::problem(CHECK, what).about(called(object)).fix(fix)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::situation::{Situation, check},
        *,
    };
    use crate::doctor::facts::LEASES;

    #[test]
    fn what_an_uninstalled_controller_left_is_named_with_its_instance() {
        let node = json!({"kind": "Node", "metadata": {"name": "n", "deletionTimestamp": "2026-01-01T11:00:00Z",
            "finalizers": ["karpenter.sh/termination"]}, "spec": {"providerID": "aws:///us-west-2a/i-0123"}});
        let situation = || Situation::default().with(NODES, vec![node.clone()]);
        check(
            left_behind,
            situation(),
            "problem node/n: waits for a controller that is not there",
        );
        let findings = left_behind(&situation().facts());
        let fix = findings[0].fix.as_deref().expect("a remedy");
        assert!(
            fix.contains("--instance-ids i-0123") && fix.contains("kubectl patch node n"),
            "{fix}"
        );
        check(
            left_behind,
            Situation::default(),
            "ok: no object waits for a controller",
        );
        // A controller may run outside of the cluster; nobody is to do its work by hand meanwhile.
        let lease = json!({"kind": "Lease", "metadata": {"name": "karpenter-leader-election", "namespace": "default"},
            "spec": {"holderIdentity": "far-away", "renewTime": "2026-01-01T11:59:58.000000Z"}});
        check(
            left_behind,
            situation().with(LEASES, vec![lease]),
            "ok: a controller is there to remove its own",
        );
    }
}
