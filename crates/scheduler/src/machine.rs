//! Machines that are there or on their way, as places for pods.
//!
//! Most machines of a cluster differ in nothing but their name. What is asked of labels and taints is asked once per
//! kind of machine, a [`Look`]; each machine has its own free room, ports and volumes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    Effect, LabelKey, LabelValue, NodeKey, Pod, PodKey, Requirement, Requirements, Resources, Snapshot, StateNode,
    Taint,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};
use rustc_hash::FxHashMap;

use crate::{
    amounts::{Amounts, Dims},
    bits::{Bits, WORD},
    rules::daemon_runs_on,
    template::{is_superposed, least_room},
    topology::{Key, Keys},
    volumes::{Attached, attached_on},
};

/// A machine and what is left of it.
#[derive(Clone, Debug)]
pub(crate) struct Machine<'a> {
    pub state: &'a StateNode,
    pub look: usize,
    /// Pods may be put here.
    pub open: bool,
    pub ports: Vec<HostPort>,
    /// How many volumes the node attaches, and which are attached. Only where the node has limits and somebody asks.
    pub volumes: Option<Attachments>,
    /// Its pods have come and gone too recently for pods of others to be moved here.
    pub unsettled: bool,
    pub pods: Vec<usize>,
}

/// Volumes on a node.
#[derive(Clone, Debug)]
pub(crate) struct Attachments {
    limits: Arc<BTreeMap<Arc<str>, u32>>,
    attached: Attached,
}

impl Attachments {
    /// Whether these claims can be attached as well. A claim that is attached already costs nothing.
    pub fn take(&self, claims: &[(Arc<str>, PodKey)]) -> bool {
        self.limits.iter().all(|(driver, most)| {
            let here = self.attached.get(driver);
            let new: BTreeSet<&PodKey> = claims
                .iter()
                .filter(|(of, claim)| of == driver && here.is_none_or(|here| !here.contains(claim)))
                .map(|(_, claim)| claim)
                .collect();
            new.is_empty() || here.map_or(0, BTreeSet::len) + new.len() <= *most as usize
        })
    }

    pub fn put(&mut self, claims: &[(Arc<str>, PodKey)]) {
        for (driver, claim) in claims {
            self.attached.entry(driver.clone()).or_default().insert(claim.clone());
        }
    }
}

impl Machine<'_> {
    pub fn key(&self) -> &NodeKey {
        &self.state.key
    }
}

/// What labels and taints a machine shows, as far as anybody asks.
#[derive(Debug)]
pub(crate) struct Look {
    pub labels: Labels,
    /// Taints that pods have to tolerate.
    pub taints: Vec<Taint>,
    /// Taints of the node as they are; none before there is a node.
    pub raw_taints: Vec<Taint>,
    /// The domain along each of the topology's labels.
    pub domains: Vec<Option<usize>>,
    /// The machine is bought, so that its domains are there, although its node may be yet to join.
    pub bought: bool,
}

/// What is known of a machine's labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Labels {
    /// The machine runs or has been bought: it has these labels and no others.
    Final(Requirements),
    /// The claim is not launched yet: the labels will be among these.
    Open(Requirements),
}

impl Labels {
    pub fn requirements(&self) -> &Requirements {
        let (Labels::Final(requirements) | Labels::Open(requirements)) = self;
        requirements
    }

    pub fn meet(&self, snapshot: &Snapshot, demand: &Requirements) -> bool {
        match self {
            Labels::Final(labels) => labels.is_compatible(demand, AllowUndefined::Nothing),
            Labels::Open(requirements) => requirements.guarantee(demand, &snapshot.vocabulary),
        }
    }
}

/// All machines of a snapshot: those that take pods come first, initialised ones before others, then as the round wants
/// them filled, then by name.
#[derive(Debug)]
pub(crate) struct Machines<'a> {
    pub all: Vec<Machine<'a>>,
    pub looks: Vec<Look>,
    /// By the name of the node.
    pub by_node: FxHashMap<&'a str, usize>,
    pub free: Free,
    /// Those that pods of the round have been put on.
    pub visited: Bits,
}

/// What pods may still use of each machine, resource by resource. Whole clusters are searched for room again and again, and
/// most machines are full: 64 that lie side by side are passed over together where none of them has enough.
#[derive(Debug)]
pub(crate) struct Free(Vec<Column>);

/// One resource of all machines.
#[derive(Clone, Debug, Default)]
struct Column {
    free: Vec<i64>,
    /// The most that one of each 64 machines has.
    most: Vec<i64>,
}

impl Column {
    fn push(&mut self, free: i64) {
        if self.free.len().is_multiple_of(WORD) {
            self.most.push(free);
        } else if let Some(most) = self.most.last_mut() {
            *most = free.max(*most);
        }
        self.free.push(free);
    }

