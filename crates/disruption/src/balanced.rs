//! Whether a saving is worth its disruption, for pools with policy `Balanced`.
//!
//! A command is measured against its pool: the share of the pool's cost that it saves over the share of the pool's
//! disruption that it causes. One means that it is as good as giving up the whole pool would be.

use std::collections::BTreeMap;

use model::{PoolName, pool::ConsolidationPolicy};

use crate::{Candidate, candidate::disruption_cost, settings::Scene};

/// A command may cause this many times the disruption that its saving is worth.
const K: f64 = 2.0;

/// What a command has to reach.
pub const THRESHOLD: f64 = 1.0 / K;

/// What a pool costs, and what disrupting all of it would cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    pub price: f64,
    pub disruption: f64,
}

/// A command's score for one of its pools.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub pool: PoolName,
    pub policy: ConsolidationPolicy,
    pub score: f64,
    pub saving: f64,
    pub disruption: f64,
    pub total: Total,
}

impl Score {
    /// Pools with another policy do not vote.
    pub fn is_approved(&self) -> bool {
        self.policy != ConsolidationPolicy::Balanced || self.score >= THRESHOLD
    }
}

/// The totals of every pool, over all of its nodes.
pub(crate) fn totals(scene: Scene<'_>) -> BTreeMap<PoolName, Total> {
    let mut totals: BTreeMap<PoolName, Total> = BTreeMap::new();
    for node in scene.snapshot.nodes.values().filter(|node| node.is_managed()) {
        let Some(pool) = node.pool() else { continue };
        let total = totals.entry(pool).or_default();
        total.price += scene.prices.of(node).unwrap_or(0.0);
        let pods = scene.snapshot.pods_of(node).filter(|pod| pod.is_reschedulable());
        total.disruption += disruption_cost(pods);
    }
    totals
}

/// The scores of a command that saves this much, one for each of its pools in the order of their names.
pub(crate) fn scores(sources: &[&Candidate], saving: f64, totals: &BTreeMap<PoolName, Total>) -> Vec<Score> {
    let mut pools: BTreeMap<&PoolName, (f64, f64, ConsolidationPolicy)> = BTreeMap::new();
    for source in sources {
        let entry = pools
            .entry(&source.pool.name)
            .or_insert((0.0, 0.0, source.pool.disruption.policy));
        entry.0 += source.price;
        entry.1 += source.disruption_cost;
    }
    let price: f64 = sources.iter().map(|source| source.price).sum();
    let several = pools.len() > 1;
    let score = |(pool, (own, disruption, policy)): (&PoolName, (f64, f64, ConsolidationPolicy))| {
        let share = if several && price > 0.0 { own / price } else { 1.0 };
        let total = totals.get(pool).copied().unwrap_or_default();
        let saving = saving * share;
        Score {
            pool: pool.clone(),
            policy,
            score: ratio(saving, disruption, total),
            saving,
            disruption,
            total,
        }
    };
    pools.into_iter().map(score).collect()
}

fn ratio(saving: f64, disruption: f64, total: Total) -> f64 {
    if saving <= 0.0 || total.price <= 0.0 || total.disruption <= 0.0 {
        return 0.0;
    }
    let share = disruption / total.disruption;
    if share == 0.0 {
        return f64::INFINITY;
    }
    (saving / total.price) / share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(saving: f64, price: f64, disruption: f64, total: f64) -> f64 {
        ratio(
            saving,
            disruption,
            Total {
                price,
                disruption: total,
            },
        )
    }

    #[test]
    fn a_score_is_the_share_saved_over_the_share_disrupted() {
        for (row, saving, price, disruption, total, approved) in [
            ("DI-A1", 7.26, 58.08, 4.0, 90.0, true),
            ("DI-A2", 4.84, 58.08, 5.0, 90.0, true),
            ("DI-A3", 2.42, 58.08, 9.0, 90.0, false),
            ("DI-A4", 2.42, 48.40, 9.0, 90.0, true),
            ("DI-A5 zero", 0.0, 58.08, 4.0, 90.0, false),
            ("DI-A5 negative", -1.0, 58.08, 4.0, 90.0, false),
            ("DI-A6 light", 1.0, 10.0, 2.0, 20.0, true),
            ("DI-A6 heavy", 1.0, 10.0, 12.0, 20.0, false),
            ("DI-A9 no cost", 1.0, 0.0, 4.0, 90.0, false),
            ("DI-A9 no totals", 1.0, 0.0, 4.0, 0.0, false),
        ] {
            assert_eq!(scored(saving, price, disruption, total) >= THRESHOLD, approved, "{row}");
        }
    }

    #[test]
    fn thresholds_decide_at_the_margin() {
        // DI-A3: refused with a factor of one or two, taken with three.
        let score = scored(2.42, 58.08, 9.0, 90.0);
        assert!((1.0 / 3.0..1.0 / 2.0).contains(&score), "{score}");
        // DI-A4: exactly one half.
        assert!((scored(2.42, 48.40, 9.0, 90.0) - 0.5).abs() < 1e-12);
        // DI-A7: a pool ten times as large.
        assert!((scored(1.0, 10.0, 2.0, 20.0) - scored(10.0, 100.0, 20.0, 200.0)).abs() < 1e-12);
        // DI-A8: no disruption at all.
        assert_eq!(scored(1.0, 10.0, 0.0, 20.0), f64::INFINITY);
        // DI-A12: the pool's only node.
        assert!((scored(3.0, 3.0, 5.0, 5.0) - 1.0).abs() < 1e-12);
    }
}
