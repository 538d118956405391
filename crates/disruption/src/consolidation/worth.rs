//! What nodes and pods are worth: the price at which a pool's market sells what they have or use.
//!
//! Instance types are priced by their processors and their memory. What a unit of each is worth depends on what the pool's
//! pods ask for: where they need much memory, types with much memory set the price. See [`scheduler::unit_worth`].

use std::{collections::BTreeMap, sync::Arc};

use model::{Pod, PoolName, ResourceName, Resources};

use crate::{Candidate, prices::cheapest, settings::Scene};

/// What a move has to save in an hour, as a share of what the pods are worth that move. They start anew, and whoever they
/// serve notices; where that is repaid within a few hours it is worth it.
pub(crate) const MOVING: f64 = 0.25;

/// Processors and bytes.
type Amounts = [f64; 2];

/// Dollars per unit and hour in every pool.
#[derive(Debug)]
pub(crate) struct Market {
    units: BTreeMap<PoolName, Amounts>,
}

impl Market {
    /// The prices of the pools that these nodes belong to.
    pub fn new(scene: Scene<'_>, candidates: &[Candidate]) -> Self {
        let mut demands: BTreeMap<&PoolName, (&Candidate, Amounts)> = BTreeMap::new();
        for candidate in candidates {
            let (_, demand) = demands
                .entry(&candidate.pool.name)
                .or_insert((candidate, Amounts::default()));
            for (sum, more) in demand.iter_mut().zip(asked(&candidate.pods)) {
                *sum += more;
            }
        }
        let units = demands.into_iter().map(|(name, (one, demand))| {
            let catalog = scene.snapshot.catalogs.get(name);
            let wanted = &one.pool.template.requirements;
            let kinds = catalog.into_iter().flat_map(|catalog| catalog.iter());
            let sold = kinds.filter_map(|kind| {
                wanted.intersects(&kind.requirements).ok()?;
                let offering = cheapest(kind, wanted)?;
                Some((offering.price, amounts(kind.allocatable()).to_vec()))
            });
            let sold: Vec<(f64, Vec<f64>)> = sold.collect();
            let worth = scheduler::unit_worth(&demand, &sold);
            (name.clone(), [worth[0], worth[1]])
        });
        Self { units: units.collect() }
    }

    /// What the pods that would have to move are worth.
    pub fn pods(&self, candidate: &Candidate) -> f64 {
        self.worth(&candidate.pool.name, asked(&candidate.pods))
    }

    /// What a node has for pods that can move, whether they are there or not.
    pub fn room(&self, scene: Scene<'_>, candidate: &Candidate) -> f64 {
        let fixed = scene.snapshot.pods_of(&candidate.node);
        let fixed = asked(fixed.filter(|pod| pod.is_active() && !pod.is_reschedulable()));
        let all = amounts(&candidate.node.allocatable());
        self.worth(
            &candidate.pool.name,
            std::array::from_fn(|at| (all[at] - fixed[at]).max(0.0)),
        )
    }

    fn worth(&self, pool: &PoolName, amounts: Amounts) -> f64 {
        let units = self.units.get(pool).copied().unwrap_or_default();
        units.iter().zip(amounts).map(|(unit, amount)| unit * amount).sum()
    }
}

fn asked<'p>(pods: impl IntoIterator<Item = &'p Arc<Pod>>) -> Amounts {
    let mut sum = Amounts::default();
    for pod in pods {
        for (sum, more) in sum.iter_mut().zip(amounts(&pod.shape.requests)) {
            *sum += more;
        }
    }
    sum
}

fn amounts(resources: &Resources) -> Amounts {
    [ResourceName::CPU, ResourceName::MEMORY].map(|name| resources.get(name.as_str()).nanos() as f64 / 1e9)
}