    fn set(&mut self, machine: usize, free: i64) {
        let before = std::mem::replace(&mut self.free[machine], free);
        let word = machine / WORD;
        if free >= self.most[word] {
            self.most[word] = free;
        } else if before == self.most[word] {
            self.most[word] = self.word(word).iter().copied().fold(free, i64::max);
        }
    }

    fn word(&self, word: usize) -> &[i64] {
        let first = word * WORD;
        &self.free[first..self.free.len().min(first + WORD)]
    }
}

impl Free {
    fn new(dims: usize) -> Self {
        Self(vec![Column::default(); dims])
    }

    fn push(&mut self, free: &[i64]) {
        for (column, free) in self.0.iter_mut().zip(free) {
            column.push(*free);
        }
    }

    pub fn of(&self, machine: usize) -> Amounts {
        self.0.iter().map(|column| column.free[machine]).collect()
    }

    pub fn along(&self, dim: usize, machine: usize) -> i64 {
        self.0[dim].free[machine]
    }

    pub fn give(&mut self, machine: usize, amounts: &[i64]) {
        for (column, amount) in self.0.iter_mut().zip(amounts).filter(|(_, amount)| **amount != 0) {
            column.set(machine, column.free[machine] + amount);
        }
    }

    pub fn take(&mut self, machine: usize, amounts: &[i64]) {
        for (column, amount) in self.0.iter_mut().zip(amounts).filter(|(_, amount)| **amount != 0) {
            column.set(machine, column.free[machine] - amount);
        }
    }

    pub fn hold(&self, machine: usize, need: &[i64]) -> bool {
        let mut columns = self.0.iter().zip(need);
        columns.all(|(column, need)| *need <= column.free[machine])
    }

    /// Those of a word's machines that have room. Nobody has less than nothing, so that what is not asked for does not count.
    pub fn roomy(&self, word: usize, need: &[i64]) -> u64 {
        let asked = || self.0.iter().zip(need).filter(|(_, need)| **need > 0);
        if asked().any(|(column, need)| column.most[word] < *need) {
            return 0;
        }
        asked().fold(u64::MAX, |roomy, (column, need)| {
            let machines = column.word(word).iter().rev();
            roomy & machines.fold(0, |here, free| here << 1 | u64::from(free >= need))
        })
    }
}

/// What is needed to look at machines.
pub(crate) struct Viewer<'a, 'v> {
    pub snapshot: &'a Snapshot,
    pub dims: &'v Dims,
    pub keys: &'v Keys,
    /// Labels that anybody asks for.
    pub interest: &'v BTreeSet<LabelKey>,
    pub daemons: &'v [&'a PodShape],
    /// Whether any pod of the round brings volumes.
    pub attaches: bool,
    /// Whether a machine's room is kept for its own pods for now.
    pub unsettled: &'v dyn Fn(&StateNode) -> bool,
    /// Machines with a low number are filled first; zero for those that are not listed.
    pub order: &'v FxHashMap<&'v NodeKey, usize>,
}

/// What makes two machines look alike.
type Appearance = (Labels, Vec<Taint>, Vec<Taint>, bool);

impl<'a> Machines<'a> {
    pub fn new(viewer: &Viewer<'a, '_>) -> Self {
        let mut states: Vec<&StateNode> = viewer.snapshot.nodes.values().map(AsRef::as_ref).collect();
        states.sort_by_cached_key(|state| {
            let rank = viewer.order.get(&state.key).copied().unwrap_or(0);
            (
                state.is_leaving(),
                Reverse(state.is_initialized()),
                rank,
                name_of(state),
            )
        });
        let mut machines = Self {
            all: Vec::with_capacity(states.len()),
            looks: Vec::new(),
            by_node: FxHashMap::default(),
            free: Free::new(viewer.dims.len()),
            visited: Bits::default(),
        };
        let mut known: FxHashMap<Appearance, usize> = FxHashMap::default();
        let mut expected: Vec<Vec<&'a PodShape>> = Vec::new();
        for state in states {
            let appearance = appearance(viewer, state);
            let look = *known.entry(appearance).or_insert_with_key(|appearance| {
                let look = look(viewer.keys, appearance);
                expected.push(expected_daemons(viewer.daemons, &look));
                machines.looks.push(look);
                machines.looks.len() - 1
            });
            if let Some(name) = state.node_name() {
                machines.by_node.insert(name.as_str(), machines.all.len());
            }
            let (machine, free) = machine(viewer, state, look, &expected[look]);
            machines.all.push(machine);
            machines.free.push(&free);
        }
        machines
    }

    /// The machines that show one of these looks.
    pub fn looking(&self, looks: &Bits) -> Bits {
        let alike = self.all.iter().enumerate();
        alike
            .filter(|(_, machine)| machine.open && looks.contains(machine.look))
            .map(|(index, _)| index)
            .collect()
    }
}

