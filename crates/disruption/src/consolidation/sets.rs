//! Which nodes go together: several half-used or dear nodes exchanged for fewer or cheaper ones.
//!
//! After everything that can go alone has gone, the nodes that pay most for what their pods use are looked at in groups
//! of several sizes. How many groups are tried is bounded by the number of pods that are moved to and fro, so that a pass
//! over a large cluster ends, and ends with the same result every time.

use model::ResourceName;

use super::search::Search;
use crate::Candidate;

/// Sizes of groups. Larger ones are rarely better than two smaller ones after the other.
const SIZES: [usize; 8] = [2, 3, 4, 6, 8, 12, 16, 24];

impl Search<'_, '_> {
    /// Sweeps over the nodes that are left until nothing is gained or the work is done.
    pub(super) fn together(&mut self) {
        let pods: usize = self.candidates.iter().map(|candidate| candidate.pods.len()).sum();
        let mut work = pods * self.scene.settings.effort;
        while self.sweep(&mut work) {}
    }

    /// Asks about groups of every size and takes those that save most for their disruption, each node once. Says whether
    /// anything was taken.
    fn sweep(&mut self, work: &mut usize) -> bool {
        let wasteful = self.wasteful();
        let mut found: Vec<(Vec<usize>, f64)> = Vec::new();
        for size in SIZES.into_iter().filter(|size| *size <= wasteful.len()) {
            for set in wasteful.windows(size).step_by(size.div_ceil(2)) {
                if !self.spend(set, work) {
                    break;
                }
                if let Ok(proposal) = self.propose(set) {
                    found.push((set.to_vec(), proposal.worth()));
                }
            }
        }
        found.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
        let before = self.commands.len();
        for (set, _) in found {
            let free = set.iter().all(|index| self.is_free(*index));
            if !free || !self.within_budget(&set) || !self.spend(&set, work) {
                continue;
            }
            // Asked again, because what was taken meanwhile may have used the room.
            if let Ok(proposal) = self.propose(&set) {
                self.take(&set, proposal);
            }
        }
        self.commands.len() > before
    }

    /// Takes the work of a question off what is left; says whether there was enough.
    fn spend(&self, set: &[usize], work: &mut usize) -> bool {
        let pods: usize = set.iter().map(|index| self.candidates[*index].pods.len()).sum();
        let left = work.checked_sub(pods);
        *work = left.unwrap_or(0);
        left.is_some()
    }

    /// The nodes that are still free, those first whose disruption would free the most money that buys nothing.
    fn wasteful(&mut self) -> Vec<usize> {
        let mut free: Vec<(usize, f64)> = Vec::new();
        for index in 0..self.candidates.len() {
            if self.is_free(index) && self.within_budget(&[index]) {
                let candidate = &self.candidates[index];
                free.push((
                    index,
                    candidate.price * (1.0 - used(candidate)) / candidate.disruption_cost,
                ));
            }
        }
        free.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        free.into_iter().map(|(index, _)| index).collect()
    }
}

/// How much of a node its pods ask for, by the resource that they ask for most.
fn used(candidate: &Candidate) -> f64 {
    let has = candidate.node.allocatable();
    let share = |name: &str| {
        let asked: i128 = candidate
            .pods
            .iter()
            .map(|pod| pod.shape.requests.get(name).nanos())
            .sum();
        let all = has.get(name).nanos();
        if all > 0 { asked as f64 / all as f64 } else { 0.0 }
    };
    share(ResourceName::CPU.as_str()).max(share(ResourceName::MEMORY.as_str()))
}
