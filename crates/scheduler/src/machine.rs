//! Machines that are there or on their way, as places for pods.

use std::cmp::Reverse;

use model::{
    Effect, LabelValue, NodeKey, PodKey, Requirement, Requirements, Resources, Snapshot, StateNode, Taint, Vocabulary,
    pod::HostPort, requirements::AllowUndefined, taint, vocabulary,
};

use crate::{
    class::{Needs, Way},
    rules::{copies, daemon_runs_on, ports_clash},
    template::{is_superposed, least_room},
};

/// A machine and what is left of it.
pub(crate) struct Machine<'a> {
    pub key: &'a NodeKey,
    pub pods: Vec<PodKey>,
    labels: Labels<'a>,
    taints: Vec<Taint>,
    free: Resources,
    ports: Vec<HostPort>,
}

/// What is known of a machine's labels.
enum Labels<'a> {
    /// The machine runs or has been bought: it has these labels and no others.
    Final(Requirements),
    /// The claim is not launched yet: the labels will be among these.
    Open(&'a Requirements, &'a Vocabulary),
}

/// The machines that take pods, initialised ones first, then by name.
pub(crate) fn machines(snapshot: &Snapshot) -> Vec<Machine<'_>> {
    let mut staying: Vec<&StateNode> = snapshot
        .nodes
        .values()
        .map(AsRef::as_ref)
        .filter(|machine| !machine.is_leaving())
        .collect();
    staying.sort_by_cached_key(|machine| (Reverse(machine.is_initialized()), name_of(machine)));
    staying
        .into_iter()
        .filter_map(|machine| view(snapshot, machine))
        .collect()
}

fn view<'a>(snapshot: &'a Snapshot, machine: &'a StateNode) -> Option<Machine<'a>> {
    let mut taints = machine.taints();
    // A cordoned node has this taint as well, once the node lifecycle controller has seen it.
    if machine.node.as_ref().is_some_and(|node| node.unschedulable) {
        taints.push(Taint::new("node.kubernetes.io/unschedulable", "", Effect::NoSchedule));
    }
    let (labels, free) = match &machine.claim {
        Some(claim) if is_superposed(machine) => (
            Labels::Open(&claim.requirements, &snapshot.vocabulary),
            least_room(snapshot, machine)?,
        ),
        _ => {
            let labels = final_labels(machine);
            let free = free(snapshot, machine, &labels, &taints);
            (Labels::Final(labels), free)
        }
    };
    let bound = snapshot.pods_of(machine).filter(|pod| !pod.is_terminal());
    let ports = bound.flat_map(|pod| pod.shape.host_ports.iter().cloned()).collect();
    Some(Machine {
        key: &machine.key,
        pods: Vec::new(),
        labels,
        taints,
        free,
        ports,
    })
}

/// The node's name, or the claim's before there is a node.
fn name_of(machine: &StateNode) -> String {
    machine
        .node_name()
        .map_or_else(|| machine.key.to_string(), ToString::to_string)
}

fn final_labels(machine: &StateNode) -> Requirements {
    let mut labels = Requirements::from_labels(machine.labels());
    if !labels.contains(vocabulary::HOSTNAME) {
        labels.add(Requirement::one_of(
            vocabulary::HOSTNAME,
            [LabelValue::from(name_of(machine))],
        ));
    }
    labels
}

/// What pods may still use: the allocatable amounts less what bound pods ask for, less what daemons will ask for that
/// are not there yet. More daemon pods than expected do not make room for others.
fn free(snapshot: &Snapshot, machine: &StateNode, labels: &Requirements, taints: &[Taint]) -> Resources {
    let expected = snapshot
        .daemons
        .values()
        .map(|daemon| daemon.shape.as_ref())
        .filter(|daemon| !daemon.claims_devices() && daemon_runs_on(daemon, taints, labels, AllowUndefined::Nothing));
    let expected: Resources = expected.map(|daemon| &daemon.requests).sum();
    let bound = snapshot
        .pods_of(machine)
        .filter(|pod| !pod.is_terminal() && pod.is_daemon());
    let bound: Resources = bound.map(|pod| &pod.shape.requests).sum();
    let awaited = expected.minus(&bound).floored();
    machine
        .allocatable()
        .minus(&snapshot.requested_on(machine))
        .minus(&awaited)
}

impl Machine<'_> {
    /// How many pods of a class have room here, up to `most`. None is for good: a machine never gets emptier in a round.
    pub fn room_for(&self, needs: &Needs, way: &Way, most: usize) -> usize {
        let suits = taint::untolerated(&self.taints, &way.tolerations).is_none()
            && self.labels.meet(&way.requirements)
            && !ports_clash(&needs.ports, &self.ports);
        if !suits {
            return 0;
        }
        // Pods that take a port of the node exclude their own kind.
        let most = if needs.ports.is_empty() { most } else { 1 };
        copies(&needs.requests, &Resources::default(), &self.free).min(most)
    }

    pub fn put(&mut self, needs: &Needs, pods: &[PodKey]) {
        self.free.sub_assign(
            &needs
                .requests
                .clone()
                .times(i64::try_from(pods.len()).unwrap_or(i64::MAX)),
        );
        self.ports.extend(needs.ports.iter().cloned());
        self.pods.extend(pods.iter().cloned());
    }

    pub fn discourages(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule)
    }
}

impl Labels<'_> {
    fn meet(&self, demand: &Requirements) -> bool {
        match self {
            Labels::Final(labels) => labels.is_compatible(demand, AllowUndefined::Nothing),
            Labels::Open(requirements, vocabulary) => requirements.guarantee(demand, vocabulary),
        }
    }
}
