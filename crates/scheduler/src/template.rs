//! A pool as something to launch from: its requirements, what it can still buy, and the daemons that come along.

use std::cmp::Reverse;

use model::{
    CapacityType, InstanceType, LabelKey, LabelValue, Offering, Pool, Requirement, Requirements, Resources, Snapshot,
    StateNode, pod::PodShape, vocabulary,
};

use crate::{
    amounts::Dims,
    crew::Crew,
    limits::Limits,
    market::{Market, Shape},
    refusal::{Ineligible, Lacking, PoolRefusal},
    reservations::Reservations,
    round::{MinValuesPolicy, Options},
    states::{State, States},
    variety::Variety,
};

/// A pool that can be launched from, or the reason why not.
#[derive(Debug)]
pub(crate) struct Template<'a> {
    pub pool: &'a Pool,
    /// What every machine of the pool will be, with stand-ins for what only a running node has.
    pub base: State,
    pub market: Market<'a>,
    pub limits: Option<Limits>,
    /// How much variety the pool demands.
    pub variety: Variety,
    /// Some of its offerings are reservations.
    pub has_reservations: bool,
    /// Set when nothing can be launched, whatever the pod.
    pub barred: Option<PoolRefusal>,
    /// For each label of the topology, how dear each domain is: the cheapest has rank zero.
    pub ranks: Vec<Vec<usize>>,
}

/// The name a planned machine goes by. No node has it, so that nothing can be pinned to it.
const PLANNED_HOST: &str = "planned";

/// What was added to the requirements for planning and is no part of a claim.
pub(crate) const STAND_INS: [&str; 3] = [vocabulary::REGISTERED, vocabulary::INITIALIZED, vocabulary::HOSTNAME];

/// Pools in the order in which they are asked: by weight, then by name from the end of the alphabet.
pub(crate) fn in_order(snapshot: &Snapshot) -> Vec<&Pool> {
    let mut pools: Vec<&Pool> = snapshot.pools.values().map(AsRef::as_ref).collect();
    pools.sort_by_key(|pool| (Reverse(pool.weight), Reverse(&pool.name)));
    pools
}

/// What templates are made from.
pub(crate) struct Workshop<'a, 'w> {
    pub snapshot: &'a Snapshot,
    pub options: &'w Options,
    pub dims: &'w Dims,
    pub daemons: &'w [&'a PodShape],
}

impl<'a> Workshop<'a, '_> {
    pub fn template(&self, pool: &'a Pool, states: &mut States<'a>, reservations: &Reservations<'a>) -> Template<'a> {
        let requirements = planned_requirements(pool);
        let base = states.state(requirements.clone());
        let mut template = Template {
            pool,
            base,
            market: Market::new(Vec::new(), self.dims, &|_| false),
            limits: None,
            variety: Variety::none(),
            has_reservations: false,
            barred: ineligible(self.snapshot, pool),
            ranks: Vec::new(),
        };
        if template.barred.is_some() {
            return template;
        }
        let crew = Crew::new(self.snapshot, pool, &requirements, self.daemons);
        // Where the cloud has to be left a choice of types, it is left the choice of zones as well.
        let demands_variety = requirements.iter().any(|requirement| requirement.min_values.is_some());
        let catalog = self
            .snapshot
            .catalogs
            .get(&pool.name)
            .into_iter()
            .flat_map(|catalog| catalog.iter());
        let shapes = catalog
            .enumerate()
            .map(|(position, kind)| Shape {
                kind,
                position,
                load: crew.on(kind),
                loads: if demands_variety {
                    Vec::new()
                } else {
                    crew.by_offering(kind)
                },
            })
            .collect();
        // Of a reservation without a name nobody can say how much of it is left.
        let buys = |offering: &Offering| {
            offering.capacity_type != CapacityType::Reserved
                || (self.options.reserved_capacity && reservations.id_of(offering).is_some())
        };
        template.market = Market::new(shapes, self.dims, &buys);
        template.variety = Variety::new(&requirements, &template.market.rows);
        let view = template.market.view(states, base).clone();
        if view.rows.is_empty() {
            template.barred = Some(PoolRefusal::NoInstanceTypes);
            return template;
        }
        let short = template.variety.lacking(&view.rows);
        if !short.is_empty() && self.options.min_values_policy == MinValuesPolicy::Strict {
            template.barred = Some(PoolRefusal::MinValues(named(short)));
        }
        for deal in view.deals.iter() {
            template.has_reservations |= reservations.id_of(template.market.deals[deal].offering).is_some();
        }
        let used = usage(self.snapshot, pool);
        template.limits = Limits::new(&pool.limits, &used, &template.market.rows);
        template
    }
}

pub(crate) fn named(short: Vec<(LabelKey, u32, u32)>) -> Vec<Lacking> {
    let named = |(key, wanted, available)| Lacking { key, wanted, available };
    short.into_iter().map(named).collect()
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

/// What the pool's machines have. A machine whose instance is not known yet counts as the largest it can become.
fn usage(snapshot: &Snapshot, pool: &Pool) -> Resources {
    let mut sum = Resources::default();
    if pool.limits.is_empty() {
        return sum;
    }
    let machines = snapshot.nodes.values().filter(|machine| !machine.is_leaving());
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
fn possible_kinds<'a>(snapshot: &'a Snapshot, machine: &'a StateNode) -> Vec<&'a InstanceType> {
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
    let claim = machine.claim.as_ref()?;
    let crew = Crew::new(snapshot, pool, &planned_requirements(pool), &daemons);
    let rooms = possible_kinds(snapshot, machine).into_iter().map(|kind| {
        let daemons = crew.most_within(kind, &claim.requirements);
        kind.allocatable().clone().minus(&daemons)
    });
    rooms.reduce(|mut least, room| {
        least.min_with(&room);
        least
    })
}
