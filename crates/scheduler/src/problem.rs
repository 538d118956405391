//! A round prepared for the search: pods sorted into classes, pools into markets, machines into looks, rules into groups.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;
use model::{
    Effect, LabelKey, LabelValue, NodeKey, NodeName, Pod, PodKey, Pool, Requirements, Resources, Snapshot, StateNode,
    pod::{PodShape, PodTerm},
    vocabulary,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    amounts::Dims,
    bits::Bits,
    class::{Classes, Member, Needs, Variant},
    dra::{Devices, PodClaims},
    eligible,
    machine::{Machines, Viewer},
    refusal::Refusal,
    reservations::Reservations,
    round::{PreferencePolicy, Round},
    states::{Demand, States},
    template::{self, Template, Workshop},
    topology::{self, Carried, GroupId, Keys, Rule, Topology},
    volumes::{self, PodVolumes},
    wishes::{Wish, wishes},
};

/// Everything that the search works on.
pub(crate) struct Problem<'a> {
    pub snapshot: &'a Snapshot,
    pub round: &'a Round,
    pub dims: Dims,
    pub states: States<'a>,
    pub templates: Vec<Template<'a>>,
    pub topology: Topology,
    pub machines: Machines<'a>,
    pub classes: Classes,
    pub reservations: Reservations<'a>,
    /// Only where a pod of the round claims devices.
    pub devices: Option<Devices<'a>>,
    /// The pods of the round in the order in which they are placed: the largest first.
    pub members: Vec<Member<'a>>,
    /// Pods that no search can place.
    pub refusals: BTreeMap<PodKey, Refusal>,
}

/// What a round knows beforehand when it is about moves rather than about pods without a place.
#[derive(Default)]
pub(crate) struct Settled<'s> {
    /// Pods of the round that count where they are.
    pub pods: FxHashSet<&'s PodKey>,
    /// Machines with a low number are filled first; zero for those that are not listed.
    pub order: FxHashMap<&'s NodeKey, usize>,
}

/// Pods of the round that can be searched a place for.
struct Entrant<'a> {
    pod: &'a Pod,
    volumes: PodVolumes,
    devices: Option<Arc<PodClaims>>,
}

impl<'a> Problem<'a> {
    /// Pods that are refused from the start take no part.
    pub fn new(snapshot: &'a Snapshot, round: &'a Round, refused: &BTreeMap<PodKey, Refusal>) -> Self {
        Self::build(snapshot, round, refused.clone(), &Settled::default())
    }

    /// A round some of whose pods have a place already, from which they may be moved later.
    pub fn settled(snapshot: &'a Snapshot, round: &'a Round, settled: &Settled<'_>) -> Self {
        Self::build(snapshot, round, BTreeMap::new(), settled)
    }

