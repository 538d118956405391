//! First fit, class by class: what is there, then what is being opened, then something new.

use std::collections::{BTreeMap, BTreeSet};

use model::{Effect, Pod, PodKey, PoolName, Snapshot};

use crate::{
    class::{Class, Way, classes},
    finish::finish,
    machine::{Machine, machines},
    open::{Admission, Open},
    plan::{Placement, Plan},
    refusal::{PoolRefusal, Refusal},
    round::Round,
    rules::Unsupported,
    template::{Template, templates},
    volumes,
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
/// # What it does not know
///
/// Topology spread, rules between pods, volumes and reserved capacity. A pod that insists on one of them is refused with
/// [`Refusal::Unsupported`]; preferences are passed over.
///
/// # Cost
///
/// A class of like pods meets every machine and every open launch once, because neither ever gets emptier or wider in a
/// round: O(classes × (machines + launches × instance types) + pods). The number of classes is the number of different
/// pod templates, not of pods.
pub fn solve(snapshot: &Snapshot, round: &Round) -> Plan {
    let mut plan = Plan::default();
    let pods = supported(snapshot, round, &mut plan);
    let mut bench = Bench {
        snapshot,
        round,
        templates: templates(snapshot),
        machines: machines(snapshot),
        launches: Vec::new(),
    };
    let discouraged = bench.discourages();
    for class in classes(pods, discouraged) {
        bench.place(class, &mut plan);
    }
    bench.finish(&mut plan);
    plan
}

/// The round's pods that this solver can place; the others are refused right away.
fn supported<'a>(snapshot: &'a Snapshot, round: &Round, plan: &mut Plan) -> Vec<&'a Pod> {
    let keys: BTreeSet<&PodKey> = round.pods.iter().collect();
    let unsupported = Unsupported::new(snapshot, &keys);
    let mut pods = Vec::with_capacity(keys.len());
    for key in keys {
        let refusal = match snapshot.pods.get(key) {
            None => Refusal::Unknown,
            Some(pod) => match (volumes::resolve(snapshot, pod), unsupported.rule_for(pod)) {
                (Err(reason), _) => Refusal::Volume(reason),
                (Ok(_), Some(rule)) => Refusal::Unsupported(rule),
                (Ok(_), None) => {
                    pods.push(pod.as_ref());
                    continue;
                }
            },
        };
        plan.refusals.insert(key.clone(), refusal);
    }
    pods
}

/// Everything that can take pods, as it fills up.
struct Bench<'a> {
    snapshot: &'a Snapshot,
    round: &'a Round,
    templates: Vec<Template<'a>>,
    machines: Vec<Machine<'a>>,
    launches: Vec<Open>,
}

/// How far a class has looked for a place in one of its ways. What has refused once is not asked again.
struct Search {
    /// Machines before this one have refused.
    machine: usize,
    /// Launches that have not refused yet, those with the fewest pods first.
    launches: BTreeSet<(usize, usize)>,
    /// Pools that have refused, by their position.
    refused: BTreeMap<usize, PoolRefusal>,
}

enum Found {
    Machine(usize, usize),
    Launch(usize, Admission),
    New(Open, Admission),
}

impl<'a> Bench<'a> {
    /// Whether any taint merely discourages. Only then it makes sense to try again with a toleration for such taints.
    fn discourages(&self) -> bool {
        let pools = self.templates.iter().filter(|template| template.barred.is_none());
        let mut taints = pools.flat_map(|template| &template.pool.template.taints);
        taints.any(|taint| taint.effect == Effect::PreferNoSchedule) || self.machines.iter().any(Machine::discourages)
    }

    fn place(&mut self, class: Class, plan: &mut Plan) {
        let launches: BTreeSet<(usize, usize)> = self
            .launches
            .iter()
            .enumerate()
            .map(|(index, open)| (open.pods.len(), index))
            .collect();
        let start = || Search {
            machine: 0,
            launches: launches.clone(),
            refused: BTreeMap::new(),
        };
        let mut searches: Vec<Search> = class.needs.ways.iter().map(|_| start()).collect();
        let mut waiting = class.pods.as_slice();
        while !waiting.is_empty() {
            let mut ways = class.needs.ways.iter().zip(&mut searches);
            let Some(found) = ways.find_map(|(way, search)| self.find(&class, way, search, waiting.len())) else {
                let refusal = self.refusal(searches.pop());
                plan.refusals
                    .extend(waiting.iter().map(|pod| (pod.clone(), refusal.clone())));
                return;
            };
            waiting = self.put(&class, found, waiting, &mut searches);
        }
    }

