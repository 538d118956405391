//! Drift in pools with a fixed number of nodes: one new node from the template for each that goes.

use std::{collections::BTreeMap, sync::Arc};

use model::{Pool, PoolName, Resources, Snapshot, StateNode, budget::DisruptionReason};
use scheduler::{Choice, Launch};

use crate::{
    Candidate, Command, Ledger, Method,
    prices::cheapest,
    settings::Scene,
    stay::{Stay, Why},
};

const REASON: DisruptionReason = DisruptionReason::Drifted;

/// One command for each of these nodes in their order, as far as the budgets reach and the pool's limit on nodes leaves room
/// for the replacement beside it.
pub(crate) fn decide(scene: Scene<'_>, drifted: &[&Candidate], ledger: &mut Ledger) -> (Vec<Command>, Vec<Stay>) {
    let mut pools: BTreeMap<&PoolName, Vec<&Candidate>> = BTreeMap::new();
    for candidate in drifted {
        pools.entry(&candidate.pool.name).or_default().push(candidate);
    }
    let (mut commands, mut stays) = (Vec::new(), Vec::new());
    for (name, drifted) in pools {
        let pool = &drifted[0].pool;
        let replacement = replacement(scene, pool);
        let mut room = room(scene.snapshot, pool);
        for candidate in drifted {
            let why = match &replacement {
                Err(why) => why.clone(),
                Ok(_) if room == Some(0) => Why::NoSpare {
                    pool: name.clone(),
                    limit: pool.node_limit().unwrap_or_default(),
                },
                Ok(_) if !ledger.take(name, REASON) => ledger.refusal(name, REASON),
                Ok(launch) => {
                    room = room.map(|room| room - 1);
                    commands.push(Command {
                        method: Method::StaticDrift,
                        nodes: vec![candidate.key().clone()],
                        replacements: vec![launch.clone()],
                        placements: Vec::new(),
                        pods: candidate.pods.len(),
                        saving: candidate.price - launch.choice.price,
                        scores: Vec::new(),
                    });
                    continue;
                }
            };
            stays.push(Stay {
                node: candidate.key().clone(),
                why,
            });
        }
    }
    (commands, stays)
}

/// What takes the place of any one of the pool's nodes. Nothing while the pool has more of them than it should: those that
/// are too many go first.
fn replacement(scene: Scene<'_>, pool: &Pool) -> Result<Launch, Why> {
    let staying = machines(scene.snapshot, pool).filter(|machine| !machine.is_leaving());
    let (nodes, replicas) = (staying.count() as u64, pool.replicas.unwrap_or(0));
    let name = || pool.name.clone();
    if i64::try_from(nodes).is_ok_and(|nodes| nodes > replicas) {
        return Err(Why::Surplus {
            pool: name(),
            nodes,
            replicas,
        });
    }
    from_template(scene, pool).ok_or_else(|| Why::NothingSold { pool: name() })
}

/// How many nodes the pool may have beside those that it has; as many as one likes without a limit.
fn room(snapshot: &Snapshot, pool: &Pool) -> Option<u64> {
    let there = || machines(snapshot, pool).count() as u64;
    pool.node_limit().map(|limit| limit.saturating_sub(there()))
}

fn machines<'s>(snapshot: &'s Snapshot, pool: &'s Pool) -> impl Iterator<Item = &'s Arc<StateNode>> {
    let managed = snapshot.nodes.values().filter(|machine| machine.is_managed());
    managed.filter(|machine| machine.pool().as_ref() == Some(&pool.name))
}

/// A node straight from the template: which of the pool's instance types it is, is left to the cloud.
fn from_template(scene: Scene<'_>, pool: &Pool) -> Option<Launch> {
    let requirements = &pool.template.requirements;
    let catalog = scene.snapshot.catalogs.get(&pool.name)?;
    let mut sold: Vec<_> = catalog
        .iter()
        .filter(|kind| kind.requirements.overlaps(requirements))
        .filter_map(|kind| Some((kind, cheapest(kind, requirements)?)))
        .collect();
    sold.sort_by(|(a, x), (b, y)| x.price.total_cmp(&y.price).then_with(|| a.name.cmp(&b.name)));
    let (first, offering) = sold.first()?;
    Some(Launch {
        pool: pool.name.clone(),
        requirements: Arc::new(requirements.clone()),
        choice: Choice {
            instance_type: first.name.clone(),
            zone: offering.zone.clone(),
            capacity_type: offering.capacity_type,
            price: offering.price,
        },
        instance_types: sold.iter().map(|(kind, _)| kind.name.clone()).collect(),
        requests: Resources::default(),
        pods: Vec::new(),
        labels: Arc::new(pool.claim_labels(requirements, &scene.snapshot.vocabulary)),
        min_values_relaxed: false,
        device_drivers: Default::default(),
    })
}
