//! Where the cluster should end: which nodes stay, filled with the pods of all the others.
//!
//! Giving up one node after the other moves pods to nodes that go themselves a little later. So the nodes that are worth
//! keeping are chosen first, and every pod that moves goes straight to one of them, or to a new node where that is
//! cheaper. A pod moves once.
//!
//! ```text
//!  best to keep ─────────────────────────────────────────────► worst
//!  ████▒▒  ███▒▒▒  ████▒▒  ██▒▒▒▒ │ ██░░░░  ███░░░  █░░░░░  ██░░░░     █ pods that are there
//!     keepers, filled (▒) with    │  these pods; how many nodes are kept is what is searched for
//! ```
//!
//! The order is a good guess. From the best place to cut it, single nodes change sides as long as that makes the end
//! better ([`improve`](Search::improve)).

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeKey, PodKey};
use scheduler::{Answer, Placement, Plan, Search as Effort};

use super::{
    replacement::Against,
    search::{REASON, Search},
    worth::{MOVING, Market},
};
use crate::{Candidate, settings::Scene, stay::Why};

/// How much a pod that need not move speaks for its node, as a share of what the pod is worth.
const STAYING: f64 = 0.3;

/// How many nodes to keep, as shares of those that would be just large enough.
const SHARES: [f64; 8] = [0.6, 0.75, 0.85, 0.92, 1.0, 1.08, 1.2, 1.4];

/// How many nodes are given up in one step. Nodes whose pods share new nodes are one command, which holds as a whole or not
/// at all, so it should not grow with the cluster.
const TOGETHER: usize = 24;

/// How many pods, counted anew for every question, are given places in the search for the best end. Where to cut the order
/// is asked in any case; single nodes change sides as long as something is left, which is not in a large cluster, where a
/// single node matters less. Nearly three times as much takes twice as long and brings the price at rest down by less than a
/// thousandth in the mean of 29 fleets of 100 nodes.
const WORK: usize = 25_000;

/// How often a set is asked about again without those nodes of it that turned out to be stuck.
const TRIALS: usize = 8;

/// The nodes in the order in which they are worth keeping: those first whose room costs least for what it is worth, and
/// whose pods it would cost most to move.
pub(crate) fn ranking(scene: Scene<'_>, candidates: &[Candidate]) -> Vec<Rank> {
    let market = Market::new(scene, candidates);
    let mut ranks: Vec<(f64, Rank)> = candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| {
            let (room, pods) = (market.room(scene, candidate), market.pods(candidate));
            let cost = (candidate.price - STAYING * pods) / room;
            (cost, Rank { index, room, pods })
        })
        .collect();
    ranks.sort_by(|(a, x), (b, y)| a.total_cmp(b).then(x.index.cmp(&y.index)));
    ranks.into_iter().map(|(_, rank)| rank).collect()
}

/// A node's place in the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    pub index: usize,
    /// What its room is worth per hour.
    room: f64,
    /// What its pods are worth per hour.
    pub pods: f64,
}

impl Search<'_, '_> {
    /// Gives up all nodes at once that the best end does without, as far as budgets allow.
    pub(super) fn aim(&mut self) {
        if !self.cluster.remembers() {
            return;
        }
        let mut ranks = self.movable();
        let mut work = WORK;
        let Some((keep, cost)) = self.best_end(&mut ranks, &mut work) else {
            return;
        };
        let keep = self.improve((keep, cost), &mut ranks, work);
        let mut going = worst_first(&ranks[keep..]);
        let keys = self.keys(&going);
        // None of them takes pods, whether or not its turn comes in this pass.
        self.cluster.close(&keys);
        self.admit(&mut going);
        for some in going.chunks(TOGETHER) {
            self.give_up(some.to_vec());
        }
        let left = ranks[keep..].iter().map(|rank| rank.index);
        let left: Vec<usize> = left.filter(|index| !self.taken.contains(index)).collect();
        let left = self.keys(&left);
        self.cluster.reopen(&left);
    }

    /// Nodes whose pods would all find a place somewhere, in the order in which they are worth keeping.
    fn movable(&mut self) -> Vec<Rank> {
        let ranks = self.ranks.clone();
        let stranded = |why: Option<&Why>| matches!(why, Some(Why::Stranded { .. }));
        ranks
            .into_iter()
            .filter(|rank| self.is_free(rank.index) && !stranded(self.stays.get(self.candidates[rank.index].key())))
            .collect()
    }

