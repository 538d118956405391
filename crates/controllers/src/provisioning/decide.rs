//! One round of the solver, and what follows from its plan.

use std::collections::BTreeMap;

use model::{NodeKey, PodKey, PoolName, Snapshot};
use scheduler::{EffectiveZone, Launch, Placement, Refusal, Round, Violation, guard, solve};

/// What a round comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub launches: Vec<Launch>,
    /// Launches that their pool has no room for any more.
    pub over_limit: Vec<PoolName>,
    /// Machines that pods are on their way to.
    pub placements: Vec<Placement>,
    pub refused: BTreeMap<PodKey, Refusal>,
    /// Rules of the cluster that the plan would have broken. The parts at fault are not in the decision.
    pub broken: Vec<Violation>,
    /// How many pending pods can only go to which zone.
    pub zones: BTreeMap<EffectiveZone, usize>,
}

impl Decision {
    /// Machines that real pods are on their way to.
    pub fn nominated<'a>(&'a self, snapshot: &Snapshot) -> impl Iterator<Item = &'a NodeKey> {
        let is_real = |key: &PodKey| snapshot.pods.get(key).is_none_or(|pod| !pod.is_virtual());
        self.placements
            .iter()
            .filter(move |placement| placement.pods.iter().any(is_real))
            .map(|placement| &placement.node)
    }
}

/// Guarantees: nothing is launched for a pool that uses more than its limits already, and nothing that would break a
/// rule of the cluster.
pub fn decide(snapshot: &Snapshot, round: &Round) -> Decision {
    let plan = solve(snapshot, round);
    let (plan, broken) = guard(snapshot, plan);
    debug_assert!(broken.is_empty(), "a plan survives its audit, but: {broken:?}\n{plan}");
    // Asked once for each pool: the answer looks at every node.
    let mut room: BTreeMap<PoolName, bool> = BTreeMap::new();
    for launch in &plan.launches {
        room.entry(launch.pool.clone())
            .or_insert_with_key(|pool| has_room(snapshot, pool));
    }
    let (launches, over): (Vec<_>, Vec<_>) = plan.launches.into_iter().partition(|launch| room[&launch.pool]);
    Decision {
        launches,
        over_limit: over.into_iter().map(|launch| launch.pool).collect(),
        placements: plan.placements,
        refused: plan.refusals,
        broken,
        zones: plan.zones,
    }
}

fn has_room(snapshot: &Snapshot, pool: &PoolName) -> bool {
    let Some(limits) = snapshot.pools.get(pool).map(|pool| &pool.limits) else {
        return false;
    };
    let usage = snapshot.pool_usage(pool);
    limits.iter().all(|(name, limit)| usage.get(name.as_str()) <= limit)
}
