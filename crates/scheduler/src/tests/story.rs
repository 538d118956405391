//! Situations that go on: what a plan launches becomes nodes, what it places is bound, and more pods come.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    CapacityType, InstanceType, LabelKey, LabelValue, NodeFacts, NodeKey, Offering, PodKey, Snapshot, StateNode,
    vocabulary,
};

use crate::{Launch, Options, Plan, Round, situation, solve};

pub(super) struct Story {
    pub snapshot: Snapshot,
    pub options: Options,
    nodes: usize,
}

impl Story {
    #[track_caller]
    pub fn new(text: &str) -> Self {
        let mut story = Self {
            snapshot: Snapshot::default(),
            options: Options::default(),
            nodes: 0,
        };
        story.provision(text);
        story
    }

    /// Adds what the text describes and gives the new pods a place.
    #[track_caller]
    pub fn provision(&mut self, text: &str) -> Plan {
        let plan = self.plan(text);
        self.carry_out(&plan);
        plan
    }

    /// The same, without anything being launched or bound.
    #[track_caller]
    pub fn plan(&mut self, text: &str) -> Plan {
        let pods = situation::extend(&mut self.snapshot, text);
        self.place(pods)
    }

    #[track_caller]
    pub fn place(&self, pods: Vec<PodKey>) -> Plan {
        let round = Round {
            options: self.options.clone(),
            ..Round::new(pods, situation::now())
        };
        let plan = solve(&self.snapshot, &round);
        super::expect_clean(&self.snapshot, &plan);
        plan
    }

    /// Launches become nodes, and pods are bound.
    pub fn carry_out(&mut self, plan: &Plan) {
        for launch in &plan.launches {
            self.nodes += 1;
            let machine = node(&self.snapshot, launch, &format!("node-{}", self.nodes));
            let name = machine.node_name().expect("a node has a name").clone();
            self.snapshot.put_node(Arc::new(machine));
            self.bind(&launch.pods, name.as_str());
        }
        for placement in &plan.placements {
            let machine = &self.snapshot.nodes[&placement.node];
            if let Some(name) = machine.node_name().cloned() {
                self.bind(&placement.pods, name.as_str());
            }
        }
    }

    /// What the launches of a plan bought of reservations is gone from the provider's offers. The answer are the
    /// reservations that were drawn on.
    pub fn use_up_reservations(&mut self, plan: &Plan) -> Vec<LabelValue> {
        let drawn: Vec<LabelValue> = plan
            .launches
            .iter()
            .filter_map(|launch| self.drawn_on(launch))
            .collect();
        for id in &drawn {
            for catalog in self.snapshot.catalogs.clone().values() {
                let kinds = catalog.iter().map(|kind| {
                    let mut kind = (**kind).clone();
                    let drawn = |offering: &&mut Offering| {
                        offering.requirements.get(situation::RESERVATION).single() == Some(id)
                    };
                    for offering in kind.offerings.iter_mut().filter(drawn) {
                        offering.reservation_capacity =
                            offering.reservation_capacity.map(|left| left.saturating_sub(1));
                        offering.available = offering.reservation_capacity != Some(0);
                    }
                    Arc::new(kind)
                });
                let kinds: Arc<[Arc<InstanceType>]> = kinds.collect();
                let pools = self
                    .snapshot
                    .catalogs
                    .iter()
                    .filter(|(_, known)| Arc::ptr_eq(known, catalog));
                let pools: Vec<_> = pools.map(|(pool, _)| pool.clone()).collect();
                for pool in pools {
                    self.snapshot.catalogs.insert(pool, kinds.clone());
                }
            }
        }
        drawn
    }