    /// How many of these nodes to keep, and what that costs; nothing when it is best to keep all. Nodes whose pods find no
    /// place are put first.
    fn best_end(&mut self, ranks: &mut Vec<Rank>, work: &mut usize) -> Option<(usize, f64)> {
        let demand: f64 = ranks.iter().map(|rank| rank.pods).sum();
        let mut room = 0.0;
        let enough = ranks.iter().position(|rank| {
            room += rank.room;
            room >= demand
        });
        let enough = enough.map_or(ranks.len(), |last| last + 1);
        let mut tried: BTreeMap<usize, f64> = BTreeMap::new();
        for share in SHARES {
            let keep = (enough as f64 * share) as usize;
            self.try_end(keep, ranks, &mut tried, work);
        }
        let best = least(&tried)?;
        let neighbours = [tried.range(..best).next_back(), tried.range(best + 1..).next()];
        let between = neighbours.map(|next| next.map(|(keep, _)| (keep + best) / 2));
        for keep in between.into_iter().flatten() {
            self.try_end(keep, ranks, &mut tried, work);
        }
        let all: f64 = ranks.iter().map(|rank| self.candidates[rank.index].price).sum();
        let best = least(&tried)?;
        (tried[&best] < all).then_some((best, tried[&best]))
    }

    /// What it costs to keep that many nodes, the moves included.
    fn try_end(&mut self, keep: usize, ranks: &mut Vec<Rank>, tried: &mut BTreeMap<usize, f64>, work: &mut usize) {
        for _ in 0..TRIALS {
            if keep >= ranks.len() || tried.contains_key(&keep) {
                return;
            }
            *work = work.saturating_sub(self.pods(&ranks[keep..]));
            match self.end(ranks, keep) {
                End::At(cost) => {
                    tried.insert(keep, cost);
                    return;
                }
                End::Stranded(pod) => {
                    let home = |rank: &Rank| self.candidates[rank.index].moving.contains(&pod);
                    let Some(at) = ranks.iter().position(home) else { return };
                    let stuck = ranks.remove(at);
                    ranks.insert(0, stuck);
                    tried.clear();
                }
                End::TooDear => return,
            }
        }
    }

    /// How many pods these nodes have.
    fn pods(&self, ranks: &[Rank]) -> usize {
        ranks.iter().map(|rank| self.candidates[rank.index].pods.len()).sum()
    }

    /// The end in which the first of these nodes stay.
    fn end(&mut self, ranks: &[Rank], keep: usize) -> End {
        let (kept, going) = ranks.split_at(keep);
        match self.cluster.ask(&self.keys(&worst_first(going)), Effort::Filled) {
            Answer::Plan(plan) => {
                let kept: f64 = kept.iter().map(|rank| self.candidates[rank.index].price).sum();
                let moved: f64 = going.iter().map(|rank| rank.pods).sum();
                End::At(kept + plan.launch_price() + MOVING * moved)
            }
            Answer::Stranded { pod, .. } => End::Stranded(pod),
            Answer::TooDear { .. } => End::TooDear,
        }
    }

    /// Lets single nodes stay or go that did not, those first whose rank is nearest to the cut, until none of them makes
    /// the end better or the work is done. Says how many are kept then.
    fn improve(&mut self, (mut keep, mut best): (usize, f64), ranks: &mut Vec<Rank>, mut work: usize) -> usize {
        let mut turns = nearest_first(keep, ranks.len());
        while let Some(from) = turns.next() {
            let (changed, cut) = change_sides(ranks, keep, from);
            let Some(left) = work.checked_sub(self.pods(&changed[cut..])) else {
                break;
            };
            work = left;
            match self.end(&changed, cut) {
                End::At(cost) if cost < best => {
                    (best, keep, *ranks) = (cost, cut, changed);
                    turns = nearest_first(keep, ranks.len());
                }
                _ => {}
            }
        }
        keep
    }

