//! The cluster after commands, as if all of them had succeeded.

use std::{collections::BTreeMap, sync::Arc};

use disruption::Command;
use jiff::{SignedDuration, Timestamp};
use model::{
    Claim, ClaimPhase, Labels, NodeFacts, NodeKey, NodeName, Pod, PodKey, Requirements, Snapshot, StateNode, vocabulary,
};
use scheduler::{Launch, Placement, Plan};

/// For how long a node is kept for pods that are on their way to it, with the operator's settings as they come.
const NOMINATED: SignedDuration = SignedDuration::from_secs(20);

/// A cluster on which commands are played through.
pub struct Ahead {
    pub snapshot: Snapshot,
    /// Nodes that were launched, in that order.
    pub launched: Vec<NodeKey>,
    pub removed: Vec<NodeKey>,
    /// Evictions: a pod that moves twice counts twice.
    pub evictions: usize,
    /// Where pods are that were moved or placed.
    pub moved: BTreeMap<PodKey, NodeName>,
}

/// No scheduler has looked at pods out of files: those without a node wait for one.
pub fn judge(snapshot: &mut Snapshot, now: Timestamp) {
    for key in snapshot.pods_without_node(now) {
        change(snapshot, &key, |pod| pod.unschedulable |= pod.node.is_none());
    }
}

fn change(snapshot: &mut Snapshot, key: &PodKey, change: impl FnOnce(&mut Pod)) {
    if let Some(pod) = snapshot.pods.get(key) {
        let mut pod = Pod::clone(pod);
        change(&mut pod);
        snapshot.put_pod(Arc::new(pod));
    }
}

fn change_machine(snapshot: &mut Snapshot, key: &NodeKey, change: impl FnOnce(&mut StateNode)) {
    if let Some(machine) = snapshot.nodes.get(key) {
        let mut machine = StateNode::clone(machine);
        change(&mut machine);
        snapshot.put_node(Arc::new(machine));
    }
}

impl Ahead {
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            launched: Vec::new(),
            removed: Vec::new(),
            evictions: 0,
            moved: BTreeMap::new(),
        }
    }

    pub fn command(&mut self, command: &Command) {
        self.evictions += command.pods;
        for key in &command.nodes {
            let Some(machine) = self.snapshot.nodes.get(key).cloned() else {
                continue;
            };
            let bound: Vec<Arc<Pod>> = self.snapshot.pods_of(&machine).cloned().collect();
            self.snapshot.remove_node(key);
            self.removed.push(key.clone());
            // What belongs to the node goes with it; what nobody has planned for waits.
            for pod in bound {
                if pod.is_reschedulable() {
                    change(&mut self.snapshot, &pod.key, |pod| {
                        pod.node = None;
                        pod.unschedulable = true;
                    });
                } else {
                    self.snapshot.remove_pod(&pod.key);
                }
            }
        }
        self.place(&command.placements);
        for launch in &command.replacements {
            self.launch(launch);
        }
    }

    /// Answers with the cluster while pods are on their way: nodes that are there are kept for them, and new ones start.
    pub fn provision(&mut self, plan: &Plan, now: Timestamp) -> Snapshot {
        self.place(&plan.placements);
        let there = self.launched.len();
        for launch in &plan.launches {
            self.launch(launch);
        }
        let mut fork = self.snapshot.clone();
        for placement in &plan.placements {
            change_machine(&mut fork, &placement.node, |machine| {
                machine.nominated_until = Some(now + NOMINATED);
            });
        }
        for key in &self.launched[there..] {
            change_machine(&mut fork, key, |machine| {
                let labels = machine.node.as_mut().map(|node| &mut node.labels);
                labels.map(|labels| labels.remove(vocabulary::INITIALIZED));
            });
        }
        fork
    }

    fn place(&mut self, placements: &[Placement]) {
        for placement in placements {
            let node = self.snapshot.nodes.get(&placement.node);
            if let Some(name) = node.and_then(|node| node.node_name()).cloned() {
                self.bind(&placement.pods, name);
            }
        }
    }

    fn bind(&mut self, pods: &[PodKey], node: NodeName) {
        for key in pods {
            change(&mut self.snapshot, key, |pod| {
                pod.node = Some(node.clone());
                pod.unschedulable = false;
            });
            self.moved.insert(key.clone(), node.clone());
        }
    }

    /// The name that the next launch gets.
    fn next_name(&self) -> String {
        let free = |number: &usize| {
            let name = format!("new-{number}");
            self.snapshot.node_named(&name.as_str().into()).is_none()
        };
        let number = (self.launched.len() + 1..).find(free).unwrap_or_default();
        format!("new-{number}")
    }

    fn launch(&mut self, launch: &Launch) {
        let name = self.next_name();
        let Some(machine) = machine(&self.snapshot, launch, &name) else {
            return;
        };
        self.launched.push(machine.key.clone());
        self.snapshot.put_node(Arc::new(machine));
        self.bind(&launch.pods, name.as_str().into());
    }
}

