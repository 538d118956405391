//! A pool as something to launch from: its requirements, what it can still buy, and the daemons that come along.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{
    CapacityType, InstanceType, LabelValue, Offering, Pool, Quantity, Requirement, Requirements, ResourceName,
    Resources, Snapshot, StateNode,
    pod::{HostPort, PodShape},
    requirements::AllowUndefined,
    vocabulary,
};

use crate::{
    refusal::{Ineligible, PoolRefusal},
    rules::daemon_runs_on,
};

/// A pool that can be launched from, or the reason why not.
pub(crate) struct Template<'a> {
    pub pool: &'a Pool,
    /// What every machine of the pool will be, with stand-ins for what only a running node has.
    pub requirements: Requirements,
    /// What the pool's own requirements leave on sale.
    pub shapes: Vec<Shape<'a>>,
    /// How much of each limited resource may still be launched.
    pub left: Resources,
    /// Set when nothing can be launched, whatever the pod.
    pub barred: Option<PoolRefusal>,
}

/// An instance type together with the daemons that would run on it.
pub(crate) struct Shape<'a> {
    pub kind: &'a InstanceType,
    /// What daemons take.
    pub daemons: Resources,
    pub daemon_ports: Vec<HostPort>,
    /// What is left for pods under the offerings without overrides.
    room: Resources,
    overridden: bool,
}

/// The name a planned machine goes by. No node has it, so that nothing can be pinned to it.
const PLANNED_HOST: &str = "planned";

/// Offerings that this solver buys. Reservations need bookkeeping across launches, without which they would be
/// overbooked.
pub(crate) fn on_sale<'a>(
    kind: &'a InstanceType,
    requirements: &'a Requirements,
) -> impl Iterator<Item = &'a Offering> {
    kind.offerings_within(requirements)
        .filter(|offering| offering.capacity_type != CapacityType::Reserved)
}

impl<'a> Shape<'a> {
    fn new(kind: &'a InstanceType, daemons: Resources, daemon_ports: Vec<HostPort>) -> Self {
        let room = kind.allocatable().clone().minus(&daemons);
        let overridden = kind
            .available()
            .any(|o| o.capacity_override.is_some() || o.overhead_override.is_some());
        Self {
            kind,
            daemons,
            daemon_ports,
            room,
            overridden,
        }
    }

    /// The room for pods under the roomiest offering by this measure, or nothing when nothing is on sale.
    pub fn most(&self, requirements: &Requirements, measure: impl Fn(&Resources) -> usize) -> Option<usize> {
        if !self.overridden {
            return on_sale(self.kind, requirements).next().map(|_| measure(&self.room));
        }
        on_sale(self.kind, requirements)
            .map(|offering| measure(&self.room_under(offering)))
            .max()
    }

    pub fn room_under(&self, offering: &Offering) -> Resources {
        self.kind.allocatable_under(offering).minus(&self.daemons)
    }

    /// What is left for pods, whichever offering is bought.
    pub fn room(&self) -> &Resources {
        &self.room
    }
}

/// All pools in the order in which they are asked: by weight, then by name from the end of the alphabet.
pub(crate) fn templates(snapshot: &Snapshot) -> Vec<Template<'_>> {
    let mut pools: Vec<&Pool> = snapshot.pools.values().map(AsRef::as_ref).collect();
    pools.sort_by_key(|pool| (Reverse(pool.weight), Reverse(&pool.name)));
    let daemons: Vec<&PodShape> = snapshot.daemons.values().map(|daemon| daemon.shape.as_ref()).collect();
    pools
        .into_iter()
        .map(|pool| template(snapshot, pool, &daemons))
        .collect()
}

fn template<'a>(snapshot: &'a Snapshot, pool: &'a Pool, daemons: &[&PodShape]) -> Template<'a> {
    let requirements = planned_requirements(pool);
    let mut template = Template {
        pool,
        requirements,
        shapes: Vec::new(),
        left: Resources::default(),
        barred: ineligible(snapshot, pool),
    };
    if template.barred.is_some() {
        return template;
    }
    let on_pool = daemons_of(snapshot, pool, &template.requirements, daemons);
    let catalog = snapshot
        .catalogs
        .get(&pool.name)
        .into_iter()
        .flat_map(|catalog| catalog.iter());
    let sold = catalog.filter(|kind| {
        kind.requirements.overlaps(&template.requirements) && on_sale(kind, &template.requirements).next().is_some()
    });
    template.shapes = sold.map(|kind| shape(kind, &on_pool)).collect();
    if template.shapes.is_empty() {
        template.barred = Some(PoolRefusal::NoInstanceTypes);
    }
    if !pool.limits.is_empty() {
        let used = usage(snapshot, pool);
        template.left = pool
            .limits
            .iter()
            .map(|(name, most)| (name.clone(), most.saturating_sub(used.get(name.as_str()))))
            .collect();
    }
    template
}

fn ineligible(snapshot: &Snapshot, pool: &Pool) -> Option<PoolRefusal> {
    let reason = if pool.is_static() {
        Ineligible::Static
    } else if pool.deleting.is_some() {
        Ineligible::Deleting
    } else if !pool.ready {
        Ineligible::NotReady
    } else if !snapshot.catalogs.contains_key(&pool.name) {
        Ineligible::NoCatalog
    } else {
        return None;
    };
    Some(PoolRefusal::NotEligible(reason))
}

