//! Which nodes a pod may go to, which of them is taken, and why the others are not.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Taint;

use super::{
    board::{Board, Entrant, Spot},
    neighbours::Neighbours,
    node_rules::{admits, tolerates},
    preferences::Preferences,
    ranking::Ranking,
    spread::Spreads,
};
use crate::{
    dice::Dice,
    kubelet::{
        is_ready,
        lifecycle::{NOT_READY, UNSCHEDULABLE},
    },
};

/// Why no node takes a pod: the reasons, and how many nodes each of them rules out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    nodes: usize,
    reasons: BTreeMap<String, usize>,
}

/// In the words of kube-scheduler, which tools and people search for.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        let mut reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, nodes)| format!("{nodes} {reason}"))
            .collect();
        reasons.sort();
        write!(f, "0/{} nodes are available: {}.", self.nodes, reasons.join(", "))
    }
}

/// The node for the pod, as an index into the board.
pub fn choose(board: &Board, entrant: &Entrant, ranking: Ranking, dice: Dice) -> Result<usize, Refusal> {
    let spreads = Spreads::of(board, entrant);
    let neighbours = Neighbours::of(board, entrant);
    let preferences = match ranking {
        Ranking::Preferences => Preferences::of(board, entrant),
        Ranking::LeastAllocated | Ranking::MostAllocated | Ranking::Random => Preferences::default(),
    };
    let mut refusal = Refusal {
        nodes: board.spots.len(),
        ..Refusal::default()
    };
    let mut best: Option<(f64, usize)> = None;
    for (at, spot) in board.spots.iter().enumerate() {
        let refused = own_rules(spot, entrant)
            .or_else(|| spreads.refuses(spot))
            .or_else(|| neighbours.refuses(spot))
            .or_else(|| resources(spot, entrant));
        match refused {
            Some(reasons) => {
                for reason in reasons {
                    *refusal.reasons.entry(reason).or_default() += 1;
                }
            }
            None => {
                let score = ranking.score(spot, entrant, &preferences, dice);
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, at));
                }
            }
        }
    }
    best.map(|(_, at)| at).ok_or(refusal)
}

/// What concerns this pod and this node alone.
fn own_rules(spot: &Spot, entrant: &Entrant) -> Option<Vec<String>> {
    let spec = entrant.raw.spec.as_ref()?;
    if spot.facts.unschedulable && !tolerates(spec, &taint(UNSCHEDULABLE)) {
        return Some(vec!["node(s) were unschedulable".into()]);
    }
    // Admission taints every new node until its kubelet reports; here the node's state counts, so that no pod slips in
    // between the node's creation and its taint.
    let silent = (!is_ready(&spot.node)).then(|| taint(NOT_READY));
    let taints = spot
        .node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .chain(&silent);
    let mut hard = taints.filter(|taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute");
    if let Some(taint) = hard.find(|taint| !tolerates(spec, taint)) {
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(vec![format!(
            "node(s) had untolerated taint {{{}: {value}}}",
            taint.key
        )]);
    }
    if !admits(spec, &spot.node) {
        return Some(vec!["node(s) didn't match Pod's node affinity/selector".into()]);
    }
    let taken = |port| spot.ports.iter().any(|other| other.conflicts_with(port));
    if entrant.pod.shape.host_ports.iter().any(taken) {
        return Some(vec![
            "node(s) didn't have free ports for the requested pod ports".into(),
        ]);
    }
    None
}

fn taint(key: &str) -> Taint {
    Taint {
        key: key.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }
}

fn resources(spot: &Spot, entrant: &Entrant) -> Option<Vec<String>> {
    let requests = entrant.pod.shape.requests.iter();
    // A node that is already overdrawn in one resource still takes pods that ask for none of it.
    let short = requests.filter(|(name, amount)| !amount.is_zero() && *amount > spot.free.get(name.as_str()));
    let reasons: Vec<String> = short
        .map(|(name, _)| match name.as_str() {
            "pods" => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        })
        .collect();
    (!reasons.is_empty()).then_some(reasons)
}
