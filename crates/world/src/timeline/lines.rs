//! From a change of an object to what a reader calls it.

use api::{
    conditions::{self, HasConditions, node_claim as claim, node_pool as pool},
    labels,
    v1::{NodeClaim, NodePool},
};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        batch::v1::Job,
        core::v1::{Node, Pod, Taint},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::Resource;

use crate::{
    kubelet,
    mirror::{Change, Seen},
};

pub fn of(seen: &Seen) -> Vec<String> {
    match seen {
        Seen::Pod(change) => pod(change),
        Seen::Node(change) => node(change),
        Seen::NodeClaim(change) => node_claim(change),
        Seen::NodePool(change) => node_pool(change),
        Seen::Deployment(change) => workload(change, |deployment: &Deployment| {
            format!("{} replicas", deployment.spec.replicas.unwrap_or(1))
        }),
        Seen::StatefulSet(change) => workload(change, |set: &StatefulSet| {
            format!("{} replicas", set.spec.replicas.unwrap_or(1))
        }),
        Seen::DaemonSet(change) => workload(change, |_: &DaemonSet| "on every node".to_owned()),
        Seen::Job(change) => job(change),
        Seen::Namespace(_) | Seen::ReplicaSet(_) | Seen::PodDisruptionBudget(_) => Vec::new(),
    }
}

/// The lines for coming, leaving and being gone; what lies between is the kind's own.
fn life<K>(change: &Change<K>, created: &str, between: impl FnOnce(&K, &K, &mut Vec<String>)) -> Vec<String>
where
    K: Resource + Default,
{
    let Some(new) = &change.new else {
        return vec!["gone".to_owned()];
    };
    let mut lines = Vec::new();
    if change.old.is_none() {
        lines.push(created.to_owned());
    }
    let nothing = K::default();
    let old = change.old.as_deref().unwrap_or(&nothing);
    between(old, new, &mut lines);
    if deleting(new.meta()) && !deleting(old.meta()) {
        lines.push("deleting".to_owned());
    }
    lines
}

fn deleting(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

fn pod(change: &Change<Pod>) -> Vec<String> {
    life(change, "created", |old, new, lines| {
        let scheduled = |pod: &Pod| -> Option<String> {
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            let condition = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
            condition.reason.clone().filter(|_| condition.status == "False")
        };
        if let Some(reason) = scheduled(new).filter(|_| scheduled(old).is_none()) {
            lines.push(reason.to_lowercase());
        }
        if let Some(node) = kubelet::pods::node_of(new).filter(|_| kubelet::pods::node_of(old).is_none()) {
            lines.push(format!("bound to {node}"));
        }
        let phase = |pod: &Pod| {
            pod.status
                .as_ref()
                .and_then(|status| status.phase.clone())
                .unwrap_or_default()
        };
        if phase(new) != phase(old) && phase(new) != "Pending" {
            lines.push(phase(new).to_lowercase());
        }
    })
}

fn node(change: &Change<Node>) -> Vec<String> {
    life(change, "joined", |old, new, lines| {
        let ready = |node: &Node| kubelet::ready_condition(node).map(|condition| condition.status.clone());
        match ready(new).filter(|now| ready(old).as_ref() != Some(now)) {
            Some(now) if now == "True" => lines.push("ready".to_owned()),
            Some(now) => lines.push(format!("ready is {now}")),
            None => {}
        }
        let taints = |node: &Node| {
            node.spec
                .as_ref()
                .and_then(|spec| spec.taints.clone())
                .unwrap_or_default()
        };
        let (before, after) = (taints(old), taints(new));
        let missing = |taint: &Taint, others: &[Taint]| {
            !others
                .iter()
                .any(|other| other.key == taint.key && other.effect == taint.effect)
        };
        for taint in after.iter().filter(|taint| missing(taint, &before)) {
            lines.push(format!("tainted {}:{}", taint.key, taint.effect));
        }
        for taint in before.iter().filter(|taint| missing(taint, &after)) {
            lines.push(format!("no longer tainted {}:{}", taint.key, taint.effect));
        }
    })
}

fn node_claim(change: &Change<NodeClaim>) -> Vec<String> {
    let label = |claim: &NodeClaim, key: &str| {
        let labels = claim.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(key))
            .cloned()
            .unwrap_or_else(|| "?".to_owned())
    };
    life(change, "created", |old, new, lines| {
        for condition in news(old.conditions(), new.conditions()) {
            let is_true = condition.status == conditions::TRUE;
            let line = match (condition.type_.as_str(), is_true) {
                (claim::LAUNCHED, true) => {
                    let offering = [labels::INSTANCE_TYPE, labels::ZONE, labels::CAPACITY_TYPE];
                    format!("launched {}", offering.map(|key| label(new, key)).join(" "))
                }
                (claim::REGISTERED, true) => "registered".to_owned(),
                (claim::INITIALIZED, true) => "initialized".to_owned(),
                (claim::CONSOLIDATABLE, true) => "consolidatable".to_owned(),
                (claim::DRIFTED, true) => format!("drifted: {}", condition.reason),
                (claim::DISRUPTION_REASON, true) => format!("disrupted: {}", condition.reason),
                (claim::DRAINED, true) => "drained".to_owned(),
                (claim::INSTANCE_TERMINATING, true) => "instance terminating".to_owned(),
                (claim::LAUNCHED, false) if condition.reason != conditions::reasons::AWAITING_RECONCILIATION => {
                    format!("not launched: {}", condition.reason)
                }
                _ => continue,
            };
            lines.push(line);
        }
    })
}

fn node_pool(change: &Change<NodePool>) -> Vec<String> {
    life(change, "created", |old, new, lines| {
        for condition in news(old.conditions(), new.conditions()) {
            match (condition.type_.as_str(), condition.status.as_str()) {
                (conditions::READY, conditions::TRUE) => lines.push("ready".to_owned()),
                (pool::VALIDATION_SUCCEEDED | pool::NODE_CLASS_READY, conditions::FALSE) => {
                    lines.push(format!("{} is false: {}", condition.type_, condition.reason));
                }
                _ => {}
            }
        }
    })
}

/// Conditions that are new or have another status or reason.
fn news<'a>(old: &'a [Condition], new: &'a [Condition]) -> impl Iterator<Item = &'a Condition> {
    new.iter().filter(|condition| {
        conditions::find(old, &condition.type_)
            .is_none_or(|before| before.status != condition.status || before.reason != condition.reason)
    })
}

fn workload<K: Resource + Default>(change: &Change<K>, size: impl Fn(&K) -> String) -> Vec<String> {
    life(change, "created", |old, new, lines| {
        if size(new) != size(old) || change.old.is_none() {
            lines.push(size(new));
        }
    })
}

fn job(change: &Change<Job>) -> Vec<String> {
    life(change, "created", |old, new, lines| {
        let done = |job: &Job| {
            job.status
                .as_ref()
                .is_some_and(|status| status.completion_time.is_some())
        };
        if done(new) && !done(old) {
            lines.push("complete".to_owned());
        }
    })
}
