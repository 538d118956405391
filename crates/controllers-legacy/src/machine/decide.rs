//! Whether something that runs becomes a claim, and what that claim says.

use std::collections::BTreeMap;

use api::{
    Stored,
    labels::{self, compatibility},
    v1::{NodeClaim, NodeClaimSpec, NodePool, Operator, Requirement},
    v1alpha5::Machine,
};
use k8s_openapi::{
    api::core::v1::{Node, Taint},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};
use serde_json::Value;
use sha2::{Digest, Sha256};
use state::View;

/// What is to be done about a machine.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Its Provisioner has no pool yet.
    Wait,
    /// A claim is made that adopts its instance.
    Adopt { pool: String, instance: String },
    /// Its instance has a claim, or it never had an instance.
    Remove,
}

pub fn machine(machine: &Stored<Machine>, view: &View) -> Step {
    let Some(instance) = instance_of(machine) else {
        // Whoever waited for it is planned for anew.
        return Step::Remove;
    };
    if !view.claims_of(instance).is_empty() || adopting(view, instance) {
        return Step::Remove;
    }
    let pool = machine.labels().get(labels::PROVISIONER_NAME);
    match pool.filter(|pool| is_converted(view, pool)) {
        Some(pool) => Step::Adopt {
            pool: pool.clone(),
            instance: instance.to_owned(),
        },
        None => Step::Wait,
    }
}

/// Whether a node may be one that no claim was made for. One that bears the name of its pool was launched for a claim, whose
/// status may be about to say so.
pub fn is_of_the_time(node: &Node) -> bool {
    let labels = node.labels();
    labels.contains_key(labels::PROVISIONER_NAME) && !labels.contains_key(labels::NODE_POOL)
}

/// The pool and the instance of a node that no claim and no machine answers for.
pub fn forsaken(node: &Node, view: &View) -> Option<(String, String)> {
    let pool = node.labels().get(labels::PROVISIONER_NAME)?;
    let instance = node.spec.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())?;
    let has_machine = || {
        view.machines
            .values()
            .any(|machine| instance_of(machine) == Some(instance))
    };
    let is_left = node.metadata.deletion_timestamp.is_none()
        && is_of_the_time(node)
        && is_converted(view, pool)
        && view.claims_of(instance).is_empty()
        && !adopting(view, instance)
        && !has_machine();
    is_left.then(|| (pool.clone(), instance.to_owned()))
}

fn instance_of(machine: &Stored<Machine>) -> Option<&str> {
    let id = machine.data.pointer("/status/providerID")?.as_str()?;
    (!id.is_empty()).then_some(id)
}

/// A claim is there whose adoption is not recorded yet.
fn adopting(view: &View, instance: &str) -> bool {
    view.claims.values().any(|claim| {
        claim
            .annotations()
            .get(compatibility::ADOPTS)
            .is_some_and(|id| id == instance)
    })
}

fn is_converted(view: &View, pool: &str) -> bool {
    let managed = |pool: &NodePool| {
        let label = pool.labels().get(compatibility::MANAGED);
        label.is_some_and(|value| value == compatibility::LEGACY) && pool.metadata.deletion_timestamp.is_none()
    };
    view.pools.named(pool).is_some_and(|pool| managed(pool))
}

/// The claim that a machine comes to, as one that adopts. Hashes are left out: what was launched by another program is
/// not compared until it is replaced.
pub fn claim_of_machine(converted: &Value, pool: &NodePool, instance: &str, has_started: bool) -> Option<NodeClaim> {
    let mut object = converted.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let mut claim: NodeClaim = serde_json::from_value(object).ok()?;
    if has_started {
        // They were taken off once; putting them on again would drive pods away.
        claim.spec.startup_taints = None;
    }
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.retain(|key, _| !key.ends_with("-hash") && !key.ends_with("-hash-version"));
    adopt(&mut claim, pool, instance);
    Some(claim)
}

/// The claim of a node that came before machines did: what the node is, is what was asked for.
pub fn claim_of_node(node: &Node, pool: &NodePool, instance: &str) -> NodeClaim {
    const SETTLED: [&str; 5] = [
        labels::INSTANCE_TYPE,
        labels::ZONE,
        labels::CAPACITY_TYPE,
        labels::ARCH,
        labels::OS,
    ];
    let settled = SETTLED.iter().filter_map(|key| Some((*key, node.labels().get(*key)?)));
    let requirements = settled.clone().map(|(key, value)| Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: Some(vec![value.clone()]),
        min_values: None,
    });
    let template = &pool.spec.template;
    let mut claim = NodeClaim::new(
        &name(pool, instance),
        NodeClaimSpec {
            taints: own_taints(node),
            startup_taints: None,
            requirements: requirements.collect(),
            resources: None,
            node_class_ref: template.spec.node_class_ref.clone(),
            termination_grace_period: None,
            expire_after: template.spec.expire_after.clone(),
        },
    );
    let of_template = template.metadata.as_ref().and_then(|metadata| metadata.labels.clone());
    let mut labels: BTreeMap<String, String> = of_template.unwrap_or_default();
    labels.extend(settled.map(|(key, value)| (key.to_owned(), value.clone())));
    claim.metadata.labels = Some(labels);
    adopt(&mut claim, pool, instance);
    claim
}

/// The same for the same instance, so that a claim whose creation was not heard of is not made twice.
fn name(pool: &NodePool, instance: &str) -> String {
    let digest = Sha256::digest(instance.as_bytes());
    let suffix: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{suffix}", pool.name_any())
}

