//! What launches can buy, worked out once for launches that ask alike.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    InstanceType, InstanceTypeName, LabelValue, Quantity, Requirement, Requirements, ResourceName, Resources, Snapshot,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{hard, ledger::Kinds};
use crate::plan::{Launch, Plan};

/// What launches ask for, the instance types aside.
type Order<'a> = (&'a str, Vec<&'a Requirement>);

/// Everything that was looked at so far.
pub(in super::super) struct Shop<'a, 'p> {
    snapshot: &'a Snapshot,
    kinds: Kinds<'a>,
    /// Resources that any instance type has.
    resources: Vec<ResourceName>,
    orders: FxHashMap<Order<'p>, usize>,
    stalls: Vec<Stall<'a>>,
    by_value: FxHashMap<(usize, &'p [InstanceTypeName]), usize>,
    /// Plans share what is the same, so that most launches are recognised without a closer look.
    by_pointer: FxHashMap<(&'p str, *const Requirements, *const InstanceTypeName), (usize, bool)>,
    listings: Vec<Listing>,
}

/// The goods for one order, as far as they were asked for.
struct Stall<'a> {
    rest: Requirements,
    daemons: Vec<(&'a PodShape, Vec<Requirements>)>,
    numbers: FxHashMap<&'a str, usize>,
    goods: Vec<Goods<'a>>,
}

/// The instance types that a launch lists.
struct Listing {
    stall: usize,
    goods: Vec<usize>,
    /// Names that nobody sells to this launch.
    unsold: Vec<InstanceTypeName>,
    /// Different sets of ports that daemons take.
    daemon_ports: Vec<Vec<HostPort>>,
    /// What is left for pods on each of them, by resource. Nothing when room depends on the offering.
    common: Option<Vec<i128>>,
}

/// One instance type as a launch would get it.
pub(in super::super) struct Goods<'a> {
    pub kind: &'a InstanceType,
    /// What daemons ask for at most, whichever of the offerings is bought.
    pub daemons: Resources,
    /// What the machine has, under each different kind of offering.
    pub rooms: Vec<Resources>,
    daemon_ports: Vec<HostPort>,
    /// What is left for pods, by resource. Nothing when room depends on the offering.
    left: Option<Vec<i128>>,
}

/// What a launch may become.
pub(in super::super) struct Display<'s, 'a> {
    listing: &'s Listing,
    stall: &'s Stall<'a>,
    resources: &'s [ResourceName],
    /// The claim admits exactly the types that are listed.
    pub exact: bool,
}

impl<'s, 'a> Display<'s, 'a> {
    pub fn goods(&self) -> impl Iterator<Item = &'s Goods<'a>> {
        let (goods, listing) = (&self.stall.goods, self.listing);
        listing.goods.iter().map(move |number| &goods[*number])
    }

    pub fn unsold(&self) -> &'s [InstanceTypeName] {
        &self.listing.unsold
    }

    pub fn daemon_ports(&self) -> &'s [Vec<HostPort>] {
        &self.listing.daemon_ports
    }

    /// Whether every type has room for this for certain. Otherwise each has to be looked at.
    pub fn surely_holds(&self, asked: &Resources) -> bool {
        let Some(common) = &self.listing.common else {
            return false;
        };
        let room = |name: &ResourceName| {
            self.resources
                .iter()
                .position(|known| known == name)
                .map_or(0, |at| common[at])
        };
        common.iter().all(|left| *left >= 0) && asked.iter().all(|(name, amount)| amount.nanos() <= room(name))
    }
}

impl<'a, 'p> Shop<'a, 'p> {
    pub fn new(snapshot: &'a Snapshot, plan: &Plan) -> Self {
        let kinds = snapshot.catalogs.values().flat_map(|catalog| catalog.iter());
        let amounts = kinds.flat_map(|kind| {
            let overrides = kind
                .offerings
                .iter()
                .filter_map(|offering| offering.capacity_override.as_ref());
            overrides.chain([&kind.capacity]).flat_map(Resources::iter)
        });
        let resources: BTreeSet<&ResourceName> = amounts.map(|(name, _)| name).collect();
        Self {
            snapshot,
            kinds: Kinds::new(snapshot, plan),
            resources: resources.into_iter().cloned().collect(),
            orders: FxHashMap::default(),
            stalls: Vec::new(),
            by_value: FxHashMap::default(),
            by_pointer: FxHashMap::default(),
            listings: Vec::new(),
        }
    }

