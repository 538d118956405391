//! Which disruption budgets cover which pods.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Pod, Snapshot, pod::PodShape, snapshot::DisruptionBudget};
use rustc_hash::FxHashMap;

/// The budgets of a snapshot. Pods of one workload share the answer.
#[derive(Debug)]
pub struct Guards<'a> {
    by_namespace: FxHashMap<&'a str, Vec<&'a DisruptionBudget>>,
    known: FxHashMap<(&'a str, *const PodShape), Vec<&'a DisruptionBudget>>,
}

impl<'a> Guards<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut by_namespace: FxHashMap<&str, Vec<&DisruptionBudget>> = FxHashMap::default();
        for (key, budget) in &snapshot.budgets {
            by_namespace.entry(&key.namespace).or_default().push(budget);
        }
        Self {
            by_namespace,
            known: FxHashMap::default(),
        }
    }

    /// In the order of their names.
    pub fn covering(&mut self, pod: &'a Arc<Pod>) -> &[&'a DisruptionBudget] {
        let namespace: &str = &pod.key.namespace;
        let Some(budgets) = self.by_namespace.get(namespace) else {
            return &[];
        };
        self.known
            .entry((namespace, Arc::as_ptr(&pod.shape)))
            .or_insert_with(|| budgets.iter().copied().filter(|budget| budget.covers(pod)).collect())
    }

    /// Whether a pod will be somewhere else once its node is gone, and nothing keeps it from leaving for good.
    pub fn let_move(&mut self, pod: &'a Arc<Pod>, now: Timestamp) -> bool {
        pod.can_move_under(self.covering(pod).iter().copied(), now)
    }
}