/// Taints that the Provisioner asked for: what the cluster itself puts on a node comes and goes.
fn own_taints(node: &Node) -> Option<Vec<Taint>> {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let is_own =
        |taint: &Taint| !taint.key.starts_with("node.kubernetes.io/") && !taint.key.starts_with("karpenter.sh/");
    let own: Vec<Taint> = taints
        .into_iter()
        .filter(is_own)
        .map(|taint| Taint {
            time_added: None,
            ..taint
        })
        .collect();
    (!own.is_empty()).then_some(own)
}

fn adopt(claim: &mut NodeClaim, pool: &NodePool, instance: &str) {
    let name = pool.name_any();
    let class = &pool.spec.template.spec.node_class_ref;
    let labels = claim.metadata.labels.get_or_insert_default();
    labels.insert(labels::NODE_POOL.to_owned(), name.clone());
    labels.insert(labels::PROVISIONER_NAME.to_owned(), name.clone());
    labels.insert(
        format!("{}/{}", class.group, class.kind.to_lowercase()),
        class.name.clone(),
    );
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(compatibility::ADOPTS.to_owned(), instance.to_owned());
    claim.metadata.finalizers = Some(vec![labels::finalizers::TERMINATION.to_owned()]);
    claim.metadata.owner_references = Some(vec![OwnerReference {
        api_version: NodePool::api_version(&()).into_owned(),
        kind: NodePool::kind(&()).into_owned(),
        name,
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool() -> NodePool {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default", "uid": "p"},
            "spec": {"template": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {
                    "requirements": [], "expireAfter": "720h",
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "shared"},
                },
            }},
        }))
        .expect("the literal is a pool")
    }

    /// A node that was launched for a claim may join before the claim's status names its instance.
    #[test]
    fn only_nodes_of_the_time_are_taken_in() {
        let served = state::Served::new([("karpenter.k8s.aws".to_owned(), "EC2NodeClass".to_owned())]);
        let index = state::Index::new(std::sync::Arc::default(), served);
        let mut pool = pool();
        pool.metadata.resource_version = Some("1".to_owned());
        pool.metadata.labels = Some([(compatibility::MANAGED.to_owned(), compatibility::LEGACY.to_owned())].into());
        index.apply(pool);
        let view = index.view();
        let node = |labels: Value| -> Node {
            let object = json!({"metadata": {"name": "n", "labels": labels}, "spec": {"providerID": "i"}});
            serde_json::from_value(object).expect("the literal is a node")
        };
        let of_the_time = node(json!({"karpenter.sh/provisioner-name": "default"}));
        assert_eq!(
            forsaken(&of_the_time, &view),
            Some(("default".to_owned(), "i".to_owned()))
        );
        let others = [
            node(json!({"karpenter.sh/provisioner-name": "default", "karpenter.sh/nodepool": "default"})),
            node(json!({"karpenter.sh/provisioner-name": "unknown"})),
            node(json!({})),
        ];
        assert!(others.iter().all(|node| forsaken(node, &view).is_none()));
    }

    #[test]
    fn a_node_becomes_a_claim_for_what_it_is() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "ip-10-0-0-1", "labels": {
                "karpenter.sh/provisioner-name": "default", "node.kubernetes.io/instance-type": "m5.large",
                "topology.kubernetes.io/zone": "us-west-2a", "karpenter.sh/capacity-type": "spot", "other": "x",
            }},
            "spec": {"providerID": "aws:///us-west-2a/i-1", "taints": [
                {"key": "gpu", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ]},
        }))
        .expect("the literal is a node");
        let claim = claim_of_node(&node, &pool(), "aws:///us-west-2a/i-1");
        assert_eq!(
            claim,
            claim_of_node(&node, &pool(), "aws:///us-west-2a/i-1"),
            "and always the same"
        );
        assert_eq!(claim.spec.requirements.len(), 3);
        let taints: Vec<_> = claim.spec.taints.iter().flatten().map(|taint| &*taint.key).collect();
        assert_eq!(taints, ["gpu"]);
        let labels: Vec<_> = claim
            .labels()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            labels,
            [
                "karpenter.k8s.aws/ec2nodeclass=shared",
                "karpenter.sh/capacity-type=spot",
                "karpenter.sh/nodepool=default",
                "karpenter.sh/provisioner-name=default",
                "node.kubernetes.io/instance-type=m5.large",
                "team=a",
                "topology.kubernetes.io/zone=us-west-2a",
            ]
        );
        assert_eq!(claim.annotations()[compatibility::ADOPTS], "aws:///us-west-2a/i-1");
        assert_eq!(claim.finalizers(), ["karpenter.sh/termination"]);
    }

    #[test]
    fn a_machine_keeps_its_name_and_loses_hashes_and_startup_taints() {
        let converted = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "default-x", "annotations": {"karpenter.sh/provisioner-hash": "1", "note": "kept"}},
            "spec": {
                "requirements": [], "startupTaints": [{"key": "boot", "effect": "NoExecute"}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "shared"},
            },
            "status": {"providerID": "aws:///us-west-2a/i-1"},
        });
        let claim = claim_of_machine(&converted, &pool(), "aws:///us-west-2a/i-1", true).expect("a claim");
        assert_eq!(claim.name_any(), "default-x");
        assert_eq!(claim.spec.startup_taints, None);
        assert_eq!(claim.status, None, "a status is not created but found out");
        let annotations: Vec<_> = claim.annotations().keys().map(String::as_str).collect();
        assert_eq!(annotations, ["compatibility.karpenter.sh/adopts", "note"]);
        let starting = claim_of_machine(&converted, &pool(), "i", false).expect("a claim");
        assert_eq!(starting.spec.startup_taints.map(|taints| taints.len()), Some(1));
    }
}
