//! Replaces nodes that no longer are what their pool or node class asks for.
//!
//! As many at once as the budgets allow, those first that have been drifted for longest. Their pods keep away from other
//! drifted nodes: whoever moves there would move again soon.
//!
//! - [`detect`]: whether a claim has drifted.
//! - [`fixed`](self::fixed): pools with a fixed number of nodes, which replace one for one.

pub mod detect;
pub(crate) mod fixed;

use std::collections::BTreeSet;

use model::{NodeKey, Pool, budget::DisruptionReason};
use scheduler::{Answer, Search, WhatIf};

use crate::{
    Candidate, Command, Ledger, Method,
    consolidation::search::lands_on_starting,
    settings::Scene,
    stay::{Stay, Why},
};

/// Drifted nodes of such pools: empty ones first, then the oldest drift, then by name.
pub(crate) fn in_order(candidates: &[Candidate], of: impl Fn(&Pool) -> bool) -> Vec<&Candidate> {
    let mut drifted: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| of(&candidate.pool) && candidate.node.has_drifted())
        .collect();
    drifted.sort_by_key(|candidate| {
        let since = candidate.node.claim.as_ref().and_then(|claim| claim.drifted_at);
        (!candidate.pods.is_empty(), since, candidate.key().clone())
    });
    drifted
}

/// What was decided about drifted nodes.
#[derive(Debug, Default)]
pub(crate) struct Drifting {
    pub commands: Vec<Command>,
    pub stays: Vec<Stay>,
    /// Nodes that pods are moved to.
    pub receiving: BTreeSet<NodeKey>,
}

/// One command for each drifted node that the budgets let go and whose pods find a place. `receiving` are nodes that pods are
/// moved to already.
pub(crate) fn decide<'a>(
    scene: Scene<'a>,
    drifted: &[&Candidate],
    cluster: &mut WhatIf<'a>,
    ledger: &mut Ledger,
    receiving: BTreeSet<NodeKey>,
) -> Drifting {
    let reason = DisruptionReason::Drifted;
    let moved = !receiving.is_empty();
    let mut drifting = Drifting {
        receiving,
        ..Drifting::default()
    };
    let keys: Vec<NodeKey> = drifted.iter().map(|candidate| candidate.key().clone()).collect();
    cluster.close(&keys);
    for candidate in drifted {
        let pool = &candidate.pool.name;
        let node = candidate.key().clone();
        let refused = if ledger.left(pool, reason) == 0 {
            ledger.refusal(pool, reason)
        } else if !cluster.remembers() && (moved || !drifting.commands.is_empty()) {
            Why::Devices
        } else {
            match replace(scene, candidate, cluster) {
                Ok((command, filled)) => {
                    ledger.take(pool, reason);
                    drifting.receiving.extend(filled);
                    drifting.commands.push(command);
                    continue;
                }
                Err(why) => why,
            }
        };
        drifting.stays.push(Stay { node, why: refused });
    }
    drifting
}

fn replace<'a>(
    scene: Scene<'a>,
    candidate: &Candidate,
    cluster: &mut WhatIf<'a>,
) -> Result<(Command, Vec<NodeKey>), Why> {
    let nodes = vec![candidate.key().clone()];
    let plan = match cluster.ask(&nodes, Search::Packed) {
        Answer::Plan(plan) => plan,
        Answer::Stranded { pod, refusal } => return Err(Why::Stranded { pod, refusal }),
        Answer::TooDear { .. } => unreachable!("no price was asked for"),
    };
    if let Some(why) = lands_on_starting(scene, &plan) {
        return Err(why);
    }
    let (_, filled) = cluster.keep(&nodes, Search::Packed);
    let command = Command {
        method: Method::Drift,
        nodes,
        saving: candidate.price - plan.launch_price(),
        replacements: plan.launches,
        placements: plan.placements,
        pods: candidate.pods.len(),
        scores: Vec::new(),
    };
    Ok((command, filled))
}
