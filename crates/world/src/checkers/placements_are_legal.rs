//! No pod is bound against a taint, or to a node that has no room for it.

use k8s_openapi::api::core::v1::{Node, Pod};
use model::Resources;

use super::{Checker, Moment, Verdict};
use crate::{
    binder::node_rules::{admits, tolerates},
    kubelet::{collector::is_terminal, pods::node_of},
    mirror::{Change, Group, Key, Seen},
};

pub struct PlacementsAreLegal;

impl Checker for PlacementsAreLegal {
    fn name(&self) -> &'static str {
        "placements are legal"
    }

    fn saw(&mut self, seen: &Seen, moment: &Moment<'_>) -> Verdict {
        let Seen::Pod(Change {
            key,
            old,
            new: Some(pod),
            ..
        }) = seen
        else {
            return Ok(());
        };
        if old.as_ref().is_some_and(|old| node_of(old).is_some()) {
            return Ok(());
        }
        let Some(name) = node_of(pod) else { return Ok(()) };
        // Another bound pod of the same instant may have been the last that the node could take; what counts is the sum.
        match moment.scene.nodes.get(&Key::cluster(name)) {
            None => Err(format!("pod {key} is bound to {name}, which does not exist")),
            Some(node) => fits(key, pod, name, &node, moment),
        }
    }
}

fn fits(key: &Key, pod: &Pod, name: &str, node: &Node, moment: &Moment<'_>) -> Verdict {
    let Some(spec) = &pod.spec else { return Ok(()) };
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut hard = taints.filter(|taint| taint.effect != "PreferNoSchedule");
    if let Some(taint) = hard.find(|taint| !tolerates(spec, taint)) {
        // The scheduler works on what it saw last; a taint of this very moment may have come in between, and the drain
        // looks for such pods.
        let fresh = taint.key == api::labels::taints::DISRUPTED;
        return if fresh {
            Ok(())
        } else {
            Err(format!("pod {key} is bound to {name} against taint {}", taint.key))
        };
    }
    if !admits(spec, node) {
        return Err(format!("pod {key} is bound to {name} against its selector"));
    }
    let on_node = moment.scene.pods.group(&Group::Node(name.to_owned()));
    let mut asked = Resources::default();
    for other in on_node.iter().filter(|other| !is_terminal(other)) {
        asked.add_assign(&api::convert::pod(other).value.shape.requests);
    }
    let allocatable = api::convert::node(node).value.allocatable;
    let over = asked
        .iter()
        .find(|(resource, amount)| *amount > allocatable.get(resource.as_str()));
    match over {
        None => Ok(()),
        Some((resource, amount)) => Err(format!(
            "pods on {name} ask for {amount} of {resource}, it has {}",
            allocatable.get(resource.as_str())
        )),
    }
}
