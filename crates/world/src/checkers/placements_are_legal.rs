//! No pod is bound against a taint, or to a node that has no room for it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use model::Resources;

use super::{Checker, Moment, Verdict};
use crate::{
    binder::node_rules::{admits, tolerates},
    kubelet::{collector::is_terminal, pods::node_of},
    mirror::{Change, Key, Seen},
};

#[derive(Default)]
pub struct PlacementsAreLegal {
    /// Where each pod counts and what it asks for, by UID.
    placed: BTreeMap<String, (String, Resources)>,
    /// What all pods of a node ask for.
    asked: BTreeMap<String, Resources>,
}

impl Checker for PlacementsAreLegal {
    fn name(&self) -> &'static str {
        "placements are legal"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        if let Seen::Node(change) = seen {
            let news = change.new.as_ref().filter(|node| has_reported(node));
            let is_first = change.old.as_ref().is_none_or(|old| !has_reported(old));
            return match news.filter(|_| is_first) {
                Some(node) => self.has_room(&change.key.name, node),
                None => Ok(()),
            };
        }
        let Seen::Pod(change) = seen else { return Ok(()) };
        self.count(change);
        let Some(pod) = &change.new else { return Ok(()) };
        if change.old.as_ref().is_some_and(|old| node_of(old).is_some()) {
            return Ok(());
        }
        let Some(name) = node_of(pod) else { return Ok(()) };
        match moment.scene.nodes.get(&Key::cluster(name)) {
            None => Err(format!("pod {} is bound to {name}, which does not exist", change.key)),
            Some(node) => {
                rules_hold(&change.key, pod, name, &node)?;
                // How much a node has that was made before its kubelet is known when that reports.
                if has_reported(&node) {
                    self.has_room(name, &node)
                } else {
                    Ok(())
                }
            }
        }
    }
}

impl PlacementsAreLegal {
    /// Moves a pod's requests to where they count now. Pods that have ended ask for nothing.
    fn count(&mut self, change: &Change<Pod>) {
        let uid = change.either().metadata.uid.clone().unwrap_or_default();
        let counts = change.new.as_ref().filter(|pod| !is_terminal(pod));
        let node = counts.and_then(|pod| node_of(pod));
        if self.placed.get(&uid).map(|(node, _)| node.as_str()) == node {
            return;
        }
        if let Some((node, requests)) = self.placed.remove(&uid) {
            self.asked.entry(node).or_default().sub_assign(&requests);
        }
        if let (Some(pod), Some(node)) = (counts, node) {
            let requests = api::convert::pod(pod).value.shape.requests.clone();
            self.asked.entry(node.to_owned()).or_default().add_assign(&requests);
            self.placed.insert(uid, (node.to_owned(), requests));
        }
    }

    fn has_room(&self, name: &str, node: &Node) -> Verdict {
        let allocatable = api::convert::node(node).value.allocatable;
        let asked = self.asked.get(name).into_iter().flat_map(Resources::iter);
        let mut over = asked.filter(|(resource, amount)| *amount > allocatable.get(resource.as_str()));
        match over.next() {
            None => Ok(()),
            Some((resource, amount)) => Err(format!(
                "pods on {name} ask for {amount} of {resource}, it has {}",
                allocatable.get(resource.as_str())
            )),
        }
    }
}

fn has_reported(node: &Node) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    allocatable.is_some_and(|amounts| !amounts.is_empty())
}

fn rules_hold(key: &Key, pod: &Pod, name: &str, node: &Node) -> Verdict {
    let Some(spec) = &pod.spec else { return Ok(()) };
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut hard = taints.filter(|taint| taint.effect != "PreferNoSchedule");
    if let Some(taint) = hard.find(|taint| !tolerates(spec, taint)) {
        // The scheduler works on what it saw last; a taint of this very moment may have come in between, and the drain
        // looks for such pods.
        let fresh = taint.key == api::labels::taints::DISRUPTED;
        // This one keeps everybody away but the pods that the node was made for.
        let reserved = taint.key == api::labels::taints::NOT_READY;
        return if fresh || reserved {
            Ok(())
        } else {
            Err(format!("pod {key} is bound to {name} against taint {}", taint.key))
        };
    }
    if !admits(spec, node) {
        return Err(format!("pod {key} is bound to {name} against its selector"));
    }
    Ok(())
}