/// The template's requirements and labels. Daemons that select on a node's being registered or initialised will run on
/// the machine one day, so these labels are there while planning.
fn planned_requirements(pool: &Pool) -> Requirements {
    let template = &pool.template;
    let mut all = template.requirements.clone();
    all.merge(&Requirements::from_labels(&template.labels));
    let fixed = [
        (vocabulary::NODEPOOL, pool.name.as_str()),
        (template.class.label().as_str(), template.class.name.as_str()),
        (vocabulary::REGISTERED, "true"),
        (vocabulary::INITIALIZED, "true"),
        (vocabulary::HOSTNAME, PLANNED_HOST),
    ]
    .map(|(key, value)| Requirement::one_of(key, [LabelValue::from(value)]));
    all.extend(fixed);
    all
}

/// What was added to the requirements for planning and is no part of a claim.
pub(crate) const STAND_INS: [&str; 3] = [vocabulary::REGISTERED, vocabulary::INITIALIZED, vocabulary::HOSTNAME];

/// Each daemon that runs on machines of this pool, with the ways it can be content there.
fn daemons_of<'d>(
    snapshot: &Snapshot,
    pool: &Pool,
    requirements: &Requirements,
    daemons: &[&'d PodShape],
) -> Vec<(&'d PodShape, Vec<Requirements>)> {
    let allow = AllowUndefined::WellKnown(&snapshot.vocabulary);
    let runs = daemons.iter().filter(|daemon| {
        !daemon.claims_devices() && daemon_runs_on(daemon, &pool.template.taints, requirements, allow)
    });
    runs.map(|daemon| {
        let mut ways = Requirements::alternatives_of_pod(daemon);
        ways.retain(|way| requirements.is_compatible(way, allow));
        (*daemon, ways)
    })
    .collect()
}

fn shape<'a>(kind: &'a InstanceType, daemons: &[(&PodShape, Vec<Requirements>)]) -> Shape<'a> {
    let mut requests = Resources::default();
    let mut ports = Vec::new();
    for (daemon, ways) in daemons {
        if ways.iter().any(|way| kind.requirements.overlaps(way)) {
            requests.add_assign(&daemon.requests);
            ports.extend(daemon.host_ports.iter().cloned());
        }
    }
    Shape::new(kind, requests, ports)
}

/// What the pool's machines have. A machine whose instance is not known yet counts as the largest it can become.
fn usage(snapshot: &Snapshot, pool: &Pool) -> Resources {
    let machines = snapshot.nodes.values().filter(|machine| !machine.is_leaving());
    let mut sum = Resources::default();
    for machine in machines.filter(|machine| machine.pool().as_ref() == Some(&pool.name)) {
        sum.add_assign(&machine.capacity());
        if is_superposed(machine) {
            let mut worst = Resources::default();
            for kind in possible_kinds(snapshot, machine) {
                worst.max_with(&kind.capacity);
            }
            sum.add_assign(&worst);
        }
    }
    sum
}

/// Whether the machine has not been launched yet, so that its claim says what it may be and nobody what it is.
pub(crate) fn is_superposed(machine: &StateNode) -> bool {
    machine.node.is_none() && machine.claim.as_ref().is_some_and(|claim| claim.capacity.is_empty())
}

/// The instance types that a machine may still become. What is on sale does not matter: the launch is under way.
pub(crate) fn possible_kinds<'a>(snapshot: &'a Snapshot, machine: &'a StateNode) -> Vec<&'a InstanceType> {
    let catalog = machine.pool().and_then(|pool| snapshot.catalogs.get(&pool));
    let kinds = catalog
        .into_iter()
        .flat_map(|catalog| catalog.iter().map(AsRef::as_ref));
    let admitted = |kind: &&InstanceType| {
        machine.claim.as_ref().is_some_and(|claim| {
            kind.requirements.overlaps(&claim.requirements)
                && kind
                    .offerings
                    .iter()
                    .any(|offering| offering.admitted_by(&claim.requirements))
        })
    };
    kinds.filter(admitted).collect()
}

/// The least room that a machine which is still open will have for pods.
pub(crate) fn least_room(snapshot: &Snapshot, machine: &StateNode) -> Option<Resources> {
    let pool = snapshot.pools.get(&machine.pool()?)?;
    let daemons: Vec<&PodShape> = snapshot.daemons.values().map(|daemon| daemon.shape.as_ref()).collect();
    let on_pool = daemons_of(snapshot, pool, &planned_requirements(pool), &daemons);
    let rooms = possible_kinds(snapshot, machine)
        .into_iter()
        .map(|kind| shape(kind, &on_pool).room);
    rooms.reduce(|mut least, room| {
        least.min_with(&room);
        least
    })
}

impl Template<'_> {
    /// Whether a machine of this capacity is within what the limits leave.
    pub fn within_limits(&self, capacity: &Resources) -> bool {
        self.left
            .iter()
            .all(|(name, left)| *name == ResourceName::NODES || capacity.get(name.as_str()) <= left)
    }

    /// Whether the limits leave room for one more node.
    pub fn has_node_left(&self) -> bool {
        !self.left.lists(ResourceName::NODES.as_str())
            || self.left.get(ResourceName::NODES.as_str()) >= Quantity::from_int(1)
    }

    /// What a machine that may become any of these counts against the limits: the worst of each resource, and a node.
    pub fn charge(&self, shapes: &[usize]) -> Resources {
        let mut worst: BTreeMap<ResourceName, Quantity> = BTreeMap::new();
        for (name, _) in self.left.iter() {
            let most = match name {
                name if *name == ResourceName::NODES => Quantity::from_int(1),
                name => {
                    let amounts = shapes
                        .iter()
                        .map(|index| self.shapes[*index].kind.capacity.get(name.as_str()));
                    amounts.max().unwrap_or(Quantity::ZERO)
                }
            };
            worst.insert(name.clone(), most);
        }
        worst.into_iter().collect()
    }
}