    /// The reservation of what a launch would buy.
    fn drawn_on(&self, launch: &Launch) -> Option<LabelValue> {
        let choice = &launch.choice;
        let kind = self.snapshot.instance_type(&launch.pool, &choice.instance_type)?;
        let mut offerings = kind.offerings_within(&launch.requirements);
        let bought = offerings.find(|offering| {
            offering.capacity_type == CapacityType::Reserved && offering.price.total_cmp(&choice.price).is_eq()
        });
        bought?.requirements.get(situation::RESERVATION).single().cloned()
    }

    fn bind(&mut self, pods: &[PodKey], node: &str) {
        for key in pods {
            let mut pod = (*self.snapshot.pods[key]).clone();
            pod.node = Some(node.into());
            pod.unschedulable = false;
            self.snapshot.put_pod(Arc::new(pod));
        }
    }

    /// Removes bound pods for which the node has another value than this.
    pub fn delete_outside(&mut self, key: &str, value: &str) {
        let gone: Vec<PodKey> = self
            .bound(key)
            .filter(|(_, domain)| *domain != value)
            .map(|(pod, _)| pod.clone())
            .collect();
        for pod in gone {
            self.snapshot.remove_pod(&pod);
        }
    }

    fn bound(&self, key: &str) -> impl Iterator<Item = (&PodKey, &str)> {
        let key = situation::full_key(key).to_owned();
        self.snapshot
            .pods
            .values()
            .filter(|pod| pod.is_active())
            .filter_map(move |pod| {
                let machine = self.snapshot.node_named(pod.node.as_ref()?)?;
                let domain = if key == vocabulary::HOSTNAME {
                    machine.node_name()?.as_str()
                } else {
                    machine.labels().get(key.as_str())?.as_str()
                };
                Some((&pod.key, domain))
            })
    }

    /// How many bound pods with this label are in each domain that has any, from few to many.
    pub fn skew(&self, key: &str, label: (&str, &str)) -> Vec<usize> {
        let mut counts: Vec<usize> = self.spread(key, label).into_values().collect();
        counts.sort_unstable();
        counts
    }

    /// The same by domain.
    pub fn spread(&self, key: &str, (label, value): (&str, &str)) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (pod, domain) in self.bound(key) {
            let labels = &self.snapshot.pods[pod].shape.labels;
            if labels.get(label).is_some_and(|have| *have == *value) {
                *counts.entry(domain.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}

/// The node that a launch becomes when what it would buy is bought.
fn node(snapshot: &Snapshot, launch: &Launch, name: &str) -> StateNode {
    let kind = snapshot
        .instance_type(&launch.pool, &launch.choice.instance_type)
        .expect("the choice is in the catalog");
    let mut labels = kind.requirements.labels();
    labels.extend(launch.requirements.labels());
    labels.extend((*launch.labels).clone());
    let facts = [
        (vocabulary::ZONE, launch.choice.zone.as_str()),
        (vocabulary::CAPACITY_TYPE, launch.choice.capacity_type.as_str()),
        (vocabulary::INSTANCE_TYPE, launch.choice.instance_type.as_str()),
        (vocabulary::HOSTNAME, name),
        (vocabulary::REGISTERED, "true"),
        (vocabulary::INITIALIZED, "true"),
    ];
    labels.extend(facts.map(|(key, value)| (LabelKey::from(key), LabelValue::from(value))));
    let mut machine = situation::claim_of(snapshot, launch);
    let claim = machine.claim.as_mut().expect("a machine of a pool has a claim");
    claim.name = name.into();
    claim.phase = model::ClaimPhase::Initialized;
    claim.capacity = kind.capacity.clone();
    claim.allocatable = kind.allocatable().clone();
    machine.key = NodeKey::Claim(name.into());
    machine.node = Some(NodeFacts {
        name: name.into(),
        provider_id: None,
        labels,
        annotations: model::Labels::new(),
        taints: claim.taints.clone(),
        unschedulable: false,
        capacity: kind.capacity.clone(),
        allocatable: kind.allocatable().clone(),
        ready: true,
        created: situation::now(),
        deleting: None,
    });
    machine
}
