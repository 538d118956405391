//! One look at the whole cluster: every node that could go is considered, and all commands that do not get in each
//! other's way are given at once.
//!
//! ```text
//!  empty nodes ─► drifted nodes of fixed pools ─► drifted nodes ─► nodes that cost too much, alone and together
//!       └──────────────── one ledger of budgets for all, one prepared cluster for each kind of move ──────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::{NodeKey, PodKey, Pool, Snapshot};
use rustc_hash::FxHashSet;
use scheduler::{Moves, Options, Round, Stage, WhatIf};

use crate::{
    Candidate, Class, Command, Ledger, Method, Prices, Settings,
    balanced::Score,
    candidate::{candidates, likely_to_stay},
    consolidation::{self, search::Search},
    drift, emptiness,
    settings::Scene,
    stay::{Stay, Why},
};

/// What a look at the cluster comes to.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// In the order in which they were decided.
    pub commands: Vec<Command>,
    /// Every managed node that no command takes, in the order of their names, with what keeps it.
    pub stays: Vec<Stay>,
    /// Nodes that no rule holds back.
    pub candidates: usize,
    /// Nodes that each method could take, budgets aside.
    pub eligible: BTreeMap<Method, usize>,
    /// How savings and disruption compare where a move was refused because of it: of each node alone once, of sets of nodes
    /// once in a pass. What was taken has its own.
    pub refused: Vec<Score>,
}

/// Decides what should go now.
///
/// `taken` are nodes that commands which are still being carried out have.
pub fn decide(snapshot: &Snapshot, settings: &Settings, taken: &BTreeSet<NodeKey>, now: Timestamp) -> Pass {
    decide_watched(snapshot, settings, taken, now, &mut || {})
}

/// As [`decide`], and tells when every candidate of consolidation has been looked at alone, before any is chosen: whoever
/// has a clock learns how long the looking took, and how long the choosing.
pub fn decide_watched(
    snapshot: &Snapshot,
    settings: &Settings,
    taken: &BTreeSet<NodeKey>,
    now: Timestamp,
    looked: &mut dyn FnMut(),
) -> Pass {
    let prices = Prices::new(snapshot);
    let scene = Scene {
        snapshot,
        prices: &prices,
        settings,
        now,
    };
    let mut ledger = Ledger::open(snapshot, now);
    let mut pass = Pass::default();
    let mut stays = BTreeMap::new();
    let (mut graceful, blocked) = candidates(snapshot, &prices, Class::Graceful, taken, now);
    pass.candidates = graceful.len();

    let emptied = emptiness::decide(scene, &graceful, &mut ledger);
    pass.eligible.insert(Method::Emptiness, emptied.eligible);
    pass.commands.extend(emptied.command);

    let receiving = drifted(scene, taken, &mut ledger, &mut pass, &mut stays);
    // A drifted node would go whether or not it is empty, so what keeps it from that counts.
    note(&mut stays, emptied.stays);
    note(&mut stays, blocked);

    let going: BTreeSet<&NodeKey> = pass.commands.iter().flat_map(|command| &command.nodes).collect();
    graceful.retain(|candidate| {
        let in_use = !candidate.is_empty() || emptied.in_use.contains(candidate.key());
        in_use && !going.contains(candidate.key())
    });
    let after = after(snapshot, &pass.commands);
    let scene = Scene {
        snapshot: &after,
        ..scene
    };
    consolidate(scene, graceful, receiving, &mut ledger, &mut pass, &mut stays, looked);
    for node in pass.commands.iter().flat_map(|command| &command.nodes) {
        stays.remove(node);
    }
    let stay = |(node, why): (NodeKey, Why)| Stay { node, why };
    pass.stays = stays.into_iter().map(stay).collect();
    pass
}

/// What was said first about a node counts.
fn note(stays: &mut BTreeMap<NodeKey, Why>, more: Vec<Stay>) {
    for stay in more {
        stays.entry(stay.node).or_insert(stay.why);
    }
}