    pub fn display(&mut self, launch: &'p Launch) -> Display<'_, 'a> {
        let pointers = (
            launch.pool.as_str(),
            Arc::as_ptr(&launch.requirements),
            launch.instance_types.as_ptr(),
        );
        let (number, exact) = match self.by_pointer.get(&pointers) {
            Some(known) => *known,
            None => (self.number(launch), is_exact(launch)),
        };
        self.by_pointer.insert(pointers, (number, exact));
        let listing = &self.listings[number];
        Display {
            listing,
            stall: &self.stalls[listing.stall],
            resources: &self.resources,
            exact,
        }
    }

    fn number(&mut self, launch: &'p Launch) -> usize {
        let rest = launch.requirements.iter();
        let rest = rest
            .filter(|requirement| requirement.key != vocabulary::INSTANCE_TYPE)
            .collect();
        let order = self.orders.entry((launch.pool.as_str(), rest));
        let order = *order.or_insert_with(|| {
            self.stalls.push(Stall::new(self.snapshot, launch));
            self.stalls.len() - 1
        });
        let key = (order, &*launch.instance_types);
        if let Some(known) = self.by_value.get(&key) {
            return *known;
        }
        let listing = self.list(order, launch);
        self.listings.push(listing);
        self.by_value.insert(key, self.listings.len() - 1);
        self.listings.len() - 1
    }

    fn list(&mut self, order: usize, launch: &'p Launch) -> Listing {
        let stall = &mut self.stalls[order];
        let mut listing = Listing {
            stall: order,
            goods: Vec::with_capacity(launch.instance_types.len()),
            unsold: Vec::new(),
            daemon_ports: Vec::new(),
            common: Some(vec![i128::MAX; self.resources.len()]),
        };
        for name in launch.instance_types.iter() {
            let number = match stall.numbers.get(name.as_str()) {
                Some(known) => Some(*known),
                None => self
                    .kinds
                    .get(&launch.pool, name)
                    .map(|kind| stall.add(kind, &self.resources)),
            };
            let Some(number) = number else {
                listing.unsold.push(name.clone());
                continue;
            };
            let goods = &stall.goods[number];
            if goods.rooms.is_empty() {
                listing.unsold.push(name.clone());
            }
            if !goods.daemon_ports.is_empty() && !listing.daemon_ports.contains(&goods.daemon_ports) {
                listing.daemon_ports.push(goods.daemon_ports.clone());
            }
            match (&mut listing.common, &goods.left) {
                (Some(common), Some(left)) => {
                    common
                        .iter_mut()
                        .zip(left)
                        .for_each(|(common, left)| *common = (*common).min(*left));
                }
                (common, _) => *common = None,
            }
            listing.goods.push(number);
        }
        listing
    }
}

/// Whether the claim of a launch admits what the launch lists, and nothing else.
fn is_exact(launch: &Launch) -> bool {
    let listed: FxHashSet<&str> = launch.instance_types.iter().map(InstanceTypeName::as_str).collect();
    let admitted = launch.requirements.get(vocabulary::INSTANCE_TYPE).listed();
    admitted.is_none_or(|admitted| {
        admitted.len() == listed.len() && admitted.iter().all(|value| listed.contains(value.as_str()))
    })
}

impl<'a> Stall<'a> {
    fn new(snapshot: &'a Snapshot, launch: &Launch) -> Self {
        let mut rest = Requirements::clone(&launch.requirements);
        rest.remove(vocabulary::INSTANCE_TYPE);
        Self {
            rest,
            daemons: daemons(snapshot, launch),
            numbers: FxHashMap::default(),
            goods: Vec::new(),
        }
    }

    fn add(&mut self, kind: &'a InstanceType, resources: &[ResourceName]) -> usize {
        let goods = goods(kind, &self.rest, &self.daemons, resources);
        self.goods.push(goods);
        self.numbers.insert(kind.name.as_str(), self.goods.len() - 1);
        self.goods.len() - 1
    }
}