    fn build(
        snapshot: &'a Snapshot,
        round: &'a Round,
        mut refusals: BTreeMap<PodKey, Refusal>,
        settled: &Settled<'_>,
    ) -> Self {
        let mut entrants = entrants(snapshot, round, &mut refusals);
        let devices = devices(snapshot, &mut entrants, &mut refusals);
        let unplaced = round.pods.iter().filter(|pod| !settled.pods.contains(pod));
        let in_round: FxHashSet<&PodKey> = unplaced.collect();
        let daemons: Vec<&PodShape> = snapshot
            .daemons
            .values()
            .map(|daemon| daemon.shape.as_ref())
            .filter(|daemon| !round.options.ignore_dra || !daemon.claims_devices())
            .collect();

        let catalogs: Vec<_> = snapshot.catalogs.values().flat_map(|catalog| catalog.iter()).collect();
        let mut shapes: FxHashSet<*const PodShape> = FxHashSet::default();
        let demands: Vec<&Resources> = entrants
            .iter()
            .filter(|entrant| shapes.insert(Arc::as_ptr(&entrant.pod.shape)))
            .map(|entrant| &entrant.pod.shape.requests)
            .collect();
        let supplies = catalogs.iter().map(|kind| kind.allocatable());
        let machines = snapshot.nodes.values().flat_map(|state| {
            let node = state.node.as_ref().map(|node| &node.allocatable);
            node.into_iter()
                .chain(state.claim.as_ref().map(|claim| &claim.allocatable))
        });
        let dims = Dims::new(
            demands
                .iter()
                .copied()
                .chain(daemons.iter().map(|daemon| &daemon.requests)),
            supplies,
            machines,
        );

        let mut states = States::new(&snapshot.vocabulary);
        let reservations = Reservations::new(&snapshot.vocabulary, &catalogs);
        let workshop = Workshop {
            snapshot,
            options: &round.options,
            dims: &dims,
            daemons: &daemons,
        };
        let pools = template::in_order(snapshot).into_iter();
        let mut templates: Vec<Template<'a>> = pools
            .map(|pool| workshop.template(pool, &mut states, &reservations))
            .collect();

        let repellers = repellers(snapshot, &in_round);
        let keys = keys(snapshot, &entrants, &repellers, &templates, &states);
        rank_domains(&mut templates, &keys, &mut states);
        let taints = templates.iter().map(|template| template.pool.template.taints.clone());
        let mut topology = Topology::new(keys, taints.collect());

        let discouraged = discouraged(snapshot, &templates);
        let mut sorter = Sorter {
            snapshot,
            round,
            dims: &dims,
            states: &mut states,
            topology: &mut topology,
            classes: Classes::default(),
            interest: BTreeSet::new(),
            discouraged,
            leaving: leaving(snapshot),
        };
        let variants = sorter.variants(&entrants);
        let carriers: Vec<(&Pod, GroupId)> = repellers
            .into_iter()
            .map(|(pod, term)| (pod, sorter.topology.term(snapshot, pod, term, Rule::AntiAffinity, true)))
            .collect();
        let members = sorter.members(&entrants, variants);
        let (classes, mut interest) = (sorter.classes, sorter.interest);
        for way in daemons
            .iter()
            .flat_map(|daemon| Requirements::alternatives_of_pod(daemon))
        {
            interest.extend(keys_of(&way));
        }
        interest.extend(topology.keys.iter().map(|key| key.label.clone()));

        let unsettled =
            |state: &StateNode| round.options.enforce_consolidate_after && is_unsettled(snapshot, state, round);
        let machines = Machines::new(&Viewer {
            snapshot,
            dims: &dims,
            keys: &topology.keys,
            interest: &interest,
            daemons: &daemons,
            attaches: members.iter().any(|member| !member.attached.is_empty()),
            unsettled: &unsettled,
            order: &settled.order,
        });
        topology::take_census(&mut topology, snapshot, &machines, &in_round, &carriers);
        Self {
            snapshot,
            round,
            dims,
            states,
            templates,
            topology,
            machines,
            classes,
            reservations,
            devices,
            members,
            refusals,
        }
    }
}

/// The pods of the round that have a chance, the largest first; the others are refused right away.
fn entrants<'a>(snapshot: &'a Snapshot, round: &Round, refusals: &mut BTreeMap<PodKey, Refusal>) -> Vec<Entrant<'a>> {
    let keys: BTreeSet<&PodKey> = round.pods.iter().filter(|pod| !refusals.contains_key(pod)).collect();
    let mut entrants = Vec::with_capacity(keys.len());
    for key in keys {
        let Some(pod) = snapshot.pods.get(key) else {
            refusals.insert(key.clone(), Refusal::Unknown);
            continue;
        };
        let volumes = eligible::check(snapshot, pod, &round.options)
            .and_then(|()| volumes::resolve(snapshot, pod).map_err(Refusal::Volume));
        match volumes {
            Ok(volumes) => entrants.push(Entrant {
                pod,
                volumes,
                devices: None,
            }),
            Err(refusal) => {
                refusals.insert(key.clone(), refusal);
            }
        }
    }
    entrants.sort_by_cached_key(|entrant| {
        let pod: &'a Pod = entrant.pod;
        let requests = &pod.shape.requests;
        (
            Reverse(requests.get("cpu")),
            Reverse(requests.get("memory")),
            pod.created,
            &pod.uid,
            &pod.key,
        )
    });
    entrants
}