    /// Leaves those that budgets allow to go now, the ones that save most for their disruption.
    fn admit(&mut self, going: &mut Vec<usize>) {
        let mut turns = going.clone();
        let ratio = |index: &usize| self.candidates[*index].savings_ratio();
        turns.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)).then(a.cmp(b)));
        let mut ledger = self.ledger.clone();
        turns.retain(|index| ledger.take(&self.candidates[*index].pool.name, REASON));
        let admitted: BTreeSet<usize> = turns.into_iter().collect();
        going.retain(|index| admitted.contains(index));
    }

    /// Makes commands of one answer about these nodes. Those whose command would not pay are asked about no more.
    fn give_up(&mut self, mut going: Vec<usize>) {
        for _ in 0..TRIALS {
            if going.is_empty() {
                return;
            }
            let keys = self.keys(&going);
            let Answer::Plan(plan) = self.cluster.ask(&keys, Effort::Filled) else {
                return;
            };
            let mut worth_it = Vec::new();
            let mut dropped = BTreeSet::new();
            for (indices, part) in self.parts(&going, plan) {
                match self.judge(&indices, part, Against::AllEnds) {
                    Ok(proposal) => worth_it.push((indices, proposal)),
                    Err(_) => dropped.extend(indices),
                }
            }
            if dropped.is_empty() {
                let (_, filled) = self.cluster.keep(&keys, Effort::Filled);
                self.receiving.extend(filled);
                worth_it.sort_by(|(a, x), (b, y)| y.worth().total_cmp(&x.worth()).then_with(|| a.cmp(b)));
                for (indices, proposal) in worth_it {
                    self.note(&indices, proposal);
                }
                return;
            }
            going.retain(|index| !dropped.contains(index));
        }
    }

    /// One answer as several commands that do not depend on each other: nodes whose pods share new nodes go together,
    /// every other node goes alone.
    fn parts(&self, going: &[usize], plan: Plan) -> Vec<(Vec<usize>, Plan)> {
        let mut home: BTreeMap<&PodKey, usize> = BTreeMap::new();
        for (number, index) in going.iter().enumerate() {
            home.extend(self.candidates[*index].moving.iter().map(|pod| (pod, number)));
        }
        let mut groups = Groups::new(going.len());
        for launch in &plan.launches {
            let sources: Vec<usize> = launch.pods.iter().filter_map(|pod| home.get(pod).copied()).collect();
            for pair in sources.windows(2) {
                groups.join(pair[0], pair[1]);
            }
        }
        let mut parts: BTreeMap<usize, (Vec<usize>, Plan)> = BTreeMap::new();
        for (number, index) in going.iter().enumerate() {
            parts.entry(groups.of(number)).or_default().0.push(*index);
        }
        for launch in plan.launches {
            let first = launch.pods.iter().find_map(|pod| home.get(pod).copied());
            if let Some(first) = first {
                parts.entry(groups.of(first)).or_default().1.launches.push(launch);
            }
        }
        for placement in plan.placements {
            let mut shares: BTreeMap<usize, Vec<PodKey>> = BTreeMap::new();
            for pod in placement.pods {
                if let Some(number) = home.get(&pod) {
                    shares.entry(groups.of(*number)).or_default().push(pod);
                }
            }
            for (group, pods) in shares {
                let node = placement.node.clone();
                parts
                    .entry(group)
                    .or_default()
                    .1
                    .placements
                    .push(Placement { node, pods });
            }
        }
        let in_order = parts.into_values().map(|(mut indices, plan)| {
            indices.sort_unstable();
            (indices, plan)
        });
        in_order.collect()
    }

    fn keys(&self, indices: &[usize]) -> Vec<NodeKey> {
        let keys = indices.iter().map(|index| self.candidates[*index].key().clone());
        keys.collect()
    }
}

/// The order in which pods are given places: whoever is last goes to new nodes, so that few nodes share these.
fn worst_first(ranks: &[Rank]) -> Vec<usize> {
    ranks.iter().rev().map(|rank| rank.index).collect()
}

/// All places of an order, from where it is cut outwards, one to each side in turn.
fn nearest_first(cut: usize, len: usize) -> impl Iterator<Item = usize> {
    let after = move |step: usize| (cut + step < len).then_some(cut + step);
    let before = move |step: usize| cut.checked_sub(step + 1);
    (0..len).flat_map(move |step| after(step).into_iter().chain(before(step)))
}

/// The order, and where it is cut, when one node is on the other side. It comes to lie next to the cut.
fn change_sides(ranks: &[Rank], keep: usize, from: usize) -> (Vec<Rank>, usize) {
    let mut changed = ranks.to_vec();
    let one = changed.remove(from);
    let cut = if from < keep { keep - 1 } else { keep + 1 };
    changed.insert(cut.min(keep), one);
    (changed, cut)
}

/// What becomes of a choice of nodes to keep.
enum End {
    /// It costs that much per hour, the moves included.
    At(f64),
    /// A pod has no place.
    Stranded(PodKey),
    TooDear,
}

fn least(tried: &BTreeMap<usize, f64>) -> Option<usize> {
    let best = tried.iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(keep, _)| *keep)
}

/// Numbers that belong together.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn of(&self, number: usize) -> usize {
        let mut root = number;
        while self.0[root] != root {
            root = self.0[root];
        }
        root
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::{Rank, change_sides, nearest_first};

    #[test]
    fn turns_come_from_the_cut_outwards() {
        let order = |cut, len| nearest_first(cut, len).collect::<Vec<_>>();
        assert_eq!(order(2, 5), [2, 1, 3, 0, 4]);
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(3, 3), [2, 1, 0]);
    }

    #[test]
    fn a_node_that_changes_sides_leaves_the_others_in_their_order() {
        let ranks: Vec<Rank> = (0..5)
            .map(|index| Rank {
                index,
                room: 1.0,
                pods: 1.0,
            })
            .collect();
        let changed = |from| {
            let (ranks, cut) = change_sides(&ranks, 2, from);
            let (kept, going) = ranks.split_at(cut);
            let indices = |ranks: &[Rank]| ranks.iter().map(|rank| rank.index).collect::<Vec<_>>();
            (indices(kept), indices(going))
        };
        assert_eq!(changed(0), (vec![1], vec![0, 2, 3, 4]));
        assert_eq!(changed(4), (vec![0, 1, 4], vec![2, 3]));
    }
}
