//! The cluster as it will be: machines with their labels, and who lives on them.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    LabelKey, LabelValue, Labels, Pod, PodKey, Requirement, Requirements, Snapshot, StateNode, Taint,
    pod::{LabelSelector, PodShape, PodTerm},
    vocabulary,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{
    Place, launches,
    ledger::{self, Kinds},
};
use crate::plan::{Launch, Plan};

pub(super) type ResidentId = usize;
pub(super) type SiteId = usize;
/// The number of a domain within its axis.
pub(super) type Domain = usize;

/// A pod at the place where it is or will be.
pub(super) struct Resident<'a> {
    pub pod: &'a Pod,
    pub site: SiteId,
    /// The plan puts it there; otherwise it runs there already.
    pub planned: bool,
}

/// A machine that will be there.
#[derive(Clone, Copy)]
pub(super) enum Site<'a> {
    Launch(usize, &'a Launch),
    Machine(&'a StateNode),
}

pub(super) struct Town<'a> {
    pub snapshot: &'a Snapshot,
    pub sites: Vec<Site<'a>>,
    pub residents: Vec<Resident<'a>>,
    kinds: Kinds<'a>,
    crowd: Crowd<'a>,
    axes: FxHashMap<String, Axis<'a>>,
}

/// The sites along one label.
#[derive(Default)]
pub(super) struct Axis<'a> {
    numbers: FxHashMap<&'a str, Domain>,
    names: Vec<&'a str>,
    /// The domain of each site, as far as it is known.
    pub homes: Vec<Option<Domain>>,
    /// The domains of sites that may still end up in several, as far as anybody asked.
    undecided: FxHashMap<SiteId, Vec<Domain>>,
}

impl Axis<'_> {
    pub fn domain_named(&self, name: &str) -> Option<Domain> {
        self.numbers.get(name).copied()
    }

    pub fn name_of(&self, domain: Domain) -> Option<&str> {
        self.names.get(domain).copied()
    }
}

impl<'a> Town<'a> {
    pub fn new(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let launches = plan
            .launches
            .iter()
            .enumerate()
            .map(|(index, launch)| Site::Launch(index, launch));
        let machines = snapshot.nodes.values().map(|machine| Site::Machine(machine));
        let mut town = Self {
            snapshot,
            sites: launches.chain(machines).collect(),
            residents: Vec::new(),
            kinds: Kinds::new(snapshot, plan),
            crowd: Crowd::default(),
            axes: FxHashMap::default(),
        };
        town.settle(plan);
        town
    }

    fn settle(&mut self, plan: &'a Plan) {
        let first = plan.launches.len();
        let machines = self.sites[first..]
            .iter()
            .enumerate()
            .filter_map(|(index, site)| match site {
                Site::Machine(machine) => Some((first + index, *machine)),
                Site::Launch(..) => None,
            });
        let by_key: FxHashMap<_, SiteId> = machines.map(|(site, machine)| (&machine.key, site)).collect();
        let launched = plan
            .launches
            .iter()
            .enumerate()
            .map(|(index, launch)| (Some(index), &launch.pods));
        let placed = plan
            .placements
            .iter()
            .map(|placement| (by_key.get(&placement.node).copied(), &placement.pods));
        let mut moved: FxHashSet<&PodKey> = plan.refusals.keys().collect();
        for (site, pods) in launched.chain(placed) {
            for key in pods {
                moved.insert(key);
                if let (Some(site), Some(pod)) = (site, self.snapshot.pods.get(key)) {
                    self.add(pod, site, true);
                }
            }
        }
        for pod in self.snapshot.pods.values() {
            let Some(node) = pod
                .node
                .as_ref()
                .filter(|_| pod.is_active() && !moved.contains(&pod.key))
            else {
                continue;
            };
            let site = self
                .snapshot
                .node_named(node)
                .and_then(|machine| by_key.get(&machine.key));
            if let Some(site) = site {
                self.add(pod, *site, false);
            }
        }
    }

    fn add(&mut self, pod: &'a Pod, site: SiteId, planned: bool) {
        self.crowd.add(self.residents.len(), pod);
        self.residents.push(Resident { pod, site, planned });
    }

    /// The residents that a rule is about.
    pub fn selected(&self, namespaces: &Namespaces<'_>, selector: &LabelSelector) -> Vec<ResidentId> {
        self.crowd.selected(namespaces, selector)
    }

    pub fn place(&self, site: SiteId) -> Place {
        match self.sites[site] {
            Site::Launch(index, _) => Place::Launch(index),
            Site::Machine(machine) => Place::Node(machine.key.clone()),
        }
    }

