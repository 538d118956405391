//! The plan for programs: what `-o json` prints.

use std::{collections::BTreeMap, time::Duration};

use disruption::{Command, Method, Pass, Prices, Stay};
use model::{NodeKey, Snapshot};
use scheduler::{Choice, Launch, Placement, Plan};
use serde::Serialize;

use super::advance::Ahead;
use crate::input::machine_name;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub start: Fleet,
    pub passes: Vec<PassReport>,
    pub rest: Rest,
    pub total_millis: f64,
    /// What it took to look at one candidate of the first pass alone, on average.
    pub single_candidate_millis: Mean,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mean {
    pub mean: f64,
    pub count: usize,
}

/// The nodes that belong to pools, and what they cost.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    pub nodes: usize,
    pub pods: usize,
    pub price_per_hour: f64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rest {
    #[serde(flatten)]
    pub fleet: Fleet,
    pub pods_disrupted: usize,
    pub nodes_removed: usize,
    pub nodes_launched: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassReport {
    pub candidates: usize,
    pub evaluated: usize,
    /// Until every candidate had been looked at alone, the preparation of the cluster included.
    pub evaluate_millis: f64,
    /// From then on: which of them go, alone or with others.
    pub choose_millis: f64,
    pub commands: Vec<CommandReport>,
    pub stays: Vec<StayReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandReport {
    pub method: &'static str,
    pub removed: Vec<String>,
    pub replacements: Vec<Replacement>,
    pub pods_disrupted: usize,
    pub saves_per_hour: f64,
    pub moves: BTreeMap<String, String>,
    /// Why the nodes have drifted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub price_per_hour: f64,
}

#[derive(Debug, Serialize)]
pub struct StayReport {
    pub node: String,
    pub reason: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

impl Fleet {
    pub fn of(snapshot: &Snapshot) -> Self {
        let prices = Prices::new(snapshot);
        let managed: Vec<_> = snapshot.nodes.values().filter(|node| node.pool().is_some()).collect();
        let pods = managed.iter().flat_map(|node| snapshot.pods_of(node));
        Self {
            nodes: managed.len(),
            pods: pods.filter(|pod| pod.is_reschedulable()).count(),
            price_per_hour: managed
                .iter()
                .filter_map(|node| prices.of(node))
                .fold(0.0, |sum, price| sum + price),
        }
    }
}

impl Report {
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            start: Fleet::of(snapshot),
            passes: Vec::new(),
            rest: Rest::default(),
            total_millis: 0.0,
            single_candidate_millis: Mean::default(),
        }
    }

    pub fn finish(&mut self, ahead: &Ahead, took: Duration) {
        self.rest = Rest {
            fleet: Fleet::of(&ahead.snapshot),
            pods_disrupted: ahead.evictions,
            nodes_removed: ahead.removed.len(),
            nodes_launched: ahead.launched.len(),
        };
        self.total_millis = millis(took);
        if let Some(first) = self.passes.first().filter(|pass| pass.evaluated > 0) {
            self.single_candidate_millis = Mean {
                mean: first.evaluate_millis / first.evaluated as f64,
                count: first.evaluated,
            };
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

impl PassReport {
    pub fn new(snapshot: &Snapshot, pass: &Pass, looked: Duration, took: Duration) -> Self {
        Self {
            candidates: pass.candidates,
            evaluated: pass.candidates,
            evaluate_millis: millis(looked),
            choose_millis: millis(took.saturating_sub(looked)),
            commands: pass.commands.iter().map(|command| report(snapshot, command)).collect(),
            stays: pass.stays.iter().map(|stay| staying(snapshot, stay)).collect(),
        }
    }

    /// Pods that wait come before everything else.
    pub fn provision(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let command = CommandReport {
            method: "provisioning",
            removed: Vec::new(),
            replacements: plan.launches.iter().map(|launch| replacement(&launch.choice)).collect(),
            pods_disrupted: 0,
            saves_per_hour: -plan.launch_price(),
            moves: moves(snapshot, &plan.placements, &plan.launches),
            drift: Vec::new(),
        };
        self.commands.insert(0, command);
    }
}

fn report(snapshot: &Snapshot, command: &Command) -> CommandReport {
    let machines = command.nodes.iter().filter_map(|key| snapshot.nodes.get(key));
    let drift = machines.filter_map(|machine| machine.claim.as_ref()?.drifted.clone());
    let drifted = matches!(command.method, Method::StaticDrift | Method::Drift);
    CommandReport {
        method: match command.method {
            Method::Emptiness => "emptiness",
            Method::StaticDrift => "staticDrift",
            Method::Drift => "drift",
            Method::Consolidation => "consolidation",
        },
        removed: names(snapshot, &command.nodes),
        replacements: command
            .replacements
            .iter()
            .map(|launch| replacement(&launch.choice))
            .collect(),
        pods_disrupted: command.pods,
        saves_per_hour: command.saving,
        moves: moves(snapshot, &command.placements, &command.replacements),
        drift: if drifted { drift.collect() } else { Vec::new() },
    }
}

fn names(snapshot: &Snapshot, keys: &[NodeKey]) -> Vec<String> {
    keys.iter().map(|key| machine_name(snapshot, key).to_owned()).collect()
}

fn replacement(choice: &Choice) -> Replacement {
    Replacement {
        instance_type: choice.instance_type.to_string(),
        zone: choice.zone.to_string(),
        capacity_type: choice.capacity_type.to_string(),
        price_per_hour: choice.price,
    }
}

/// Each pod and the machine that it goes to; new ones are counted within the command.
fn moves(snapshot: &Snapshot, placements: &[Placement], launches: &[Launch]) -> BTreeMap<String, String> {
    let placed = placements.iter().flat_map(|placement| {
        let node = machine_name(snapshot, &placement.node).to_owned();
        placement.pods.iter().map(move |pod| (pod.to_string(), node.clone()))
    });
    let launched = launches.iter().enumerate().flat_map(|(index, launch)| {
        let node = format!("new-{}", index + 1);
        launch.pods.iter().map(move |pod| (pod.to_string(), node.clone()))
    });
    placed.chain(launched).collect()
}

fn staying(snapshot: &Snapshot, stay: &Stay) -> StayReport {
    StayReport {
        node: machine_name(snapshot, &stay.node).to_owned(),
        reason: stay.why.word(),
        message: stay.why.to_string(),
        object: stay.why.object(),
    }
}