/// Reads the claims for devices. A pod whose claims cannot be read is out of the round.
fn devices<'a>(
    snapshot: &'a Snapshot,
    entrants: &mut Vec<Entrant<'a>>,
    refusals: &mut BTreeMap<PodKey, Refusal>,
) -> Option<Devices<'a>> {
    if !entrants.iter().any(|entrant| entrant.pod.shape.claims_devices()) {
        return None;
    }
    let devices = Devices::new(snapshot, entrants.iter().map(|entrant| entrant.pod));
    entrants.retain_mut(|entrant| {
        if !entrant.pod.shape.claims_devices() {
            return true;
        }
        match devices.claims_of(entrant.pod) {
            Ok(claims) => entrant.devices = Some(Arc::new(claims)),
            Err(refusal) => {
                refusals.insert(entrant.pod.key.clone(), Refusal::Devices(refusal));
            }
        }
        entrant.devices.is_some()
    });
    Some(devices)
}

/// Running pods that keep others away, with the terms that do.
fn repellers<'a>(snapshot: &'a Snapshot, round: &FxHashSet<&PodKey>) -> Vec<(&'a Pod, &'a PodTerm)> {
    let running = snapshot
        .pods
        .values()
        .map(AsRef::as_ref)
        .filter(|pod: &&Pod| !pod.shape.affinity.required_anti.is_empty() && pod.node.is_some());
    running
        .filter(|pod| pod.is_active() && !round.contains(&pod.key))
        .flat_map(|pod| pod.shape.affinity.required_anti.iter().map(move |term| (pod, term)))
        .collect()
}

