//! Removes nodes that host nothing worth moving.

use jiff::Timestamp;
use model::budget::DisruptionReason;

use crate::{
    Candidate, Command, Ledger, Method,
    candidate::likely_to_stay,
    consolidation::settling,
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

/// One deletion of all empty nodes that the budgets let go, dearest first, then by name. Nodes that a capacity buffer
/// counts on stay.
pub(crate) fn decide(
    candidates: &[Candidate],
    ledger: &mut Ledger,
    now: Timestamp,
) -> (Option<Command>, Vec<Stay>, usize) {
    let mut stays = Vec::new();
    let mut chosen = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.is_empty()) {
        match eligible(candidate, now) {
            Ok(()) => chosen.push(candidate),
            Err(why) => stays.push(Stay {
                node: candidate.key().clone(),
                why,
            }),
        }
    }
    let count = chosen.len();
    let reason = DisruptionReason::Empty;
    let mut going = Vec::new();
    for candidate in likely_to_stay(chosen).into_iter().rev() {
        if ledger.take(&candidate.pool.name, reason) {
            going.push(candidate);
        } else {
            stays.push(Stay {
                node: candidate.key().clone(),
                why: ledger.refusal(&candidate.pool.name, reason),
            });
        }
    }
    let command = (!going.is_empty()).then(|| deletion(&going));
    (command, stays, count)
}

pub(crate) fn deletion(going: &[&Candidate]) -> Command {
    Command {
        method: Method::Emptiness,
        nodes: going.iter().map(|candidate| candidate.key().clone()).collect(),
        replacements: Vec::new(),
        placements: Vec::new(),
        pods: going.iter().map(|candidate| candidate.pods.len()).sum(),
        saving: going
            .iter()
            .map(|candidate| candidate.price)
            .fold(0.0, |sum, price| sum + price),
        scores: Vec::new(),
    }
}
