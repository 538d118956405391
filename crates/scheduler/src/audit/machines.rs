//! Machines that are there or on their way: pods fit what is known of them.

use model::{
    Effect, Pod, Requirements, Resources, Snapshot, StateNode, Taint,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};

use super::{Audit, Place, Violation, by_shape, hard, is_content, ledger, requests, storage};
use crate::plan::Placement;

/// A node that is closed to new pods has this taint, sooner or later.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

pub(super) fn check(audit: &mut Audit<'_>, placement: &Placement) {
    let snapshot = audit.snapshot;
    let place = Place::Node(placement.node.clone());
    let machine = snapshot.nodes.get(&placement.node);
    let Some(machine) = machine.filter(|machine| !machine.is_leaving()) else {
        audit.broken.push(Violation::NodeGone {
            node: placement.node.clone(),
        });
        return;
    };
    let pods = audit.pods(&place, &placement.pods);
    let mut taints = machine.taints();
    if machine.node.as_ref().is_some_and(|node| node.unschedulable) {
        taints.push(Taint::new(CORDONED, "", Effect::NoSchedule));
    }
    for pod in by_shape(&pods) {
        audit.tolerates(&place, pod, &taints);
        let content = is_content(pod, |demand| has_labels(snapshot, machine, demand));
        audit.check(content, || Violation::WrongLabels {
            place: place.clone(),
            pod: pod.key.clone(),
        });
    }
    for pod in pods.iter().filter(|pod| !pod.shape.volumes.is_empty()) {
        let near = |term: &Requirements| has_labels(snapshot, machine, term);
        audit.broken.extend(storage::check(snapshot, &place, pod, near));
    }
    audit.broken.extend(storage::attachments(snapshot, machine, &pods));
    let staying: Vec<&Pod> = staying(snapshot, machine).collect();
    audit.ports(&place, &pods, &taken_ports(snapshot, machine, &staying, &taints));
    let asked = requests(&pods).plus(&requests(&staying));
    for (instance_type, room) in rooms(snapshot, machine, &staying, &taints) {
        audit.check(asked.fits(&room), || Violation::Overfull {
            place: place.clone(),
            instance_type,
            short: asked.shortfall(&room),
        });
    }
}

/// Pods that are there and have not come to their end.
fn staying<'a>(snapshot: &'a Snapshot, machine: &'a StateNode) -> impl Iterator<Item = &'a Pod> {
    let pods = snapshot.pods_of(machine).map(AsRef::as_ref);
    pods.filter(|pod: &&Pod| !pod.is_terminal())
}

/// As kube-scheduler reads labels, once there are labels; before that, whatever the machine turns out to be.
fn has_labels(snapshot: &Snapshot, machine: &StateNode, way: &Requirements) -> bool {
    if let Some(claim) = machine.claim.as_ref().filter(|_| ledger::is_unlaunched(machine)) {
        return claim.requirements.guarantee(way, &snapshot.vocabulary);
    }
    let labels = Requirements::from_labels(machine.labels());
    way.iter()
        .all(|requirement| match labels.get(requirement.key.as_str()).single() {
            Some(value) => requirement.has(value.as_str()),
            None if requirement.key == vocabulary::HOSTNAME => {
                machine.node_name().is_some_and(|name| requirement.has(name.as_str()))
            }
            None => requirement.operator().accepts_absence(),
        })
}

/// Ports of the pods that are there, and of daemons that are yet to come.
fn taken_ports(snapshot: &Snapshot, machine: &StateNode, staying: &[&Pod], taints: &[Taint]) -> Vec<HostPort> {
    let mut taken: Vec<HostPort> = staying.iter().flat_map(|pod| pod.shape.host_ports.clone()).collect();
    let there: Vec<&Pod> = staying.iter().copied().filter(|pod| pod.is_daemon()).collect();
    let arrived = |daemon: &PodShape| there.iter().any(|pod| pod.shape.host_ports == daemon.host_ports);
    let awaited =
        expected(snapshot, machine, taints).filter(|daemon| !daemon.host_ports.is_empty() && !arrived(daemon));
    let awaited: Vec<HostPort> = awaited.flat_map(|daemon| daemon.host_ports.clone()).collect();
    taken.extend(awaited);
    taken
}

/// What a machine has for pods, daemons that have not arrived yet set aside; for an unlaunched one, in each of the
/// types that it may become.
fn rooms(
    snapshot: &Snapshot,
    machine: &StateNode,
    staying: &[&Pod],
    taints: &[Taint],
) -> Vec<(Option<model::InstanceTypeName>, Resources)> {
    if ledger::is_unlaunched(machine) {
        let kinds = ledger::possible(snapshot, machine).into_iter();
        return kinds
            .map(|kind| (Some(kind.name.clone()), kind.allocatable().clone()))
            .collect();
    }
    let needed: Resources = expected(snapshot, machine, taints).map(|daemon| &daemon.requests).sum();
    let here = staying.iter().filter(|pod| pod.is_daemon());
    let here: Resources = here.map(|pod| &pod.shape.requests).sum();
    vec![(None, machine.allocatable().minus(&needed.minus(&here).floored()))]
}

/// Daemons that run on a machine whose labels are known.
fn expected<'a>(snapshot: &'a Snapshot, machine: &StateNode, taints: &[Taint]) -> impl Iterator<Item = &'a PodShape> {
    let labels = Requirements::from_labels(machine.labels());
    let known = !ledger::is_unlaunched(machine);
    let daemons = snapshot.daemons.values().map(|daemon| daemon.shape.as_ref());
    daemons.filter(move |daemon: &&PodShape| {
        let mut ways = Requirements::alternatives_of_pod(daemon).into_iter();
        known
            && hard(taints).all(|taint| daemon.tolerates(taint))
            && ways.any(|way| labels.is_compatible(&way, AllowUndefined::Nothing))
    })
}