    /// Whether the domains of a machine are to be reckoned with, although nobody who counts is there. What was ordered
    /// and not launched yet may come to nothing.
    pub fn is_certain(&self, site: SiteId) -> bool {
        match self.sites[site] {
            Site::Launch(..) => true,
            Site::Machine(machine) => !ledger::is_unlaunched(machine),
        }
    }

    /// Taints of a machine as they are, for rules that look at them.
    pub fn taints(&self, site: SiteId) -> &'a [Taint] {
        match self.sites[site] {
            Site::Launch(_, launch) => {
                let pool = self.snapshot.pools.get(&launch.pool);
                pool.map_or(&[], |pool| &pool.template.taints)
            }
            Site::Machine(machine) => match (&machine.node, &machine.claim) {
                (Some(node), _) => &node.taints,
                (None, Some(claim)) => &claim.taints,
                (None, None) => &[],
            },
        }
    }

    /// What a label of a machine is or would be at the present prices.
    pub fn label(&self, site: SiteId, key: &str) -> Option<&'a str> {
        match self.sites[site] {
            Site::Launch(_, launch) => fixed(launch, key).or_else(|| likely(&self.kinds, launch, key)),
            Site::Machine(machine) => label_of_machine(machine, key),
        }
    }

    /// Whether a machine is one that requirements describe.
    pub fn meets(&self, site: SiteId, way: &Requirements) -> bool {
        if let Site::Machine(machine) = self.sites[site]
            && let Some(claim) = machine.claim.as_ref().filter(|_| ledger::is_unlaunched(machine))
        {
            return claim.requirements.guarantee(way, &self.snapshot.vocabulary);
        }
        way.iter().all(|wanted| match self.label(site, wanted.key.as_str()) {
            Some(value) => wanted.has(value),
            None => wanted.operator().accepts_absence(),
        })
    }

    /// Looks at the sites along a label; [`Town::axis`] knows the result from then on.
    pub fn look_along(&mut self, key: &str) {
        let key = vocabulary::normalized_key(key);
        if !self.axes.contains_key(key) {
            let axis = self.survey(key);
            self.axes.insert(key.to_owned(), axis);
        }
    }

    /// A label that was looked along before.
    pub fn axis(&self, key: &str) -> &Axis<'a> {
        &self.axes[vocabulary::normalized_key(key)]
    }

    fn survey(&self, key: &str) -> Axis<'a> {
        let mut axis = Axis::default();
        for site in 0..self.sites.len() {
            // Every machine is a host of its own, whatever its label says.
            let home = if key == vocabulary::HOSTNAME {
                Some(site)
            } else {
                self.label(site, key).map(|value| axis.number(value))
            };
            axis.homes.push(home);
        }
        axis
    }

    /// Every domain that a site may end up in, along a label that was looked along before.
    pub fn possible(&mut self, key: &str, site: SiteId) -> Vec<Domain> {
        let key = vocabulary::normalized_key(key);
        let axis = &self.axes[key];
        if let Some(known) = axis.undecided.get(&site) {
            return known.clone();
        }
        let values = match self.sites[site] {
            Site::Launch(_, launch) if key != vocabulary::HOSTNAME && fixed(launch, key).is_none() => {
                launches::values_of(&self.kinds, launch, key)
            }
            Site::Machine(machine) if axis.homes[site].is_none() && ledger::is_unlaunched(machine) => {
                open_values(self.snapshot, machine, key)
            }
            Site::Launch(..) | Site::Machine(_) => return axis.homes[site].into_iter().collect(),
        };
        let Some(axis) = self.axes.get_mut(key) else {
            return Vec::new();
        };
        let domains: Vec<Domain> = values.into_iter().map(|value| axis.number(value.as_str())).collect();
        axis.undecided.insert(site, domains.clone());
        domains
    }
}

impl<'a> Axis<'a> {
    fn number(&mut self, value: &'a str) -> Domain {
        *self.numbers.entry(value).or_insert_with(|| {
            self.names.push(value);
            self.names.len() - 1
        })
    }
}

/// What a label of a launch will be for certain.
fn fixed<'a>(launch: &'a Launch, key: &str) -> Option<&'a str> {
    let written = launch.labels.get(key);
    written
        .or_else(|| launch.requirements.get(key).single())
        .map(LabelValue::as_str)
}

