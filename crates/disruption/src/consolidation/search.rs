//! Which nodes go: every candidate is asked about alone, and the best are taken one after the other.
//!
//! All questions go to one prepared cluster. What is taken changes it for those that come after, so a node's answer is
//! worked out again when its turn comes; answers only get worse, because places only fill up. So the best answer that
//! still holds is the best there is, and most nodes are asked about twice at most.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use model::{NodeKey, PoolName, budget::DisruptionReason};
use scheduler::{Answer, Launch, Placement, Plan, Search as Effort, WhatIf};

use super::{
    goal::Rank,
    replacement::{self, Against},
    worth::MOVING,
};
use crate::{
    Candidate, Command, Ledger, Method,
    balanced::{self, Score, Total},
    settings::Scene,
    stay::Why,
};

pub(super) const REASON: DisruptionReason = DisruptionReason::Underutilized;

/// What could be done about some nodes.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    launches: Vec<Launch>,
    placements: Vec<Placement>,
    pub saving: f64,
    pub disruption: f64,
    scores: Vec<Score>,
}

impl Proposal {
    /// Dollars per unit of disruption.
    pub fn worth(&self) -> f64 {
        self.saving / self.disruption
    }
}

/// Money per disruption, the most first, and of equals the first in the order of names.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    worth: f64,
    candidate: Reverse<usize>,
    version: usize,
}

impl Eq for Turn {}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        let worth = self.worth.total_cmp(&other.worth);
        worth.then(self.candidate.cmp(&other.candidate))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A search in progress.
pub(crate) struct Search<'a, 'w> {
    pub(super) scene: Scene<'a>,
    pub(super) cluster: &'w mut WhatIf<'a>,
    /// Nodes that consolidation may look at, in the order of their names.
    pub(super) candidates: &'w [Candidate],
    /// The same in the order in which they are worth keeping.
    pub(super) ranks: Vec<Rank>,
    /// What the pods of each are worth per hour.
    worth: Vec<f64>,
    pub(super) ledger: &'w mut Ledger,
    totals: BTreeMap<PoolName, Total>,
    pub(super) taken: BTreeSet<usize>,
    /// Nodes that pods are moved to.
    pub(super) receiving: BTreeSet<NodeKey>,
    /// How many commands have been taken.
    version: usize,
    pub commands: Vec<Command>,
    pub stays: BTreeMap<NodeKey, Why>,
    /// The scores of nodes that were refused alone for want of one, as they were last asked about.
    refused_alone: BTreeMap<usize, Vec<Score>>,
    /// Those of the set that was refused last.
    refused_together: Vec<Score>,
}

impl<'a, 'w> Search<'a, 'w> {
    pub fn new(
        scene: Scene<'a>,
        cluster: &'w mut WhatIf<'a>,
        candidates: &'w [Candidate],
        ranks: Vec<Rank>,
        ledger: &'w mut Ledger,
        receiving: BTreeSet<NodeKey>,
    ) -> Self {
        let mut worth = vec![0.0; candidates.len()];
        for rank in &ranks {
            worth[rank.index] = rank.pods;
        }
        Self {
            scene,
            cluster,
            candidates,
            ranks,
            worth,
            ledger,
            totals: balanced::totals(scene),
            taken: BTreeSet::new(),
            receiving,
            version: 0,
            commands: Vec::new(),
            stays: BTreeMap::new(),
            refused_alone: BTreeMap::new(),
            refused_together: Vec::new(),
        }
    }

    /// Looks at every candidate alone, tells that it has, and then chooses.
    pub fn run(&mut self, looked: &mut dyn FnMut()) {
        let proposals = (0..self.candidates.len()).map(|index| self.consider(index)).collect();
        looked();
        self.aim();
        self.one_by_one(proposals);
        self.together();
    }

    /// The scores of moves that were refused because of them: one move for each node that was asked about alone, and one for
    /// all sets unless some set goes. Both come from the many questions of one pass, which say little more than the last.
    pub fn refused(&self) -> Vec<Score> {
        let together = self.commands.iter().any(|command| command.nodes.len() > 1);
        let sets = self.refused_together.iter().filter(|_| !together);
        self.refused_alone.values().flatten().chain(sets).cloned().collect()
    }

    /// Takes the best of these proposals, and then the best of what they have become, until nothing is left.
    fn one_by_one(&mut self, mut proposals: Vec<Option<Proposal>>) {
        let mut turns = BinaryHeap::new();
        for (index, proposal) in proposals.iter().enumerate() {
            turns.extend(proposal.as_ref().map(|proposal| Turn {
                worth: proposal.worth(),
                candidate: Reverse(index),
                version: 0,
            }));
        }
        while let Some(turn) = turns.pop() {
            let index = turn.candidate.0;
            if !self.is_free(index) || !self.within_budget(&[index]) {
                continue;
            }
            if turn.version != self.version {
                proposals[index] = self.consider(index);
                if let Some(proposal) = &proposals[index] {
                    turns.push(self.turn(index, proposal));
                }
                continue;
            }
            if let Some(proposal) = proposals[index].take() {
                self.take(&[index], proposal);
            }
        }
    }

    fn turn(&self, index: usize, proposal: &Proposal) -> Turn {
        Turn {
            worth: proposal.worth(),
            candidate: Reverse(index),
            version: self.version,
        }
    }

    /// Whether a node is still where it was.
    pub(super) fn is_free(&mut self, index: usize) -> bool {
        let key = self.candidates[index].key();
        if self.receiving.contains(key) {
            self.stays.insert(key.clone(), Why::Receives);
            return false;
        }
        if !self.cluster.remembers() && !self.commands.is_empty() {
            self.stays.insert(key.clone(), Why::Devices);
            return false;
        }
        !self.taken.contains(&index)
    }

