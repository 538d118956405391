//! From a snapshot and a round to a plan.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeKey, PodKey, Snapshot};
use rustc_hash::FxHashMap;

use crate::{
    audit::guard,
    defaults::with_default_spreads,
    dra::Devices,
    finish::Finisher,
    greedy::Greedy,
    pack,
    plan::{Placement, Plan},
    problem::Problem,
    refusal::Refusal,
    round::Round,
    zones,
};

/// Finds a place for every pod of the round, or says why there is none.
///
/// # Guarantees
///
/// - Pure: the plan depends on the arguments alone, and not on the order of the round's pods.
/// - Every pod of the round is in exactly one place of the plan: on a launch, on a machine, or among the refusals.
/// - The plan survives [`audit`](crate::audit). In particular no pool's limits can be exceeded, whichever of its
///   instance types each launch turns out to be.
///
/// # Cost
///
/// About linear in pods, machines and launches. What is asked of labels, taints and instance types is asked once per
/// different set of them; a pod looks only at machines that may still have room for its like.
pub fn solve(snapshot: &Snapshot, round: &Round) -> Plan {
    solve_around(snapshot, round, &BTreeSet::new())
}

/// As [`solve`], and none of these machines takes a pod: they stay as they are, with the pods that they have.
pub(crate) fn solve_around(snapshot: &Snapshot, round: &Round, closed: &BTreeSet<&NodeKey>) -> Plan {
    let snapshot = &*with_default_spreads(snapshot, round);
    let mut cut = BTreeMap::new();
    let mut zones = None;
    for _ in 0..ATTEMPTS {
        let problem = Problem::new(snapshot, round, &cut);
        let zones = zones.get_or_insert_with(|| zones::count(&problem));
        let attempt = attempt(problem, closed);
        if attempt.cut.is_empty() {
            return Plan {
                zones: std::mem::take(zones),
                ..attempt.plan
            };
        }
        cut.extend(attempt.cut);
    }
    let Attempt { mut plan, cut: last } = attempt(Problem::new(snapshot, round, &cut), closed);
    plan.refusals.extend(last);
    plan.zones = zones.unwrap_or_default();
    guard(snapshot, plan).0
}

/// How often a round is begun anew because a launch came to nothing when its instance types were cut to the cheapest:
/// others may have counted on its pods. Once is nearly always enough. After that the audit's guard takes out those who
/// did, which may be more than necessary.
const ATTEMPTS: usize = 4;

/// A plan, and the pods whose launches came to nothing.
struct Attempt {
    plan: Plan,
    cut: BTreeMap<PodKey, Refusal>,
}

fn attempt(problem: Problem<'_>, closed: &BTreeSet<&NodeKey>) -> Attempt {
    let mut greedy = Greedy::new(problem);
    for (index, machine) in greedy.problem.machines.all.iter().enumerate() {
        if closed.contains(machine.key()) {
            greedy.gone.insert(index);
        }
    }
    greedy.run();
    pack::improve(&mut greedy);
    let mut plan = Plan {
        refusals: std::mem::take(&mut greedy.problem.refusals),
        ..Plan::default()
    };
    refuse(&mut greedy, &mut plan);
    let opens = std::mem::take(&mut greedy.opens);
    let mut finisher = Finisher::default();
    let mut cut = BTreeMap::new();
    for open in &opens {
        match finisher.finish(&mut greedy.problem, open) {
            Ok(launch) => plan.launches.push(launch),
            Err(lacking) => {
                let refusal = Refusal::Truncated {
                    pool: greedy.problem.templates[open.template].pool.name.clone(),
                    lacking,
                };
                let pods = open
                    .pods
                    .iter()
                    .map(|seat| &greedy.problem.members[seat.member].pod.key);
                cut.extend(pods.map(|pod| (pod.clone(), refusal.clone())));
            }
        }
    }
    let members = &greedy.problem.members;
    let taken = greedy
        .problem
        .machines
        .all
        .iter()
        .filter(|machine| !machine.pods.is_empty());
    plan.placements = taken
        .map(|machine| Placement {
            node: machine.key().clone(),
            pods: machine.pods.iter().map(|pod| members[*pod].pod.key.clone()).collect(),
        })
        .collect();
    plan.placements.sort_by(|a, b| a.node.cmp(&b.node));
    plan.devices = greedy
        .problem
        .devices
        .as_ref()
        .map(Devices::results)
        .unwrap_or_default();
    Attempt { plan, cut }
}

/// Pods of one class are refused for one reason.
fn refuse(greedy: &mut Greedy<'_>, plan: &mut Plan) {
    let awaiting: BTreeSet<usize> = greedy.awaiting.iter().copied().collect();
    let mut known: FxHashMap<usize, Refusal> = FxHashMap::default();
    for member in std::mem::take(&mut greedy.unplaced) {
        let class = greedy.problem.members[member].class;
        let refusal = if awaiting.contains(&member) {
            Refusal::AwaitsReservation
        } else {
            known.entry(class).or_insert_with(|| greedy.refusal(member)).clone()
        };
        plan.refusals
            .insert(greedy.problem.members[member].pod.key.clone(), refusal);
    }
}
