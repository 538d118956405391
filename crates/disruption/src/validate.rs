//! Whether commands still hold a while after they were decided.
//!
//! In between a pod may have been bound, a node nominated, a budget closed, a price raised. What no longer holds is not
//! carried out; the next pass decides anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::Timestamp;
use model::{NodeKey, Snapshot};
use scheduler::{Answer, Launch, Placement, Plan, Search, WhatIf};

use crate::{
    Blocked, Candidate, Class, Command, Ledger, Method, Prices, Settings,
    candidate::{candidates, likely_to_stay},
    consolidation::{self, search::lands_on_starting},
    emptiness, pass,
    prices::{cheapest, worst},
    settings::Scene,
    stay::{Stay, Why},
};

/// What has come in between, by the words that events use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// A budget is used up, or pods are on their way to a node.
    Budget,
    /// The pods would go elsewhere now, or nowhere.
    Scheduling,
    /// A node is not what it was.
    Churn,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Budget => "budget",
            Obstacle::Scheduling => "scheduling",
            Obstacle::Churn => "churn",
        })
    }
}

/// A command, and nodes of it, that must not be carried out any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    pub command: Command,
    pub nodes: Vec<NodeKey>,
    pub obstacle: Obstacle,
}

/// What is left of commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validated {
    pub commands: Vec<Command>,
    pub rejected: Vec<Rejection>,
}

/// Looks again at commands, on the cluster as it is now. Deletions of empty nodes lose single nodes; all other commands
/// hold as a whole or not at all.
pub fn validate(
    snapshot: &Snapshot,
    settings: &Settings,
    proposed: Vec<Command>,
    taken: &BTreeSet<NodeKey>,
    now: Timestamp,
) -> Validated {
    let prices = Prices::new(snapshot);
    let scene = Scene {
        snapshot,
        prices: &prices,
        settings,
        now,
    };
    let (free, stays) = candidates(snapshot, &prices, Class::Graceful, taken, now);
    let free: BTreeMap<&NodeKey, &Candidate> = free.iter().map(|candidate| (candidate.key(), candidate)).collect();
    let wanted: BTreeSet<&NodeKey> = proposed.iter().flat_map(|command| &command.nodes).collect();
    let moving = free
        .values()
        .copied()
        .filter(|candidate| wanted.contains(candidate.key()));
    let stage = pass::stage(scene, likely_to_stay(moving), settings.by_choice());
    let mut cluster = WhatIf::new(&stage);
    // Pods do not move to nodes that are to go as well.
    let going: Vec<NodeKey> = wanted.into_iter().cloned().collect();
    cluster.close(&going);
    let mut review = Review {
        scene,
        free: &free,
        stays: stays.iter().map(|stay| (&stay.node, stay)).collect(),
        ledger: Ledger::open(snapshot, now),
        cluster,
        validated: Validated::default(),
    };
    for command in proposed {
        match command.method {
            Method::Emptiness => review.empty(command),
            Method::Consolidation => review.consolidation(command),
            Method::StaticDrift | Method::Drift => review.validated.commands.push(command),
        }
    }
    review.validated
}

struct Review<'a, 'c> {
    scene: Scene<'a>,
    free: &'c BTreeMap<&'c NodeKey, &'c Candidate>,
    stays: BTreeMap<&'c NodeKey, &'c Stay>,
    ledger: Ledger,
    cluster: WhatIf<'a>,
    validated: Validated,
}