/// Daemons that may run on the machine, with the ways they can be content there.
fn daemons<'a>(snapshot: &'a Snapshot, launch: &Launch) -> Vec<(&'a PodShape, Vec<Requirements>)> {
    let mut labels = Requirements::clone(&launch.requirements);
    labels.remove(vocabulary::INSTANCE_TYPE);
    labels.extend([vocabulary::REGISTERED, vocabulary::INITIALIZED].map(|key| Requirement::one_of(key, ["true"])));
    let allow = AllowUndefined::WellKnown(&snapshot.vocabulary);
    let taints = snapshot
        .pools
        .get(&launch.pool)
        .map_or(&[][..], |pool| &pool.template.taints);
    let shapes = snapshot.daemons.values().map(|daemon| daemon.shape.as_ref());
    let running = shapes
        .filter(|daemon| !daemon.claims_devices() && hard(taints).all(|taint| daemon.tolerates(taint)))
        .map(|daemon| {
            let mut ways = Requirements::alternatives_of_pod(daemon);
            ways.retain(|way| labels.is_compatible(way, allow));
            (daemon, ways)
        });
    running.filter(|(_, ways)| !ways.is_empty()).collect()
}

fn goods<'a>(
    kind: &'a InstanceType,
    rest: &Requirements,
    daemons: &[(&PodShape, Vec<Requirements>)],
    resources: &[ResourceName],
) -> Goods<'a> {
    let mut goods = Goods {
        kind,
        daemons: Resources::default(),
        rooms: Vec::new(),
        daemon_ports: Vec::new(),
        left: None,
    };
    let mut coming: Vec<(&PodShape, Vec<&Requirements>)> = Vec::new();
    for (daemon, ways) in daemons {
        let ways: Vec<&Requirements> = ways.iter().filter(|way| kind.requirements.overlaps(way)).collect();
        if !ways.is_empty() {
            coming.push((daemon, ways));
        }
    }
    let admitted = |offering: &&model::Offering| !coming.is_empty() && offering.admitted_by(rest);
    for offering in kind.offerings.iter().filter(admitted) {
        let mut here = Resources::default();
        let content = |ways: &[&Requirements]| ways.iter().any(|way| offering.requirements.overlaps(way));
        for (daemon, _) in coming.iter().filter(|(_, ways)| content(ways)) {
            here.add_assign(&daemon.requests);
            for port in &daemon.host_ports {
                if !goods.daemon_ports.contains(port) {
                    goods.daemon_ports.push(port.clone());
                }
            }
        }
        // Everything has room beside the daemons of each offering if it has beside the most of each resource.
        goods.daemons.max_with(&here);
    }
    if kind.requirements.overlaps(rest) {
        for offering in kind.offerings_within(rest) {
            let room = kind.allocatable_under(offering);
            if !goods.rooms.contains(&room) {
                goods.rooms.push(room);
            }
        }
    }
    // What daemons want and nobody has is missing on every type, which only a closer look tells.
    let known = |(name, amount): (&ResourceName, Quantity)| amount.is_zero() || resources.contains(name);
    if let ([room], true) = (goods.rooms.as_slice(), goods.daemons.iter().all(known)) {
        let left = |name: &ResourceName| {
            let (has, daemons) = (room.get(name.as_str()), goods.daemons.get(name.as_str()));
            has.nanos().saturating_sub(daemons.nanos())
        };
        goods.left = Some(resources.iter().map(left).collect());
    }
    goods
}

/// The values that a label of the machine may have: what is listed, or what the types and their offerings bring.
pub(in super::super) fn values_of<'a>(kinds: &Kinds<'a>, launch: &'a Launch, key: &str) -> BTreeSet<&'a LabelValue> {
    let own = launch.requirements.get(key);
    let kinds = launch
        .instance_types
        .iter()
        .filter_map(|name| kinds.get(&launch.pool, name));
    let mut values = BTreeSet::new();
    for kind in kinds {
        let bought = kind.offerings_within(&launch.requirements);
        let labels = bought.map(|offering| offering.requirements.get(key).listed());
        let by_offering: Vec<&LabelValue> = labels.flatten().flatten().collect();
        let by_kind = kind.requirements.get(key).listed().into_iter().flatten();
        if by_offering.is_empty() {
            values.extend(by_kind.filter(|value| own.has(value.as_str())));
        } else {
            values.extend(by_offering);
        }
    }
    values
}
