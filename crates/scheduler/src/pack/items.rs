//! What there is to pack: the pods of planned machines, those that are alike together.

use model::{Requirements, pod::HostPort};
use rustc_hash::FxHashMap;

use crate::{
    amounts::{self, Amounts},
    greedy::Greedy,
    open::{Open, Seat},
    states::{Demand, State},
    topology::{Axis, GroupId, Rule},
};

/// Pods, or bundles of pods, that a packing cannot tell apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub amounts: Amounts,
    /// What the machine has to be: the pods' own demands, the place of their volumes and the domains settled on.
    pub demand: Demand,
    pub ports: Vec<HostPort>,
    /// Rules over hosts that have a say, with the answer whether they count the pod itself.
    pub asks: Vec<(GroupId, bool)>,
    /// Rules over hosts that count the pod.
    pub counts: Vec<GroupId>,
    /// Pods that were put together by an affinity over hosts stay together, and begin a machine of their own.
    pub bundle: Option<usize>,
}

/// A kind and the pods that are of it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub kind: Kind,
    pub units: Vec<Vec<Seat>>,
}

/// Everything to pack.
#[derive(Debug)]
pub(super) struct Items(pub Vec<Item>);

impl Items {
    pub fn new(greedy: &mut Greedy<'_>, template: usize, opens: &[Open]) -> Self {
        let mut sorter = Sorter {
            greedy,
            template,
            numbers: FxHashMap::default(),
            items: Vec::new(),
            known: FxHashMap::default(),
            demands: FxHashMap::default(),
        };
        for (number, open) in opens.iter().enumerate() {
            let (together, alone): (Vec<Seat>, Vec<Seat>) =
                open.pods.iter().partition(|seat| sorter.is_attached(**seat));
            for seat in alone {
                let item = sorter.item(open, seat);
                sorter.items[item].units.push(vec![seat]);
            }
            if !together.is_empty() {
                let kind = sorter.bundle(open, &together, number);
                let item = sorter.number(kind);
                sorter.items[item].units.push(together);
            }
        }
        Self(sorter.items)
    }
}

struct Sorter<'g, 'a> {
    greedy: &'g mut Greedy<'a>,
    template: usize,
    numbers: FxHashMap<Kind, usize>,
    items: Vec<Item>,
    /// Items and demands of pods together with the state of the machine that they were on.
    known: FxHashMap<Origin, usize>,
    demands: FxHashMap<Origin, Demand>,
}

/// The class of a pod, its wishes, the place of its volumes, and the state of the machine that it was on.
type Origin = (usize, usize, usize, State);

impl Sorter<'_, '_> {
    fn number(&mut self, kind: Kind) -> usize {
        *self.numbers.entry(kind).or_insert_with_key(|kind| {
            self.items.push(Item {
                kind: kind.clone(),
                units: Vec::new(),
            });
            self.items.len() - 1
        })
    }

    /// The item of a pod that stands alone.
    fn item(&mut self, open: &Open, seat: Seat) -> usize {
        let origin = self.origin(open, seat);
        if let Some(known) = self.known.get(&origin) {
            return *known;
        }
        let kind = self.kind(open, seat, None);
        let number = self.number(kind);
        self.known.insert(origin, number);
        number
    }

    fn origin(&self, open: &Open, seat: Seat) -> Origin {
        let class = self.greedy.problem.members[seat.member].class;
        (class, seat.variant, seat.volume, open.state)
    }

    /// Whether an affinity over hosts has put the pod where it is, or may have put others beside it.
    fn is_attached(&self, seat: Seat) -> bool {
        let problem = &self.greedy.problem;
        let class = &problem.classes.all[problem.members[seat.member].class];
        let rules = class.variants[seat.variant]
            .carried
            .rules
            .iter()
            .map(|(group, _)| group);
        rules.chain(&class.ties.counted).any(|group| {
            let identity = &problem.topology.groups[*group].identity;
            identity.axis == Axis::Host && identity.rule == Rule::Affinity
        })
    }

    fn kind(&mut self, open: &Open, seat: Seat, bundle: Option<usize>) -> Kind {
        let demand = self.demand(open, seat);
        let problem = &self.greedy.problem;
        let class = &problem.classes.all[problem.members[seat.member].class];
        let variant = &class.variants[seat.variant];
        let groups = &problem.topology.groups;
        let over_hosts = |group: &GroupId| groups[*group].identity.axis == Axis::Host;
        let asks = variant.carried.rules.iter().copied();
        let asks = asks.chain(class.ties.repelled.iter().map(|group| (*group, true)));
        let counts = class.ties.counted.iter().chain(&variant.carried.repels);
        let taints = &problem.templates[self.template].pool.template.taints;
        let counts = counts.filter(|group| {
            let filter = groups[**group].identity.filter.as_ref();
            over_hosts(group)
                && filter.is_none_or(|filter| {
                    filter.admits_all() || filter.admits(taints, problem.states.of_state(open.state))
                })
        });
        let needs = &problem.classes.cores[variant.core].needs;
        Kind {
            amounts: needs.amounts.clone(),
            demand,
            ports: needs.ports.clone(),
            asks: asks.filter(|(group, _)| over_hosts(group)).collect(),
            counts: counts.copied().collect(),
            bundle,
        }
    }

    fn bundle(&mut self, open: &Open, seats: &[Seat], number: usize) -> Kind {
        let kinds: Vec<Kind> = seats.iter().map(|seat| self.kind(open, *seat, Some(number))).collect();
        let mut all = Requirements::default();
        let mut bundle = kinds[0].clone();
        bundle.amounts = Amounts::from_elem(0, bundle.amounts.len());
        (bundle.ports, bundle.asks, bundle.counts) = (Vec::new(), Vec::new(), Vec::new());
        for kind in kinds {
            amounts::add(&mut bundle.amounts, &kind.amounts);
            all.merge(self.greedy.problem.states.of_demand(kind.demand));
            bundle.ports.extend(kind.ports);
            bundle.counts.extend(kind.counts);
        }
        bundle.demand = self.greedy.problem.states.demand(all);
        bundle
    }

    /// The pod's own demand, the place of its volumes, and the domains of its machine that rules counted it in.
    fn demand(&mut self, open: &Open, seat: Seat) -> Demand {
        let origin = self.origin(open, seat);
        if let Some(known) = self.demands.get(&origin) {
            return *known;
        }
        let problem = &mut self.greedy.problem;
        let class = &problem.classes.all[origin.0];
        let variant = &class.variants[seat.variant];
        let needs = &problem.classes.cores[variant.core].needs;
        let mut all = problem.states.of_demand(needs.demand).clone();
        if let Some(place) = needs.volumes.get(seat.volume) {
            all.merge(problem.states.of_demand(*place));
        }
        let rules = variant.carried.rules.iter().map(|(group, _)| group);
        let ties = class.ties.counted.iter().chain(&class.ties.repelled);
        for group in rules.chain(ties).chain(&variant.carried.repels) {
            if let Axis::Key(key) = problem.topology.groups[*group].identity.axis {
                let label = &problem.topology.keys[key].label;
                let settled = problem.states.of_state(open.state).requirement(label.as_str());
                all.extend(settled.cloned());
            }
        }
        let demand = problem.states.demand(all);
        self.demands.insert(origin, demand);
        demand
    }
}
