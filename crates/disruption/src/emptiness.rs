//! Removes nodes that host nothing worth moving.
//!
//! A node without pods goes at once. One with pods that are worth nothing goes where these find room on nodes that stay: if
//! they had to wait for a new node, that would be the next one to go, and so on without end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::{NodeKey, PodKey};
use scheduler::{Answer, Placement, Search, WhatIf};

use crate::{
    Candidate, Command, Ledger, Method,
    candidate::likely_to_stay,
    consolidation::{search::lands_on_starting, settling},
    pass,
    settings::Scene,
    stay::{Exempt, Stay, Why},
};

/// Whether an empty node may go, budgets aside.
pub(crate) fn eligible(candidate: &Candidate, now: Timestamp) -> Result<(), Why> {
    let pool = &candidate.pool;
    if pool.is_static() {
        return Err(Why::Exempt(Exempt::Static(pool.name.clone())));
    }
    if pool.disruption.consolidate_after.is_none() {
        return Err(Why::Exempt(Exempt::Never(pool.name.clone())));
    }
    if candidate.holds_room {
        return Err(Why::Exempt(Exempt::Buffer));
    }
    settling(candidate, now)
}

/// What was decided about empty nodes.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    pub command: Option<Command>,
    pub stays: Vec<Stay>,
    /// How many nodes may go, budgets aside.
    pub eligible: usize,
    /// Nodes whose pods would have to wait for a new one. They are not empty, so consolidation looks at them.
    pub in_use: BTreeSet<NodeKey>,
}

/// One deletion of all empty nodes that the budgets let go, dearest first, then by name. Nodes that a capacity buffer
/// counts on stay.
pub(crate) fn decide(scene: Scene<'_>, candidates: &[Candidate], ledger: &mut Ledger) -> Emptied {
    let mut emptied = Emptied::default();
    let mut chosen = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.is_empty()) {
        match eligible(candidate, scene.now) {
            Ok(()) => chosen.push(candidate),
            Err(why) => emptied.stays.push(stay(candidate, why)),
        }
    }
    let eligible = chosen.len();
    let (bare, hosts): (Vec<&Candidate>, Vec<_>) =
        chosen.iter().copied().partition(|candidate| candidate.pods.is_empty());
    // Most clusters have no such pods, and then nothing has to be prepared.
    let stage = (!hosts.is_empty()).then(|| pass::stage(scene, likely_to_stay(hosts), scene.settings.by_choice()));
    let mut cluster = stage.as_ref().map(WhatIf::new);
    if let Some(cluster) = &mut cluster {
        // Whether or not their turn comes in this pass.
        let going: Vec<NodeKey> = bare.into_iter().map(|candidate| candidate.key().clone()).collect();
        cluster.close(&going);
    }
    let reason = Method::Emptiness.reason();
    let mut going = Vec::new();
    let mut moves: Vec<Placement> = Vec::new();
    let mut receiving: BTreeSet<NodeKey> = BTreeSet::new();
    for candidate in likely_to_stay(chosen).into_iter().rev() {
        let pool = &candidate.pool.name;
        if ledger.left(pool, reason) == 0 {
            let why = ledger.refusal(pool, reason);
            emptied.stays.push(stay(candidate, why));
            continue;
        }
        if let Some(cluster) = cluster.as_mut().filter(|_| !candidate.pods.is_empty()) {
            let receives = receiving.contains(candidate.key());
            if receives || (!cluster.remembers() && !moves.is_empty()) {
                let why = if receives { Why::Receives } else { Why::Devices };
                emptied.stays.push(stay(candidate, why));
                continue;
            }
            let Some(moved) = moved(scene, candidate, cluster, Search::Below(0.0)) else {
                emptied.in_use.insert(candidate.key().clone());
                continue;
            };
            receiving.extend(moved.iter().map(|placement| placement.node.clone()));
            moves.extend(moved);
        }
        ledger.take(pool, reason);
        going.push(candidate);
    }
    emptied.eligible = eligible - emptied.in_use.len();
    emptied.command = (!going.is_empty()).then(|| deletion(&going, moves));
    emptied
}

fn stay(candidate: &Candidate, why: Why) -> Stay {
    Stay {
        node: candidate.key().clone(),
        why,
    }
}

/// Where the pods of a node go when nothing is launched for them; nothing where some of them would have to wait. They are
/// there from then on.
pub(crate) fn moved(
    scene: Scene<'_>,
    candidate: &Candidate,
    cluster: &mut WhatIf<'_>,
    search: Search<'_>,
) -> Option<Vec<Placement>> {
    let node = [candidate.key().clone()];
    match cluster.ask(&node, search) {
        Answer::Plan(plan) if plan.launches.is_empty() && lands_on_starting(scene, &plan).is_none() => {
            cluster.keep(&node, search);
            Some(plan.placements)
        }
        _ => None,
    }
}

pub(crate) fn deletion(going: &[&Candidate], moves: Vec<Placement>) -> Command {
    let mut placements: BTreeMap<NodeKey, Vec<PodKey>> = BTreeMap::new();
    for Placement { node, pods } in moves {
        placements.entry(node).or_default().extend(pods);
    }
    let placements = placements.into_iter().map(|(node, pods)| Placement { node, pods });
    Command {
        method: Method::Emptiness,
        nodes: going.iter().map(|candidate| candidate.key().clone()).collect(),
        replacements: Vec::new(),
        placements: placements.collect(),
        pods: going.iter().map(|candidate| candidate.pods.len()).sum(),
        saving: going
            .iter()
            .map(|candidate| candidate.price)
            .fold(0.0, |sum, price| sum + price),
        scores: Vec::new(),
    }
}
