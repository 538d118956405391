//! How many nodes each pool may still lose, for one reason, at one moment.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    Pool, PoolName, Snapshot,
    budget::{self, DisruptionReason},
};

/// One pool's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What the budgets allow, before anything is taken off.
    pub allowed: u32,
    /// Nodes that are down or on their way out, whatever the cause: they use the budget up.
    pub disrupting: u32,
    /// Nodes that percentages are taken of.
    pub total: u32,
    left: u32,
}

/// What is left of every pool's budget for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pages: BTreeMap<PoolName, Page>,
}

impl Ledger {
    pub fn open(snapshot: &Snapshot, reason: DisruptionReason, now: Timestamp) -> Self {
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
            let allowed = allowed(pool, reason, total, now);
            Page {
                allowed,
                disrupting,
                total,
                left: allowed.saturating_sub(disrupting),
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

    /// Whether one more node of the pool may go.
    pub fn has_room(&self, pool: &PoolName) -> bool {
        self.pages.get(pool).is_some_and(|page| page.left > 0)
    }

    /// Takes one node off the pool's budget; says whether there was one to take.
    pub fn take(&mut self, pool: &PoolName) -> bool {
        match self.pages.get_mut(pool) {
            Some(page) if page.left > 0 => {
                page.left -= 1;
                true
            }
            _ => false,
        }
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