    pub(super) fn within_budget(&mut self, indices: &[usize]) -> bool {
        let pools = indices.iter().map(|index| &self.candidates[*index].pool.name);
        let fits = self.ledger.admits(pools, REASON);
        if let ([index], false) = (indices, fits) {
            let candidate = &self.candidates[*index];
            let why = self.ledger.refusal(&candidate.pool.name, REASON);
            self.stays.insert(candidate.key().clone(), why);
        }
        fits
    }

    /// What could be done about one node; its reason to stay is noted where that is nothing.
    fn consider(&mut self, index: usize) -> Option<Proposal> {
        match self.propose(&[index]) {
            Ok(proposal) => {
                self.stays.remove(self.candidates[index].key());
                self.refused_alone.remove(&index);
                Some(proposal)
            }
            Err(why) => {
                self.stays.insert(self.candidates[index].key().clone(), why);
                None
            }
        }
    }

    /// What could be done about these nodes together.
    pub(super) fn propose(&mut self, indices: &[usize]) -> Result<Proposal, Why> {
        let candidates: Vec<&Candidate> = indices.iter().map(|index| &self.candidates[*index]).collect();
        let keys: Vec<NodeKey> = candidates.iter().map(|candidate| candidate.key().clone()).collect();
        let price: f64 = candidates.iter().map(|candidate| candidate.price).sum();
        match self.cluster.ask(&keys, effort(&candidates)) {
            Answer::Stranded { pod, refusal } => Err(Why::Stranded { pod, refusal }),
            Answer::TooDear { price: replacement } => Err(Why::NotCheaper {
                price,
                replacement: Some(replacement),
            }),
            Answer::Plan(plan) => self.judge(indices, plan, Against::Themselves),
        }
    }

    pub(super) fn judge(&mut self, indices: &[usize], plan: Plan, against: Against) -> Result<Proposal, Why> {
        let candidates: Vec<&Candidate> = indices.iter().map(|index| &self.candidates[*index]).collect();
        if let Some(why) = lands_on_starting(self.scene, &plan) {
            return Err(why);
        }
        let price: f64 = candidates.iter().map(|candidate| candidate.price).sum();
        let launches = if plan.launches.is_empty() {
            Vec::new()
        } else {
            let spot_to_spot = self.scene.settings.spot_to_spot;
            replacement::cheaper(plan.launches, &candidates, against, self.scene.prices, spot_to_spot)?
        };
        let cost: f64 = launches.iter().map(|launch| launch.choice.price).sum();
        let saving = price - cost;
        let least = MOVING * indices.iter().map(|index| self.worth[*index]).sum::<f64>();
        if !launches.is_empty() && saving < least {
            return Err(Why::SmallSaving { saving, least });
        }
        let scores = balanced::scores(&candidates, saving, &self.totals);
        if let Some(short) = scores.iter().find(|score| !score.is_approved()).cloned() {
            match indices {
                [only] => drop(self.refused_alone.insert(*only, scores)),
                _ => self.refused_together = scores,
            }
            return Err(Why::Score {
                pool: short.pool,
                score: short.score,
            });
        }
        Ok(Proposal {
            launches,
            placements: plan.placements,
            saving,
            disruption: candidates.iter().map(|candidate| candidate.disruption_cost).sum(),
            scores,
        })
    }

    /// Makes a proposal a command, and the cluster what it will be after it.
    pub(super) fn take(&mut self, indices: &[usize], proposal: Proposal) {
        let candidates: Vec<&Candidate> = indices.iter().map(|index| &self.candidates[*index]).collect();
        let nodes: Vec<NodeKey> = candidates.iter().map(|candidate| candidate.key().clone()).collect();
        let (_, filled) = self.cluster.keep(&nodes, effort(&candidates));
        self.receiving.extend(filled);
        self.note(indices, proposal);
    }

    /// Makes a proposal a command.
    pub(super) fn note(&mut self, indices: &[usize], proposal: Proposal) {
        let candidates: Vec<&Candidate> = indices.iter().map(|index| &self.candidates[*index]).collect();
        let nodes: Vec<NodeKey> = candidates.iter().map(|candidate| candidate.key().clone()).collect();
        self.ledger
            .take_all(candidates.iter().map(|candidate| &candidate.pool.name), REASON);
        for node in &nodes {
            self.stays.remove(node);
        }
        if let [only] = indices {
            self.refused_alone.remove(only);
        }
        self.taken.extend(indices);
        self.version += 1;
        self.commands.push(Command {
            method: Method::Consolidation,
            nodes,
            replacements: proposal.launches,
            placements: proposal.placements,
            pods: candidates.iter().map(|candidate| candidate.pods.len()).sum(),
            saving: proposal.saving,
            scores: proposal.scores,
        });
    }
}

/// A single node is exchanged for something cheaper or not at all; for several nodes it takes a look at the best packing
/// to know what they would cost anew.
fn effort(candidates: &[&Candidate]) -> Effort<'static> {
    match candidates {
        [only] => Effort::Below(only.price),
        _ => Effort::Packed,
    }
}

/// Pods that run are not sent to wait for a node that is yet to become ready.
pub(crate) fn lands_on_starting(scene: Scene<'_>, plan: &Plan) -> Option<Why> {
    let starting = plan.placements.iter().find(|placement| {
        let node = scene.snapshot.nodes.get(&placement.node);
        node.is_some_and(|node| node.is_managed() && !node.is_initialized())
    })?;
    let pod = starting.pods.first()?.clone();
    Some(Why::Starting {
        pod,
        on: starting.node.clone(),
    })
}
