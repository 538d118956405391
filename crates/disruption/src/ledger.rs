//! How many nodes each pool may still lose at one moment.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    Pool, PoolName, Snapshot,
    budget::{self, DisruptionReason},
};

use crate::stay::Why;

/// One pool's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What the budgets allow for each reason, before anything is taken off.
    allowed: BTreeMap<DisruptionReason, u32>,
    /// Nodes that are down or on their way out, whatever the cause: they use the budget up for every reason.
    pub disrupting: u32,
    /// Nodes that percentages are taken of.
    pub total: u32,
    /// Why the budgets cannot be read.
    pub problem: Option<String>,
}

impl Page {
    pub fn allowed(&self, reason: DisruptionReason) -> u32 {
        self.allowed.get(&reason).copied().unwrap_or(0)
    }

    /// How many more may go.
    pub fn left(&self, reason: DisruptionReason) -> u32 {
        self.allowed(reason).saturating_sub(self.disrupting)
    }
}

/// What is left of every pool's budgets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pages: BTreeMap<PoolName, Page>,
}

impl Ledger {
    pub fn open(snapshot: &Snapshot, now: Timestamp) -> Self {
        let mut counted: BTreeMap<PoolName, (u32, u32)> = BTreeMap::new();
        for node in snapshot.nodes.values() {
            let Some(claim) = &node.claim else { continue };
            if !node.is_initialized() || claim.instance_terminating {
                continue;
            }
            let Some(pool) = node.pool() else { continue };
            let (total, disrupting) = counted.entry(pool).or_default();
            *total += 1;
            let down = node.node.as_ref().is_none_or(|facts| !facts.ready);
            *disrupting += u32::from(down || node.is_leaving());
        }
        let page = |pool: &Pool| {
            let (total, disrupting) = counted.get(&pool.name).copied().unwrap_or_default();
            let reasons = DisruptionReason::ALL.into_iter();
            Page {
                allowed: reasons
                    .map(|reason| (reason, allowed(pool, reason, total, now)))
                    .collect(),
                disrupting,
                total,
                problem: pool.disruption.budgets.clone().err(),
            }
        };
        Self {
            pages: snapshot
                .pools
                .values()
                .map(|pool| (pool.name.clone(), page(pool)))
                .collect(),
        }
    }

    pub fn page(&self, pool: &PoolName) -> Option<&Page> {
        self.pages.get(pool)
    }

    pub fn pages(&self) -> impl Iterator<Item = (&PoolName, &Page)> {
        self.pages.iter()
    }

    /// How many more of the pool's nodes may go for this reason.
    pub fn left(&self, pool: &PoolName, reason: DisruptionReason) -> u32 {
        self.pages.get(pool).map_or(0, |page| page.left(reason))
    }

    /// Why no more of the pool's nodes may go for this reason.
    pub fn refusal(&self, pool: &PoolName, reason: DisruptionReason) -> Why {
        let page = self.pages.get(pool);
        match page.and_then(|page| page.problem.clone()) {
            Some(problem) => Why::BudgetUnreadable {
                pool: pool.clone(),
                problem,
            },
            None => Why::Budget {
                pool: pool.clone(),
                reason,
                allowed: page.map_or(0, |page| page.allowed(reason)),
                used: page.map_or(0, |page| page.disrupting),
            },
        }
    }

    /// Takes one node off the pool's budget; says whether there was one to take.
    pub fn take(&mut self, pool: &PoolName, reason: DisruptionReason) -> bool {
        self.take_all([pool], reason)
    }

    /// Whether one node for each mention of a pool may go.
    pub fn admits<'p>(&self, pools: impl IntoIterator<Item = &'p PoolName>, reason: DisruptionReason) -> bool {
        let mut wanted: BTreeMap<&PoolName, u32> = BTreeMap::new();
        for pool in pools {
            *wanted.entry(pool).or_default() += 1;
        }
        wanted.into_iter().all(|(pool, count)| self.left(pool, reason) >= count)
    }

    /// Takes one node for each mention of a pool, or none at all.
    pub fn take_all<'p>(
        &mut self,
        pools: impl IntoIterator<Item = &'p PoolName> + Clone,
        reason: DisruptionReason,
    ) -> bool {
        let admitted = self.admits(pools.clone(), reason);
        if admitted {
            for pool in pools {
                if let Some(page) = self.pages.get_mut(pool) {
                    page.disrupting += 1;
                }
            }
        }
        admitted
    }
}

/// A budget that cannot be read closes the pool for every reason: a mistake must not open a door that the user meant
/// to shut.
fn allowed(pool: &Pool, reason: DisruptionReason, total: u32, now: Timestamp) -> u32 {
    match &pool.disruption.budgets {
        Ok(budgets) => budget::allowed(budgets, reason, now, total as usize),
        Err(_) => 0,
    }
}