    /// The first place that takes at least one pod of the class, and how many it takes before another place's turn comes.
    fn find(&self, class: &Class, way: &Way, search: &mut Search, waiting: usize) -> Option<Found> {
        let needs = &class.needs;
        while let Some(machine) = self.machines.get(search.machine) {
            match machine.room_for(needs, way, waiting) {
                0 => search.machine += 1,
                count => return Some(Found::Machine(search.machine, count)),
            }
        }
        let policy = self.round.options.min_values_policy;
        while let Some((pods, index)) = search.launches.first().copied() {
            // It is this launch's turn until it has more pods than the next.
            let turn = search
                .launches
                .iter()
                .nth(1)
                .map_or(waiting, |(next, _)| (next - pods).max(1).min(waiting));
            let open = &self.launches[index];
            match open.admit(self.snapshot, &self.templates[open.template], needs, way, turn, policy) {
                Ok(admission) => return Some(Found::Launch(index, admission)),
                Err(_) => search.launches.pop_first(),
            };
        }
        for (index, template) in self.templates.iter().enumerate() {
            if search.refused.contains_key(&index) {
                continue;
            }
            let opened = Open::new(index, template).and_then(|open| {
                let admission = open.admit(self.snapshot, template, needs, way, waiting, policy)?;
                Ok(Found::New(open, admission))
            });
            match opened {
                Ok(found) => return Some(found),
                Err(reason) => search.refused.insert(index, reason),
            };
        }
        None
    }

    /// Puts pods where a place was found and returns those that still wait.
    fn put<'p>(&mut self, class: &Class, found: Found, waiting: &'p [PodKey], searches: &mut [Search]) -> &'p [PodKey] {
        let (index, admission, before) = match found {
            Found::Machine(index, count) => {
                let (pods, rest) = waiting.split_at(count);
                self.machines[index].put(&class.needs, pods);
                return rest;
            }
            Found::Launch(index, admission) => (index, admission, Some(self.launches[index].pods.len())),
            Found::New(open, admission) => {
                self.launches.push(open);
                (self.launches.len() - 1, admission, None)
            }
        };
        let (pods, rest) = waiting.split_at(admission.count);
        let open = &mut self.launches[index];
        open.take(&mut self.templates[open.template], &class.needs, admission, pods);
        for search in searches {
            // A launch that has refused a way before does not come back; a new one is open to all ways.
            if before.is_none_or(|before| search.launches.remove(&(before, index))) {
                search.launches.insert((open.pods.len(), index));
            }
        }
        rest
    }

    fn refusal(&self, last: Option<Search>) -> Refusal {
        let refused = last.map(|search| search.refused).unwrap_or_default();
        let named = |(index, reason): (usize, PoolRefusal)| (self.templates[index].pool.name.clone(), reason);
        Refusal::Pools(refused.into_iter().map(named).collect::<Vec<(PoolName, PoolRefusal)>>())
    }

    fn finish(self, plan: &mut Plan) {
        for open in self.launches {
            let template = &self.templates[open.template];
            let pods = open.pods.clone();
            match finish(self.snapshot, template, open, &self.round.options) {
                Ok(launch) => plan.launches.push(launch),
                Err(lacking) => {
                    let refusal = Refusal::Truncated {
                        pool: template.pool.name.clone(),
                        lacking,
                    };
                    plan.refusals.extend(pods.into_iter().map(|pod| (pod, refusal.clone())));
                }
            }
        }
        let taken = self.machines.into_iter().filter(|machine| !machine.pods.is_empty());
        plan.placements = taken
            .map(|machine| Placement {
                node: machine.key.clone(),
                pods: machine.pods,
            })
            .collect();
        plan.placements.sort_by(|a, b| a.node.cmp(&b.node));
    }
}