/// A node as the launch's first choice makes it, long initialised.
fn machine(snapshot: &Snapshot, launch: &Launch, name: &str) -> Option<StateNode> {
    let pool = snapshot.pools.get(&launch.pool)?;
    let choice = &launch.choice;
    let kind = snapshot.instance_type(&launch.pool, &choice.instance_type)?;
    let offering = kind
        .offerings
        .iter()
        .find(|o| o.zone == choice.zone && o.capacity_type == choice.capacity_type)?;
    let mut labels: Labels = Labels::default();
    let settled = |requirements: &Requirements, labels: &mut Labels| {
        for requirement in requirements.iter() {
            if let Some(value) = requirement.values.single() {
                labels.insert(requirement.key.clone(), value.clone());
            }
        }
    };
    settled(&kind.requirements, &mut labels);
    settled(&offering.requirements, &mut labels);
    labels.extend(launch.labels.iter().map(|(key, value)| (key.clone(), value.clone())));
    for (key, value) in [
        (vocabulary::INSTANCE_TYPE, choice.instance_type.as_str()),
        (vocabulary::ZONE, choice.zone.as_str()),
        (vocabulary::CAPACITY_TYPE, choice.capacity_type.as_str()),
        (vocabulary::NODEPOOL, launch.pool.as_str()),
        (vocabulary::HOSTNAME, name),
        (vocabulary::REGISTERED, "true"),
        (vocabulary::INITIALIZED, "true"),
    ] {
        labels.insert(key.into(), value.into());
    }
    let allocatable = kind.allocatable_under(offering);
    let provider_id = Some(format!("plan://{name}").into());
    let claim = Claim {
        name: name.into(),
        uid: name.to_owned(),
        pool: Some(launch.pool.clone()),
        class: pool.template.class.clone(),
        phase: ClaimPhase::Initialized,
        labels: labels.clone(),
        annotations: pool.template.annotations.clone(),
        requirements: (*launch.requirements).clone(),
        requests: launch.requests.clone(),
        taints: pool.template.taints.clone(),
        startup_taints: pool.template.startup_taints.clone(),
        provider_id: provider_id.clone(),
        node: Some(name.into()),
        capacity: kind.capacity.clone(),
        allocatable: allocatable.clone(),
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        expire_after: pool.template.expire_after,
        termination_grace: pool.template.termination_grace,
        instance_terminating: false,
        consolidatable: pool.disruption.consolidate_after.is_some() && !pool.is_static(),
        drifted: None,
        drifted_at: None,
        initialized_at: Some(Timestamp::UNIX_EPOCH),
        last_pod_event: None,
    };
    let node = NodeFacts {
        name: name.into(),
        provider_id,
        labels,
        annotations: Labels::default(),
        taints: pool.template.taints.clone(),
        unschedulable: false,
        capacity: kind.capacity.clone(),
        allocatable,
        ready: true,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
    };
    Some(StateNode {
        key: NodeKey::Claim(name.into()),
        claim: Some(claim),
        node: Some(node),
        nominated_until: None,
        marked_for_deletion: false,
    })
}