fn appearance(viewer: &Viewer<'_, '_>, state: &StateNode) -> Appearance {
    let mut taints = state.taints();
    // A cordoned node has this taint as well, once the node lifecycle controller has seen it.
    if state.node.as_ref().is_some_and(|node| node.unschedulable) {
        taints.push(Taint::new("node.kubernetes.io/unschedulable", "", Effect::NoSchedule));
    }
    for taint in &mut taints {
        taint.time_added = None;
    }
    taints.sort();
    taints.dedup();
    let labels = match &state.claim {
        Some(claim) if is_superposed(state) => {
            let asked = claim.requirements.iter();
            let asked = asked.filter(|requirement| viewer.interest.contains(&requirement.key));
            Labels::Open(asked.cloned().collect())
        }
        _ => Labels::Final(final_labels(viewer, state)),
    };
    let raw = state.node.as_ref().map(|node| &node.taints);
    let mut raw: Vec<Taint> = raw.into_iter().flatten().cloned().collect();
    for taint in &mut raw {
        taint.time_added = None;
    }
    (labels, taints, raw, !is_superposed(state))
}

fn look(keys: &Keys, (labels, taints, raw_taints, bought): &Appearance) -> Look {
    let domain = |key: &Key| {
        let value = labels.requirements().get(key.label.as_str()).single()?;
        key.number(value)
    };
    Look {
        domains: keys.iter().map(domain).collect(),
        labels: labels.clone(),
        taints: taints.clone(),
        raw_taints: raw_taints.clone(),
        bought: *bought,
    }
}

/// Labels are read under the names that requirements use.
fn final_labels(viewer: &Viewer<'_, '_>, state: &StateNode) -> Requirements {
    let labels = state.labels();
    let mut all = Requirements::default();
    for key in viewer.interest {
        if let Some(value) = labels.get(key) {
            all.add(Requirement::one_of(key.as_str(), [value.clone()]));
        } else if *key == vocabulary::HOSTNAME {
            all.add(Requirement::one_of(key.as_str(), [LabelValue::from(name_of(state))]));
        }
    }
    all
}

/// The node's name, or the claim's before there is a node.
fn name_of(state: &StateNode) -> String {
    state
        .node_name()
        .map_or_else(|| state.key.to_string(), ToString::to_string)
}

/// Daemons that will run on machines of this look.
fn expected_daemons<'a>(daemons: &[&'a PodShape], look: &Look) -> Vec<&'a PodShape> {
    let Labels::Final(labels) = &look.labels else {
        return Vec::new();
    };
    let here = daemons
        .iter()
        .filter(|daemon| daemon_runs_on(daemon, &look.taints, labels, AllowUndefined::Nothing));
    here.copied().collect()
}

/// The machine and what pods may use of it.
fn machine<'a>(
    viewer: &Viewer<'a, '_>,
    state: &'a StateNode,
    look: usize,
    expected: &[&PodShape],
) -> (Machine<'a>, Amounts) {
    let snapshot = viewer.snapshot;
    let mut machine = Machine {
        state,
        look,
        open: !state.is_leaving(),
        ports: Vec::new(),
        volumes: None,
        unsettled: false,
        pods: Vec::new(),
    };
    let none = || Amounts::from_elem(0, viewer.dims.len());
    if !machine.open {
        return (machine, none());
    }
    let room = if is_superposed(state) {
        least_room(snapshot, state)
    } else {
        Some(free(snapshot, state, expected))
    };
    let Some(room) = room.filter(|room| !room.is_overdrawn()) else {
        machine.open = false;
        return (machine, none());
    };
    machine.unsettled = (viewer.unsettled)(state);
    let limits = state.node_name().and_then(|name| snapshot.attach_limits.get(name));
    machine.volumes = limits.filter(|_| viewer.attaches).map(|limits| Attachments {
        limits: limits.clone(),
        attached: attached_on(snapshot, state),
    });
    let bound: Vec<&Arc<Pod>> = snapshot.pods_of(state).filter(|pod| !pod.is_terminal()).collect();
    // A daemon that has not arrived yet will want its ports.
    let arrived = |ports: &[HostPort]| bound.iter().any(|pod| pod.is_daemon() && pod.shape.host_ports == ports);
    let awaited = expected
        .iter()
        .map(|daemon| &daemon.host_ports)
        .filter(|ports| !arrived(ports));
    let taken = bound.iter().map(|pod| &pod.shape.host_ports).chain(awaited);
    machine.ports = taken.flatten().cloned().collect();
    (machine, viewer.dims.supply(&room))
}

/// What pods may still use: the allocatable amounts less what bound pods ask for, less what daemons will ask for that
/// are not there yet. More daemon pods than expected do not make room for others.
fn free(snapshot: &Snapshot, state: &StateNode, expected: &[&PodShape]) -> Resources {
    let mut left = state.allocatable();
    let mut awaited: Resources = expected.iter().map(|daemon| &daemon.requests).sum();
    for pod in snapshot.pods_of(state).filter(|pod| !pod.is_terminal()) {
        left.sub_assign(&pod.shape.requests);
        if pod.is_daemon() {
            awaited.sub_assign(&pod.shape.requests);
        }
    }
    left.minus(&awaited.floored())
}
