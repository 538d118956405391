//! Drift in pools with a fixed number of nodes: one new node from the template for each that goes.

use std::{collections::BTreeMap, sync::Arc};

use model::{Pool, PoolName, ResourceName, Resources, Snapshot, budget::DisruptionReason};
use scheduler::{Choice, Launch};

use super::has_drifted;
use crate::{
    Candidate, Command, Ledger, Method,
    prices::cheapest,
    settings::Scene,
    stay::{Stay, Why},
};

/// One command for each drifted node, as far as the budgets reach and the pool's limit on nodes leaves room for the
/// replacement beside it.
pub(crate) fn decide(scene: Scene<'_>, candidates: &[Candidate], ledger: &mut Ledger) -> (Vec<Command>, Vec<Stay>) {
    let mut pools: BTreeMap<&PoolName, Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates {
        if candidate.pool.is_static() && has_drifted(candidate) {
            pools.entry(&candidate.pool.name).or_default().push(candidate);
        }
    }
    let (mut commands, mut stays) = (Vec::new(), Vec::new());
    for (name, mut drifted) in pools {
        drifted.sort_by_key(|candidate| {
            let since = candidate.node.claim.as_ref().and_then(|claim| claim.drifted_at);
            (since, candidate.key().clone())
        });
        let mut spare = spare(scene.snapshot, &drifted[0].pool);
        for candidate in drifted {
            let stay = |why| Stay {
                node: candidate.key().clone(),
                why,
            };
            let Some(launch) = from_template(scene, &candidate.pool).filter(|_| spare > 0) else {
                stays.push(stay(Why::NoSpare { pool: name.clone() }));
                continue;
            };
            if !ledger.take(name, DisruptionReason::Drifted) {
                stays.push(stay(Why::Budget {
                    pool: name.clone(),
                    reason: DisruptionReason::Drifted,
                }));
                continue;
            }
            spare -= 1;
            commands.push(Command {
                method: Method::StaticDrift,
                nodes: vec![candidate.key().clone()],
                saving: candidate.price - launch.choice.price,
                replacements: vec![launch],
                placements: Vec::new(),
                pods: candidate.pods.len(),
                scores: Vec::new(),
            });
        }
    }
    (commands, stays)
}

/// How many nodes the pool may have beside those that it has. None while it has more than it should: those that are
/// too many go first.
fn spare(snapshot: &Snapshot, pool: &Pool) -> i64 {
    let machines = snapshot.nodes.values().filter(|machine| machine.is_managed());
    let of_pool = machines.filter(|machine| machine.pool().as_ref() == Some(&pool.name));
    let (mut all, mut staying) = (0i64, 0i64);
    for machine in of_pool {
        all += 1;
        staying += i64::from(!machine.is_leaving());
    }
    let replicas = pool.replicas.unwrap_or(0);
    if replicas == 0 || staying > replicas {
        return 0;
    }
    let nodes = ResourceName::NODES;
    if !pool.limits.lists(nodes.as_str()) {
        return i64::MAX;
    }
    let one = model::Quantity::from_int(1).nanos();
    let limit = i64::try_from(pool.limits.get(nodes.as_str()).nanos() / one).unwrap_or(i64::MAX);
    (limit - all).max(0)
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