impl<'c> Review<'_, 'c> {
    fn empty(&mut self, command: Command) {
        let (mut going, mut moves) = (Vec::new(), Vec::new());
        let mut dropped: BTreeMap<Obstacle, Vec<NodeKey>> = BTreeMap::new();
        for node in &command.nodes {
            match self.still_empty(node, &command.placements) {
                Ok((candidate, moved)) => {
                    going.push(candidate);
                    moves.extend(moved);
                }
                Err(obstacle) => dropped.entry(obstacle).or_default().push(node.clone()),
            }
        }
        if !going.is_empty() {
            self.validated.commands.push(emptiness::deletion(&going, moves));
        }
        for (obstacle, nodes) in dropped {
            self.validated.rejected.push(Rejection {
                command: command.clone(),
                nodes,
                obstacle,
            });
        }
    }

    /// The node, and where its pods go.
    fn still_empty(
        &mut self,
        node: &NodeKey,
        decided: &[Placement],
    ) -> Result<(&'c Candidate, Vec<Placement>), Obstacle> {
        let candidate = *self.free.get(node).ok_or_else(|| self.obstacle(node))?;
        if !candidate.is_empty() || emptiness::eligible(candidate, self.scene.now).is_err() {
            return Err(Obstacle::Churn);
        }
        let (pool, reason) = (&candidate.pool.name, Method::Emptiness.reason());
        if self.ledger.left(pool, reason) == 0 {
            return Err(Obstacle::Budget);
        }
        let moved = if candidate.pods.is_empty() {
            Some(Vec::new())
        } else {
            emptiness::moved(self.scene, candidate, &mut self.cluster, Search::Again(decided))
        };
        let moved = moved.ok_or(Obstacle::Scheduling)?;
        self.ledger.take(pool, reason);
        Ok((candidate, moved))
    }

    fn consolidation(&mut self, command: Command) {
        match self.still_worth_it(&command) {
            Ok(command) => self.validated.commands.push(command),
            Err(obstacle) => self.validated.rejected.push(Rejection {
                nodes: command.nodes.clone(),
                command,
                obstacle,
            }),
        }
    }

    fn still_worth_it(&mut self, command: &Command) -> Result<Command, Obstacle> {
        let mut candidates = Vec::new();
        for node in &command.nodes {
            let candidate = *self.free.get(node).ok_or_else(|| self.obstacle(node))?;
            if candidate.pods.is_empty() || consolidation::eligible(candidate, self.scene.now).is_err() {
                return Err(Obstacle::Churn);
            }
            candidates.push(candidate);
        }
        let pools = candidates.iter().map(|candidate| &candidate.pool.name);
        if !self.ledger.admits(pools.clone(), command.reason()) {
            return Err(Obstacle::Budget);
        }
        let mut earlier = self.validated.commands.iter();
        if !self.cluster.remembers() && earlier.any(|earlier| !earlier.placements.is_empty()) {
            return Err(Obstacle::Scheduling);
        }
        let search = Search::Again(&command.placements);
        let Answer::Plan(plan) = self.cluster.ask(&command.nodes, search) else {
            return Err(Obstacle::Scheduling);
        };
        let price: f64 = candidates.iter().map(|candidate| candidate.price).sum();
        let launches = || command.replacements.iter();
        let dearest: Option<f64> = launches().map(|launch| self.dearest(launch)).sum();
        let cheapest: Option<f64> = launches().map(|launch| self.cheapest(launch)).sum();
        let (Some(dearest), Some(cheapest)) = (dearest, cheapest) else {
            return Err(Obstacle::Scheduling);
        };
        let cheaper = command.replacements.is_empty() || dearest < price;
        if !cheaper || lands_on_starting(self.scene, &plan).is_some() || !covers(&plan, &command.replacements) {
            return Err(Obstacle::Scheduling);
        }
        // Only now: what does not hold takes no room from the commands after it.
        self.cluster.keep(&command.nodes, search);
        self.ledger.take_all(pools, command.reason());
        Ok(Command {
            pods: candidates.iter().map(|candidate| candidate.pods.len()).sum(),
            placements: plan.placements,
            saving: price - cheapest,
            ..command.clone()
        })
    }

    /// What a launch may cost at the prices of now, whatever the cloud chooses. Nothing when it cannot be had.
    fn dearest(&self, launch: &Launch) -> Option<f64> {
        let kinds = self.scene.prices.kinds(launch);
        let worsts = kinds.filter_map(|kind| worst(kind, &launch.requirements));
        worsts.map(|worst| worst.price).max_by(f64::total_cmp)
    }

    /// What it costs at the prices of now if the cloud has the best of what is asked for. Nothing when it cannot be had.
    fn cheapest(&self, launch: &Launch) -> Option<f64> {
        let kinds = self.scene.prices.kinds(launch);
        let offers = kinds.filter_map(|kind| cheapest(kind, &launch.requirements));
        offers.map(|offering| offering.price).min_by(f64::total_cmp)
    }

    /// A node that is not free any more: pods that are on their way count as a budget that is used up.
    fn obstacle(&self, node: &NodeKey) -> Obstacle {
        match self.stays.get(node).map(|stay| &stay.why) {
            Some(Why::Blocked(Blocked::Nominated(_))) => Obstacle::Budget,
            _ => Obstacle::Churn,
        }
    }
}

/// Whether what would be launched now could be what the command launches: as many nodes, each with room on any of the
/// types that the command lists.
fn covers(plan: &Plan, replacements: &[Launch]) -> bool {
    let fits = |fresh: &Launch, decided: &Launch| {
        let options: BTreeSet<_> = fresh.instance_types.iter().collect();
        fresh.pool == decided.pool && decided.instance_types.iter().all(|name| options.contains(name))
    };
    plan.launches.len() == replacements.len()
        && plan
            .launches
            .iter()
            .zip(replacements)
            .all(|(fresh, decided)| fits(fresh, decided))
}
