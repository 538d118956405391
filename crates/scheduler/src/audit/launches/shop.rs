//! What launches can buy, worked out once for launches that ask alike.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    InstanceType, InstanceTypeName, LabelKey, LabelValue, Requirement, Requirements, Resources, Snapshot,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};
use rustc_hash::FxHashMap;

use super::{
    super::{hard, ledger::Kinds},
    least,
};
use crate::plan::Launch;

/// What launches ask for, the instance types aside.
type Order<'a> = (&'a str, Vec<&'a Requirement>);

/// Everything that was looked at so far.
pub(in super::super) struct Shop<'a, 'p> {
    snapshot: &'a Snapshot,
    kinds: Kinds<'a>,
    orders: FxHashMap<Order<'p>, usize>,
    by_value: FxHashMap<(usize, &'p [InstanceTypeName]), usize>,
    /// Plans share what is the same, so that most launches are recognised without a closer look.
    by_pointer: FxHashMap<(&'p str, *const Requirements, *const InstanceTypeName), usize>,
    listings: Vec<Listing<'a>>,
}

/// The instance types that a launch lists.
pub(in super::super) struct Listing<'a> {
    pub goods: Vec<Goods<'a>>,
    /// Names that nobody sells to this launch.
    pub unsold: Vec<InstanceTypeName>,
    /// All names in alphabetical order.
    pub sorted: Vec<&'a str>,
    /// Different sets of ports that daemons take.
    pub daemon_ports: Vec<Vec<HostPort>>,
    /// What is left for pods on each of them. Nothing when room depends on the offering.
    pub common: Option<Resources>,
}

/// One instance type as a launch would get it.
pub(in super::super) struct Goods<'a> {
    pub kind: &'a InstanceType,
    /// What daemons ask for.
    pub daemons: Resources,
    /// What the machine has, under each different kind of offering.
    pub rooms: Vec<Resources>,
}

impl<'a, 'p> Shop<'a, 'p> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            kinds: Kinds::new(snapshot),
            orders: FxHashMap::default(),
            by_value: FxHashMap::default(),
            by_pointer: FxHashMap::default(),
            listings: Vec::new(),
        }
    }

    pub fn listing(&mut self, launch: &'p Launch) -> &Listing<'a> {
        let pointers = (
            launch.pool.as_str(),
            Arc::as_ptr(&launch.requirements),
            launch.instance_types.as_ptr(),
        );
        let number = match self.by_pointer.get(&pointers) {
            Some(known) => *known,
            None => self.number(launch),
        };
        self.by_pointer.insert(pointers, number);
        &self.listings[number]
    }

    fn number(&mut self, launch: &'p Launch) -> usize {
        let rest = launch.requirements.iter();
        let rest = rest
            .filter(|requirement| requirement.key != vocabulary::INSTANCE_TYPE)
            .collect();
        let next = self.orders.len();
        let order = *self.orders.entry((launch.pool.as_str(), rest)).or_insert(next);
        let key = (order, &*launch.instance_types);
        if let Some(known) = self.by_value.get(&key) {
            return *known;
        }
        let listing = self.list(launch);
        self.listings.push(listing);
        self.by_value.insert(key, self.listings.len() - 1);
        self.listings.len() - 1
    }

    fn list(&mut self, launch: &'p Launch) -> Listing<'a> {
        let snapshot = self.snapshot;
        let daemons = daemons(snapshot, launch);
        let mut listing = Listing {
            goods: Vec::with_capacity(launch.instance_types.len()),
            unsold: Vec::new(),
            sorted: Vec::new(),
            daemon_ports: Vec::new(),
            common: None,
        };
        let mut rest = Requirements::clone(&launch.requirements);
        rest.remove(vocabulary::INSTANCE_TYPE);
        for name in launch.instance_types.iter() {
            let Some(kind) = self.kinds.get(&launch.pool, name) else {
                listing.unsold.push(name.clone());
                continue;
            };
            listing.sorted.push(kind.name.as_str());
            let (goods, ports) = goods(kind, &rest, &daemons);
            if goods.rooms.is_empty() {
                listing.unsold.push(name.clone());
            }
            if !ports.is_empty() && !listing.daemon_ports.contains(&ports) {
                listing.daemon_ports.push(ports);
            }
            listing.goods.push(goods);
        }
        listing.sorted.sort_unstable();
        let one_room = listing.goods.iter().all(|goods| goods.rooms.len() == 1);
        if one_room {
            let rooms = listing
                .goods
                .iter()
                .map(|goods| goods.rooms[0].clone().minus(&goods.daemons));
            listing.common = least(rooms);
        }
        listing
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
) -> (Goods<'a>, Vec<HostPort>) {
    let mut goods = Goods {
        kind,
        daemons: Resources::default(),
        rooms: Vec::new(),
    };
    let mut ports = Vec::new();
    for (daemon, ways) in daemons {
        if ways.iter().any(|way| kind.requirements.overlaps(way)) {
            goods.daemons.add_assign(&daemon.requests);
            ports.extend(daemon.host_ports.iter().cloned());
        }
    }
    if kind.requirements.overlaps(rest) {
        for offering in kind.offerings_within(rest) {
            let room = kind.allocatable_under(offering);
            if !goods.rooms.contains(&room) {
                goods.rooms.push(room);
            }
        }
    }
    (goods, ports)
}

/// The values that a label of the machine may have: what is listed, or what the types and their offerings bring.
pub(in super::super) fn values_of<'a>(
    snapshot: &'a Snapshot,
    launch: &'a Launch,
    key: &LabelKey,
) -> BTreeSet<&'a LabelValue> {
    let own = launch.requirements.get(key.as_str());
    let kinds = launch
        .instance_types
        .iter()
        .filter_map(|name| snapshot.instance_type(&launch.pool, name));
    let mut values = BTreeSet::new();
    for kind in kinds {
        let bought = kind.offerings_within(&launch.requirements);
        let labels = bought.map(|offering| offering.requirements.get(key.as_str()).listed());
        let by_offering: Vec<&LabelValue> = labels.flatten().flatten().collect();
        let by_kind = kind.requirements.get(key.as_str()).listed().into_iter().flatten();
        if by_offering.is_empty() {
            values.extend(by_kind.filter(|value| own.has(value.as_str())));
        } else {
            values.extend(by_offering);
        }
    }
    values
}