/// Answers with the nodes that pods are moved to, those of empty nodes included.
fn drifted(
    scene: Scene<'_>,
    taken: &BTreeSet<NodeKey>,
    ledger: &mut Ledger,
    pass: &mut Pass,
    stays: &mut BTreeMap<NodeKey, Why>,
) -> BTreeSet<NodeKey> {
    let placements = pass.commands.iter().flat_map(|command| &command.placements);
    let receiving: BTreeSet<NodeKey> = placements.map(|placement| placement.node.clone()).collect();
    if !scene.snapshot.nodes.values().any(|node| node.has_drifted()) {
        pass.eligible.extend([(Method::StaticDrift, 0), (Method::Drift, 0)]);
        return receiving;
    }
    for key in &receiving {
        if scene.snapshot.nodes.get(key).is_some_and(|node| node.has_drifted()) {
            stays.insert(key.clone(), Why::Receives);
        }
    }
    let moved = moved(scene.snapshot, &pass.commands);
    let scene = Scene {
        snapshot: &moved,
        ..scene
    };
    let going: BTreeSet<NodeKey> = pass.commands.iter().flat_map(|command| command.nodes.clone()).collect();
    let taken = taken.iter().chain(&going).chain(&receiving).cloned().collect();
    let (eventual, _) = candidates(scene.snapshot, scene.prices, Class::Eventual, &taken, scene.now);
    let fixed = drift::in_order(&eventual, Pool::is_static);
    pass.eligible.insert(Method::StaticDrift, fixed.len());
    let (commands, kept) = drift::fixed::decide(scene, &fixed, ledger);
    pass.commands.extend(commands);
    note(stays, kept);

    let oldest = drift::in_order(&eventual, |pool| !pool.is_static());
    pass.eligible.insert(Method::Drift, oldest.len());
    let stage = stage(scene, likely_to_stay(oldest.iter().copied()), scene.settings.by_need());
    let mut cluster = WhatIf::new(&stage);
    // Whoever moved to a node that is to be replaced itself would move again soon.
    let gone: Vec<NodeKey> = going.into_iter().chain(fixed.iter().map(|c| c.key().clone())).collect();
    cluster.close(&gone);
    let drifting = drift::decide(scene, &oldest, &mut cluster, ledger, receiving);
    pass.commands.extend(drifting.commands);
    note(stays, drifting.stays);
    drifting.receiving
}

fn consolidate(
    scene: Scene<'_>,
    graceful: Vec<Candidate>,
    receiving: BTreeSet<NodeKey>,
    ledger: &mut Ledger,
    pass: &mut Pass,
    stays: &mut BTreeMap<NodeKey, Why>,
    looked: &mut dyn FnMut(),
) {
    let mut eligible = Vec::new();
    for candidate in graceful {
        match consolidation::eligible(&candidate, scene.now) {
            Ok(()) => eligible.push(candidate),
            Err(why) => {
                stays.entry(candidate.key().clone()).or_insert(why);
            }
        }
    }
    pass.eligible.insert(Method::Consolidation, eligible.len());
    if eligible.is_empty() {
        return;
    }
    let ranks = consolidation::goal::ranking(scene, &eligible);
    let best_first = ranks.iter().map(|rank| &eligible[rank.index]);
    let stage = stage(scene, best_first, scene.settings.by_choice());
    let mut cluster = WhatIf::new(&stage);
    let mut earlier = pass.commands.iter();
    let moves = |command: &Command| command.method == Method::Drift || !command.placements.is_empty();
    if !cluster.remembers() && earlier.any(moves) {
        for candidate in &eligible {
            stays.entry(candidate.key().clone()).or_insert(Why::Devices);
        }
        return;
    }
    let mut search = Search::new(scene, &mut cluster, &eligible, ranks, ledger, receiving);
    search.run(looked);
    let refused = search.refused();
    let (commands, found) = (search.commands, search.stays);
    pass.commands.extend(commands);
    pass.refused.extend(refused);
    for (node, why) in found {
        stays.entry(node).or_insert(why);
    }
}

/// The cluster prepared for questions about these nodes, which are filled in their order.
pub(crate) fn stage<'s, 'c>(
    scene: Scene<'s>,
    nodes: impl IntoIterator<Item = &'c Candidate>,
    options: Options,
) -> Stage<'s> {
    let nodes: Vec<&Candidate> = nodes.into_iter().collect();
    let moving: FxHashSet<&PodKey> = nodes.iter().flat_map(|candidate| &candidate.moving).collect();
    // They are in order there, and to sort that many names takes long.
    let settled: BTreeSet<PodKey> = scene
        .snapshot
        .pods
        .keys()
        .filter(|pod| moving.contains(pod))
        .cloned()
        .collect();
    let waiting = scene.snapshot.pods_to_place(scene.now);
    let moves = Moves {
        round: Round {
            pods: settled.iter().cloned().chain(waiting).collect(),
            now: scene.now,
            options,
        },
        settled,
        order: nodes.iter().map(|candidate| candidate.key().clone()).collect(),
    };
    Stage::new(scene.snapshot, moves)
}

/// The cluster as it will be after these commands, for those that are decided in the same pass: nodes are gone, and
/// their pods are on the machines that take them.
fn after(snapshot: &Snapshot, commands: &[Command]) -> Snapshot {
    moved(snapshot, commands).without(commands.iter().flat_map(|command| &command.nodes))
}

/// The cluster with pods on the machines that take them, and all nodes still there.
fn moved(snapshot: &Snapshot, commands: &[Command]) -> Snapshot {
    let mut fork = snapshot.clone();
    for placement in commands.iter().flat_map(|command| &command.placements) {
        let Some(name) = snapshot.nodes.get(&placement.node).and_then(|node| node.node_name()) else {
            continue;
        };
        for key in &placement.pods {
            if let Some(pod) = snapshot.pods.get(key) {
                let mut moved = (**pod).clone();
                moved.node = Some(name.clone());
                fork.put_pod(std::sync::Arc::new(moved));
            }
        }
    }
    fork
}
