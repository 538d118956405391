//! Which pods need a place.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::{NodeKey, Pod, PodKey, Snapshot};
use scheduler::Round;

use crate::input::{Cluster, Selector};

/// The machines with these names, be they of nodes or of claims; the first name that is unknown is the error.
pub fn machines_named<'a>(snapshot: &Snapshot, names: &'a [String]) -> Result<Vec<NodeKey>, &'a str> {
    let names = names.iter().map(String::as_str).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let by_node = snapshot.node_named(&name.into()).map(|machine| machine.key.clone());
            let claim = NodeKey::Claim(name.into());
            let by_claim = || snapshot.nodes.contains_key(&claim).then_some(claim);
            by_node.or_else(by_claim).ok_or(name)
        })
        .collect()
}

/// Pods without a node, pods whose node is on its way out, and the pods of machines that are taken for gone; of the latter
/// two only those that may leave.
pub fn round(cluster: &Cluster, gone: &[NodeKey], selector: Option<&Selector>, now: Timestamp) -> Round {
    let snapshot = &cluster.snapshot;
    let waiting = if cluster.from_files {
        snapshot.pods_without_node(now)
    } else {
        snapshot.pods_to_place(now)
    };
    let mut pods: BTreeSet<PodKey> = waiting.into_iter().collect();
    for machine in gone.iter().filter_map(|key| snapshot.nodes.get(key)) {
        let moving = snapshot.pods_of(machine).filter(|pod| snapshot.can_move(pod, now));
        pods.extend(moving.map(|pod| pod.key.clone()));
    }
    pods.retain(|key| snapshot.pods.get(key).is_some_and(|pod| is_selected(pod, selector)));
    Round::new(pods.into_iter().collect(), now)
}

/// Pods that would be in the round if they could be planned for, and why they cannot.
pub fn unplannable<'a>(cluster: &'a Cluster, selector: Option<&Selector>) -> BTreeMap<&'a PodKey, &'a str> {
    let waits = |pod: &Pod| pod.node.is_none() && pod.is_active() && !pod.is_daemon() && !pod.is_mirror();
    let pods = cluster.unplannable.iter().filter(|(key, _)| {
        let pod = cluster.snapshot.pods.get(*key);
        pod.is_some_and(|pod| waits(pod) && is_selected(pod, selector))
    });
    pods.map(|(key, why)| (key, why.as_str())).collect()
}

fn is_selected(pod: &Pod, selector: Option<&Selector>) -> bool {
    selector.is_none_or(|selector| selector.matches(&pod.shape.labels))
}