/// The labels along which any rule counts, with their domains.
fn keys(
    snapshot: &Snapshot,
    entrants: &[Entrant<'_>],
    repellers: &[(&Pod, &PodTerm)],
    templates: &[Template<'_>],
    states: &States<'_>,
) -> Keys {
    let mut shapes: FxHashSet<*const PodShape> = FxHashSet::default();
    let mut labels: BTreeSet<LabelKey> = BTreeSet::new();
    let mut note = |key: &str| {
        let key = vocabulary::normalized_key(key);
        if key != vocabulary::HOSTNAME && !labels.contains(key) {
            labels.insert(key.into());
        }
    };
    for entrant in entrants {
        if !shapes.insert(Arc::as_ptr(&entrant.pod.shape)) {
            continue;
        }
        let shape = &entrant.pod.shape;
        let affinity = &shape.affinity;
        let terms = [
            &affinity.required_pods,
            &affinity.preferred_pods,
            &affinity.required_anti,
            &affinity.preferred_anti,
        ];
        terms.into_iter().flatten().for_each(|term| note(&term.topology_key));
        shape.spreads.iter().for_each(|spread| note(&spread.topology_key));
    }
    repellers.iter().for_each(|(_, term)| note(&term.topology_key));
    Keys::new(labels, |label| {
        let pools = templates
            .iter()
            .map(|template| domains(template, label, states))
            .collect();
        let bought = snapshot.nodes.values().filter(|state| !template::is_superposed(state));
        let machines = bought
            .filter_map(|state| state.labels().get(label).cloned())
            .collect::<BTreeSet<_>>();
        (pools, machines.into_iter().collect())
    })
}

/// The domains of a label that a pool can bring: what its types and its own requirements list.
fn domains(template: &Template<'_>, label: &LabelKey, states: &States<'_>) -> Vec<LabelValue> {
    if template.market.rows.is_empty() {
        return Vec::new();
    }
    let own = states.of_state(template.base).get(label.as_str());
    let mut all: BTreeSet<LabelValue> = own.listed().cloned().unwrap_or_default();
    for (values, _) in template.market.values_of(label.as_str()) {
        all.extend(own.intersect(values).listed().into_iter().flatten().cloned());
    }
    all.into_iter().collect()
}

/// Domains are tried from the cheapest to the dearest, going by the least that a machine costs there.
fn rank_domains(templates: &mut [Template<'_>], keys: &Keys, states: &mut States<'_>) {
    for template in templates.iter_mut() {
        template.ranks = keys
            .iter()
            .map(|key| {
                let mut price = |value: &LabelValue| {
                    let demand = states.demand_value(&key.label, value);
                    let state = states.narrow(template.base, demand)?;
                    let prices = &template.market.view(states, state).prices;
                    prices.iter().copied().min_by(f64::total_cmp)
                };
                let prices: Vec<f64> = key
                    .values
                    .iter()
                    .map(|value| price(value).unwrap_or(f64::INFINITY))
                    .collect();
                let mut order: Vec<usize> = (0..prices.len()).collect();
                order.sort_by(|a, b| prices[*a].total_cmp(&prices[*b]).then(a.cmp(b)));
                let mut ranks = vec![0; order.len()];
                for (rank, domain) in order.into_iter().enumerate() {
                    ranks[domain] = rank;
                }
                ranks
            })
            .collect();
    }
}

/// Whether any taint merely discourages. Only then it makes sense to try again with a toleration for such taints.
fn discouraged(snapshot: &Snapshot, templates: &[Template<'_>]) -> bool {
    let pools = templates.iter().filter(|template| template.barred.is_none());
    let mut taints = pools.flat_map(|template| &template.pool.template.taints);
    let nodes = snapshot.nodes.values().filter_map(|state| state.node.as_ref());
    taints.any(|taint| taint.effect == Effect::PreferNoSchedule)
        || nodes
            .flat_map(|node| &node.taints)
            .any(|taint| taint.effect == Effect::PreferNoSchedule)
}

/// A machine whose pods have come or gone so recently that its pool's `consolidateAfter` has not passed.
fn is_unsettled(snapshot: &Snapshot, state: &StateNode, round: &Round) -> bool {
    let Some(claim) = &state.claim else { return false };
    let pool: Option<&Arc<Pool>> = state.pool().and_then(|pool| snapshot.pools.get(&pool));
    let after = pool.and_then(|pool| pool.disruption.consolidate_after);
    let since = claim.last_pod_event.or(claim.initialized_at);
    match (after, claim.initialized_at, since) {
        (Some(after), Some(_), Some(since)) => after > SignedDuration::ZERO && round.now < since + after,
        _ => false,
    }
}

/// Nodes that go anyway.
fn leaving(snapshot: &Snapshot) -> FxHashSet<&NodeName> {
    let machines = snapshot.nodes.values().filter(|state| state.is_leaving());
    machines.filter_map(|state| state.node_name()).collect()
}

fn keys_of(requirements: &Requirements) -> impl Iterator<Item = LabelKey> {
    requirements.iter().map(|requirement| requirement.key.clone())
}

/// Sorts pods into classes.
struct Sorter<'a, 's> {
    snapshot: &'a Snapshot,
    round: &'s Round,
    dims: &'s Dims,
    states: &'s mut States<'a>,
    topology: &'s mut Topology,
    classes: Classes,
    /// Labels that anybody asks machines for.
    interest: BTreeSet<LabelKey>,
    discouraged: bool,
    /// Nodes that go anyway.
    leaving: FxHashSet<&'a NodeName>,
}

/// Pods with this identity are in one class, unless neighbours tell them apart.
type Kind<'a> = (&'a str, &'a PodShape, Vec<Demand>, bool, Option<&'a PodKey>);

/// Like [`Kind`], with the shape known by its address: pods of one workload usually share it.
type Likely<'a> = (&'a str, *const PodShape, Vec<Demand>, bool, Option<&'a PodKey>);

/// The variants of a kind of pods, before it is known which groups select them.
struct Drafts {
    variants: Vec<Variant>,
    requests: Arc<Resources>,
}

impl<'a> Sorter<'a, '_> {
    /// The variants of each entrant; entrants of one kind share them.
    fn variants(&mut self, entrants: &[Entrant<'a>]) -> Vec<Arc<Drafts>> {
        let mut by_pointer: FxHashMap<Likely<'_>, Arc<Drafts>> = FxHashMap::default();
        let mut by_value: FxHashMap<Kind<'a>, Arc<Drafts>> = FxHashMap::default();
        let mut all = Vec::with_capacity(entrants.len());
        for entrant in entrants {
            let (pod, shape) = (entrant.pod, entrant.pod.shape.as_ref());
            let namespace: &str = &pod.key.namespace;
            let volumes: Vec<Demand> = entrant
                .volumes
                .alternatives
                .iter()
                .map(|alternative| {
                    self.interest.extend(keys_of(alternative));
                    self.states.demand(alternative.clone())
                })
                .collect();
            let moving = self.moves(pod);
            let devices = entrant.devices.as_ref().map(|_| &pod.key);
            let pointer = (namespace, Arc::as_ptr(&pod.shape), volumes, moving, devices);
            if let Some(known) = by_pointer.get(&pointer) {
                all.push(known.clone());
                continue;
            }
            let kind: Kind<'a> = (namespace, shape, pointer.2.clone(), moving, devices);
            let drafts = match by_value.get(&kind) {
                Some(known) => known.clone(),
                None => {
                    let drafts = Arc::new(self.draft(pod, &kind.2, moving, devices));
                    by_value.insert(kind, drafts.clone());
                    drafts
                }
            };
            by_pointer.insert(pointer, drafts.clone());
            all.push(drafts);
        }
        all
    }

    /// Whether the pod leaves its machine by our choice, and not because the machine goes anyway.
    fn moves(&self, pod: &Pod) -> bool {
        let stays = |node| !self.leaving.contains(node);
        self.round.options.enforce_consolidate_after && pod.node.as_ref().is_some_and(stays)
    }

    fn draft(&mut self, pod: &'a Pod, volumes: &[Demand], moving: bool, devices: Option<&PodKey>) -> Drafts {
        let policy = self.round.options.preference_policy;
        let amounts = self.dims.demand(&pod.shape.requests);
        let mut variants: Vec<Variant> = Vec::new();
        for wish in wishes(&pod.shape, policy, self.discouraged) {
            let demand = wish.requirements();
            self.interest.extend(keys_of(&demand));
            let needs = Needs {
                amounts: amounts.clone(),
                demand: self.states.demand(demand),
                strict: self.states.demand(wish.strict_requirements()),
                tolerations: wish.tolerations(),
                ports: pod.shape.host_ports.clone(),
                volumes: volumes.to_vec(),
                moving,
                devices: devices.cloned(),
            };
            let variant = Variant {
                core: self.classes.core(needs),
                carried: self.carried(pod, &wish, policy),
                own: self.own_domains(&wish.strict_requirements()),
            };
            if variants.last() != Some(&variant) {
                variants.push(variant);
            }
        }
        Drafts {
            variants,
            requests: Arc::new(pod.shape.requests.clone()),
        }
    }

    fn carried(&mut self, pod: &'a Pod, wish: &Wish<'a>, policy: PreferencePolicy) -> Carried {
        let mut carried = Carried::default();
        for spread in wish
            .spreads()
            .filter(|spread| spread.required || policy == PreferencePolicy::Respect)
        {
            let filter = wish.filter(spread);
            self.interest.extend(filter.alternatives.iter().flat_map(keys_of));
            let group = self.topology.spread(pod, spread, filter);
            carried.rules.push((group, self.topology.selects(group, pod)));
        }
        for term in wish.affinities() {
            let group = self.topology.term(self.snapshot, pod, term, Rule::Affinity, false);
            carried.rules.push((group, self.topology.selects(group, pod)));
        }
        for term in wish.anti_affinities() {
            let group = self.topology.term(self.snapshot, pod, term, Rule::AntiAffinity, false);
            carried.rules.push((group, self.topology.selects(group, pod)));
        }
        for term in &pod.shape.affinity.required_anti {
            let inverse = self.topology.term(self.snapshot, pod, term, Rule::AntiAffinity, true);
            carried.repels.push(inverse);
        }
        carried
    }

    /// The domains of each label that the pod insists on.
    fn own_domains(&self, strict: &Requirements) -> Vec<(usize, Bits)> {
        let keys = self.topology.keys.iter().enumerate();
        let own = keys.filter_map(|(number, key)| {
            let wanted = strict.requirement(key.label.as_str())?;
            let domains = key.values.iter().enumerate();
            let domains = domains.filter(|(_, value)| wanted.has(value.as_str()));
            Some((number, domains.map(|(domain, _)| domain).collect()))
        });
        own.collect()
    }

    /// All groups are known by now, so it can be told which of them select whom.
    fn members(&mut self, entrants: &[Entrant<'a>], drafts: Vec<Arc<Drafts>>) -> Vec<Member<'a>> {
        let mut known: FxHashMap<(*const Drafts, *const PodShape), usize> = FxHashMap::default();
        let members = entrants.iter().zip(drafts).map(|(entrant, drafts)| {
            let pod = entrant.pod;
            let class = *known
                .entry((Arc::as_ptr(&drafts), Arc::as_ptr(&pod.shape)))
                .or_insert_with(|| {
                    let ties = self.topology.ties(pod);
                    self.classes.class(drafts.variants.clone(), ties, &drafts.requests)
                });
            Member {
                pod,
                class,
                attached: entrant.volumes.attached.clone().into(),
                devices: entrant.devices.clone(),
            }
        });
        members.collect()
    }
}