/// What a label would be if the launch became what it would buy now.
fn likely<'a>(kinds: &Kinds<'a>, launch: &'a Launch, key: &str) -> Option<&'a str> {
    let choice = &launch.choice;
    match key {
        vocabulary::ZONE => Some(choice.zone.as_str()),
        vocabulary::CAPACITY_TYPE => Some(choice.capacity_type.as_str()),
        vocabulary::INSTANCE_TYPE => Some(choice.instance_type.as_str()),
        _ => {
            let kind = kinds.get(&launch.pool, &choice.instance_type)?;
            kind.requirements.get(key).single().map(LabelValue::as_str)
        }
    }
}

fn label_of_machine<'a>(machine: &'a StateNode, key: &str) -> Option<&'a str> {
    let labelled = machine.labels().get(key);
    if key == vocabulary::HOSTNAME {
        let name = machine.node_name().map(model::NodeName::as_str);
        return labelled.map(LabelValue::as_str).or(name);
    }
    let open = machine.claim.as_ref().filter(|_| ledger::is_unlaunched(machine));
    let promised = open.and_then(|claim| claim.requirements.get(key).single());
    labelled.or(promised).map(LabelValue::as_str)
}

/// The values that a label of an unlaunched machine may get.
fn open_values<'a>(snapshot: &'a Snapshot, machine: &'a StateNode, key: &str) -> BTreeSet<&'a LabelValue> {
    let Some(claim) = &machine.claim else {
        return BTreeSet::new();
    };
    let own = claim.requirements.get(key);
    let kinds = ledger::possible(snapshot, machine).into_iter();
    let listed = kinds.flat_map(|kind| kind.requirements.get(key).listed().into_iter().flatten());
    listed.filter(|value| own.has(value.as_str())).collect()
}

/// The namespaces that a rule is about.
pub(super) enum Namespaces<'a> {
    All,
    These(BTreeSet<&'a str>),
}

impl<'a> Namespaces<'a> {
    pub fn of(snapshot: &'a Snapshot, term: &'a PodTerm, own: &'a Arc<str>) -> Self {
        let mut named: BTreeSet<&str> = term.namespaces.iter().map(String::as_str).collect();
        match &term.namespace_selector {
            Some(selector) if selector.requirements.is_empty() => return Namespaces::All,
            Some(selector) => {
                let known = snapshot.namespaces.iter();
                named.extend(
                    known
                        .filter(|(_, labels)| selector.matches(labels))
                        .map(|(name, _)| &**name),
                );
            }
            None if named.is_empty() => {
                named.insert(own);
            }
            None => {}
        }
        Namespaces::These(named)
    }

    fn include(&self, namespace: &str) -> bool {
        match self {
            Namespaces::All => true,
            Namespaces::These(names) => names.contains(namespace),
        }
    }
}

/// Residents by what selectors look at: namespace and labels.
#[derive(Default)]
struct Crowd<'a> {
    sets: Vec<(&'a str, &'a Labels, Vec<ResidentId>)>,
    by_shape: FxHashMap<(&'a str, *const PodShape), usize>,
    by_value: FxHashMap<(&'a str, &'a Labels), usize>,
    by_label: FxHashMap<(&'a LabelKey, &'a LabelValue), Vec<usize>>,
}

impl<'a> Crowd<'a> {
    fn add(&mut self, id: ResidentId, pod: &'a Pod) {
        let (namespace, labels): (&str, &Labels) = (&pod.key.namespace, &pod.shape.labels);
        let by_shape = self.by_shape.entry((namespace, Arc::as_ptr(&pod.shape)));
        let set = *by_shape.or_insert_with(|| {
            *self.by_value.entry((namespace, labels)).or_insert_with(|| {
                for label in labels {
                    self.by_label.entry(label).or_default().push(self.sets.len());
                }
                self.sets.push((namespace, labels, Vec::new()));
                self.sets.len() - 1
            })
        });
        self.sets[set].2.push(id);
    }

    fn selected(&self, namespaces: &Namespaces<'_>, selector: &LabelSelector) -> Vec<ResidentId> {
        let hallmark =
            |requirement: &Requirement| Some((requirement.key.clone(), requirement.values.single()?.clone()));
        let candidates: Vec<usize> = match selector.requirements.iter().find_map(hallmark) {
            Some((key, value)) => self.by_label.get(&(&key, &value)).cloned().unwrap_or_default(),
            None => (0..self.sets.len()).collect(),
        };
        let sets = candidates.into_iter().map(|set| &self.sets[set]);
        let selected = sets.filter(|(namespace, labels, _)| namespaces.include(namespace) && selector.matches(labels));
        selected.flat_map(|(_, _, ids)| ids.iter().copied()).collect()
    }
}
