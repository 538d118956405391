//! What if these machines were gone? Asked thousands of times of one cluster.
//!
//! The cluster is prepared once, with every pod that may have to move sorted into its class and counted where it is. A
//! question takes machines away, looks for places for their pods alone, and takes everything back. It costs what those
//! pods cost, whatever the size of the cluster.
//!
//! ```text
//!  prepare ──► ask(a) ─undo─► ask(b) ─undo─► ask(a, c) ──► keep ──► ask(d) …
//!                                                          the machines are gone from here on, their pods moved
//! ```

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use model::{NodeKey, Pod, PodKey, Snapshot, pod::PodShape};
use rustc_hash::FxHashMap;

use crate::{
    bits::Bits,
    defaults::with_default_spreads,
    finish::Finisher,
    greedy::{Greedy, Outcome, Spot},
    limits::{Balance, Limits},
    machine::Machines,
    pack,
    plan::{Placement, Plan},
    problem::{Problem, Settled},
    refusal::Refusal,
    reservations::Reservations,
    round::Round,
    solve::solve_around,
    topology::{Axis, GroupId},
};

/// What is prepared, and for whom.
#[derive(Clone, Debug)]
pub struct Moves {
    /// The pods that wait for a place in any case, and every pod that may have to move.
    pub round: Round,
    /// Those of the round's pods that have a place now.
    pub settled: BTreeSet<PodKey>,
    /// The machines in the order in which they are to be filled; those that are not listed come first.
    pub order: Vec<NodeKey>,
}

/// A cluster as questions have to see it: with the default spreads of its pods, as the solver sees it.
#[derive(Clone, Debug)]
pub struct Stage<'s> {
    snapshot: Cow<'s, Snapshot>,
    moves: Moves,
}

impl<'s> Stage<'s> {
    pub fn new(snapshot: &'s Snapshot, moves: Moves) -> Self {
        Self {
            snapshot: with_default_spreads(snapshot, &moves.round),
            moves,
        }
    }
}

/// How to look for places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Search<'p> {
    /// The first place for each pod; one launch after the other, and no further than until they cost this much together.
    Below(f64),
    /// The first place for each pod; the launches are packed as the solver packs them.
    Packed,
    /// Machine after machine is filled with the pods that suit it best, of equal pods those first whose machine was named
    /// first; the launches for the others are packed.
    Filled,
    /// Where an earlier answer put the pods, as far as that still holds; the launches for the others are packed. Where devices
    /// are promised, places are looked for as if there had been no earlier answer.
    Again(&'p [Placement]),
}

/// What would happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Every pod finds a place.
    Plan(Plan),
    /// This one finds none.
    Stranded { pod: PodKey, refusal: Refusal },
    /// What would have to be launched costs this much or more per hour, which is not below what was asked for.
    TooDear { price: f64 },
}

/// A cluster that can be asked.
pub struct WhatIf<'a> {
    greedy: Greedy<'a>,
    finisher: Finisher,
    /// By the number of the machine.
    machines: FxHashMap<NodeKey, usize>,
    residents: Vec<Residents>,
    /// Machines that stay and take no pods.
    closed: Bits,
    /// Devices are promised across machines, so that such clusters are prepared anew for every question.
    anew: Option<(&'a Snapshot, &'a Round)>,
}

/// Who has to move when a machine goes.
#[derive(Clone, Debug, Default)]
struct Residents {
    /// Pods of the round, with the groups that count them here.
    members: Vec<usize>,
    /// Pods of the round that cannot be moved at all.
    refused: Vec<PodKey>,
    counted: Vec<(GroupId, Spot)>,
}

/// What a question may change besides the journal.
struct Shared<'a> {
    balances: Vec<Option<Balance>>,
    reservations: Reservations<'a>,
}

impl<'a> WhatIf<'a> {
    /// Prepares the cluster, and puts the pods that wait in any case where there is room for them.
    pub fn new(stage: &'a Stage<'_>) -> Self {
        let (snapshot, moves) = (&*stage.snapshot, &stage.moves);
        let numbers = moves.order.iter().enumerate();
        let settled = Settled {
            pods: moves.settled.iter().collect(),
            order: numbers.map(|(number, key)| (key, number + 1)).collect(),
        };
        let problem = Problem::settled(snapshot, &moves.round, &settled);
        let anew = problem.devices.is_some().then_some((snapshot, &moves.round));
        let machines = problem.machines.all.iter().enumerate();
        let machines = machines
            .map(|(index, machine)| (machine.key().clone(), index))
            .collect();
        let members = problem.members.iter().enumerate();
        let (at_home, waiting): (Vec<_>, Vec<_>) = members
            .map(|(number, member)| (number, member.pod))
            .partition(|(_, pod)| settled.pods.contains(&pod.key));
        let mut residents = residents(&problem, &settled, &at_home);
        let mut greedy = Greedy::new(problem);
        greedy.closed = true;
        for (member, _) in waiting {
            greedy.place(member);
        }
        for (machine, residents) in greedy.problem.machines.all.iter_mut().zip(&mut residents) {
            residents.members.append(&mut machine.pods);
        }
        greedy.closed = false;
        greedy.journal = Some(Vec::new());
        Self {
            greedy,
            finisher: Finisher::default(),
            machines,
            residents,
            closed: Bits::default(),
            anew,
        }
    }

    /// Machines that stay and take no pods from now on.
    pub fn close(&mut self, machines: &[NodeKey]) {
        for index in machines.iter().filter_map(|key| self.machines.get(key)) {
            self.closed.insert(*index);
            self.greedy.gone.insert(*index);
        }
    }

    /// Takes back what [`close`](Self::close) did to machines.
    pub fn reopen(&mut self, machines: &[NodeKey]) {
        for index in machines.iter().filter_map(|key| self.machines.get(key)) {
            self.closed.remove(*index);
            self.greedy.bring_back(*index);
        }
    }

    /// Whether later questions know what was kept. Where devices are promised they do not: only the first answer that is
    /// kept can be relied upon.
    pub fn remembers(&self) -> bool {
        self.anew.is_none()
    }

    /// What would happen if these machines were gone. Nothing is changed by it.
    pub fn ask(&mut self, without: &[NodeKey], search: Search<'_>) -> Answer {
        if let Some((snapshot, round)) = self.anew {
            return self.ask_anew(snapshot, round, without, search);
        }
        let shared = self.share();
        let answer = self.place_residents(without, search);
        self.greedy.undo();
        self.bring_back(without);
        self.restore(shared);
        answer
    }

    /// As [`ask`](Self::ask), and where the answer is a plan it is what later questions start from: the machines are gone,
    /// and their pods are where the plan put them. The machines that took some are the second part of the answer; they
    /// must not be asked about again, because what came to them is not known to be there.
    pub fn keep(&mut self, without: &[NodeKey], search: Search<'_>) -> (Answer, Vec<NodeKey>) {
        if let Some((snapshot, round)) = self.anew {
            return (self.ask_anew(snapshot, round, without, search), Vec::new());
        }
        let shared = self.share();
        let answer = self.place_residents(without, search);
        if !matches!(answer, Answer::Plan(_)) {
            self.greedy.undo();
            self.bring_back(without);
            self.restore(shared);
            return (answer, Vec::new());
        }
        for index in without.iter().filter_map(|key| self.machines.get(key)) {
            self.residents[*index] = Residents::default();
            self.greedy.problem.machines.all[*index].open = false;
        }
        let filled = self.greedy.keep();
        let all = &self.greedy.problem.machines.all;
        let filled = filled.into_iter().map(|index| all[index].key().clone()).collect();
        (answer, filled)
    }

    fn share(&self) -> Shared<'a> {
        let templates = self.greedy.problem.templates.iter();
        Shared {
            balances: templates
                .map(|template| template.limits.as_ref().map(Limits::balance))
                .collect(),
            reservations: self.greedy.problem.reservations.clone(),
        }
    }

    fn restore(&mut self, shared: Shared<'a>) {
        for (template, balance) in self.greedy.problem.templates.iter_mut().zip(shared.balances) {
            if let (Some(limits), Some(balance)) = (&mut template.limits, balance) {
                limits.settle(balance);
            }
        }
        self.greedy.problem.reservations = shared.reservations;
    }

    fn place_residents(&mut self, without: &[NodeKey], search: Search<'_>) -> Answer {
        let mut moving = Vec::new();
        for index in without.iter().filter_map(|key| self.machines.get(key)) {
            let residents = &self.residents[*index];
            if let Some(pod) = residents.refused.first() {
                return Answer::Stranded {
                    pod: pod.clone(),
                    refusal: self.greedy.problem.refusals[pod].clone(),
                };
            }
            moving.extend_from_slice(&residents.members);
            for (group, spot) in residents.counted.clone() {
                self.greedy.leave(group, spot);
            }
            self.greedy.gone.insert(*index);
            let machine = self.greedy.problem.machines.all[*index].state;
            let pool = machine.pool();
            let mut templates = self.greedy.problem.templates.iter_mut();
            let template = templates.find(|template| Some(&template.pool.name) == pool.as_ref());
            if let Some(limits) = template.and_then(|template| template.limits.as_mut()) {
                limits.release(&machine.capacity());
            }
        }
        self.forget(&moving);
        if search == Search::Filled {
            moving = self.greedy.fill(&moving);
        }
        moving.sort_unstable();
        if let Search::Again(placements) = search {
            self.put_back(placements, &mut moving);
        }
        match self.place_all(moving, search) {
            Ok(()) => {}
            Err(other) => return other,
        }
        if !self.greedy.opens.is_empty() {
            pack::improve(&mut self.greedy);
        }
        self.plan(search)
    }

    /// Puts pods where these placements have them, and leaves the others.
    fn put_back(&mut self, placements: &[Placement], moving: &mut Vec<usize>) {
        let places: FxHashMap<&PodKey, usize> = placements
            .iter()
            .filter_map(|placement| Some((placement, *self.machines.get(&placement.node)?)))
            .flat_map(|(placement, index)| placement.pods.iter().map(move |pod| (pod, index)))
            .collect();
        moving.retain(|member| {
            let member = *member;
            let Some(index) = places.get(&self.greedy.problem.members[member].pod.key) else {
                return true;
            };
            let class = &self.greedy.problem.classes.all[self.greedy.problem.members[member].class];
            !(0..class.variants.len()).any(|variant| self.greedy.put_on(member, variant, *index))
        });
    }

    /// What was found out in the course of an earlier question does not hold for this one.
    fn forget(&mut self, members: &[usize]) {
        let problem = &mut self.greedy.problem;
        for member in members {
            let class = &mut problem.classes.all[problem.members[*member].class];
            class.hopeless = false;
            class.failed_at = None;
            for variant in &class.variants {
                problem.classes.cores[variant.core].closed = Bits::default();
            }
        }
    }

    /// The largest pods first; those that fail again after the others, as long as others found a place.
    fn place_all(&mut self, mut waiting: Vec<usize>, search: Search<'_>) -> Result<(), Answer> {
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut failed = Vec::new();
            for member in waiting {
                if !matches!(self.greedy.place(member), Outcome::Placed) {
                    let class = self.greedy.problem.members[member].class;
                    if self.greedy.problem.classes.all[class].hopeless {
                        return Err(self.stranded(member));
                    }
                    failed.push(member);
                } else if let Search::Below(most) = search
                    && !self.greedy.opens.is_empty()
                {
                    let price = self.launch_price();
                    if price >= most {
                        return Err(Answer::TooDear { price });
                    }
                }
            }
            if failed.len() == before {
                return Err(self.stranded(failed[0]));
            }
            waiting = failed;
        }
        Ok(())
    }

    fn stranded(&mut self, member: usize) -> Answer {
        Answer::Stranded {
            pod: self.greedy.problem.members[member].pod.key.clone(),
            refusal: self.greedy.refusal(member),
        }
    }

    /// What the machines that were opened cost at least.
    fn launch_price(&mut self) -> f64 {
        let problem = &mut self.greedy.problem;
        let prices = self.greedy.opens.iter().map(|open| {
            let view = problem.templates[open.template]
                .market
                .view(&problem.states, open.state);
            let prices = open.rows.iter().map(|row| view.prices[row]);
            prices.min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
        });
        prices.sum()
    }

    fn plan(&mut self, search: Search<'_>) -> Answer {
        let mut plan = Plan::default();
        for open in &self.greedy.opens {
            match self.finisher.finish(&mut self.greedy.problem, open) {
                Ok(launch) => plan.launches.push(launch),
                Err(lacking) => {
                    let seat = open.pods.first().expect("a machine is opened for a pod");
                    return Answer::Stranded {
                        pod: self.greedy.problem.members[seat.member].pod.key.clone(),
                        refusal: Refusal::Truncated {
                            pool: self.greedy.problem.templates[open.template].pool.name.clone(),
                            lacking,
                        },
                    };
                }
            }
        }
        if let Search::Below(most) = search
            && !plan.launches.is_empty()
            && plan.launch_price() >= most
        {
            return Answer::TooDear {
                price: plan.launch_price(),
            };
        }
        let members = &self.greedy.problem.members;
        let filled = self.greedy.filled();
        plan.placements = filled
            .into_iter()
            .map(|index| &self.greedy.problem.machines.all[index])
            .map(|machine| Placement {
                node: machine.key().clone(),
                pods: machine.pods.iter().map(|pod| members[*pod].pod.key.clone()).collect(),
            })
            .collect();
        plan.placements.sort_by(|a, b| a.node.cmp(&b.node));
        Answer::Plan(plan)
    }

    fn bring_back(&mut self, machines: &[NodeKey]) {
        for index in machines.iter().filter_map(|key| self.machines.get(key)) {
            // Machines that were given up for good are not among those asked about.
            if !self.closed.contains(*index) {
                self.greedy.bring_back(*index);
            }
        }
    }

    /// The same question put to the solver, on a fork.
    fn ask_anew(&self, snapshot: &Snapshot, round: &Round, without: &[NodeKey], search: Search<'_>) -> Answer {
        let indices = without.iter().filter_map(|key| self.machines.get(key));
        let residents: Vec<&Residents> = indices.map(|index| &self.residents[*index]).collect();
        let members = residents.iter().flat_map(|residents| &residents.members);
        let keys = members.map(|member| self.greedy.problem.members[*member].pod.key.clone());
        let refused = residents.iter().flat_map(|residents| residents.refused.iter().cloned());
        let round = Round {
            pods: keys.chain(refused).collect(),
            ..round.clone()
        };
        let machines = &self.greedy.problem.machines.all;
        let closed = self.closed.iter().map(|index| machines[index].key());
        let plan = solve_around(&snapshot.without(without), &round, &closed.collect());
        if let Some((pod, refusal)) = plan.refusals.first_key_value() {
            return Answer::Stranded {
                pod: pod.clone(),
                refusal: refusal.clone(),
            };
        }
        match search {
            Search::Below(most) if !plan.launches.is_empty() && plan.launch_price() >= most => Answer::TooDear {
                price: plan.launch_price(),
            },
            _ => Answer::Plan(plan),
        }
    }
}

/// Who lives where, and which groups count them there. `at_home` are the settled pods among the members.
fn residents(problem: &Problem<'_>, settled: &Settled<'_>, at_home: &[(usize, &Pod)]) -> Vec<Residents> {
    let machines: &Machines<'_> = &problem.machines;
    let mut residents = vec![Residents::default(); machines.all.len()];
    let home = |pod: &Pod| machines.by_node.get(pod.node.as_ref()?.as_str()).copied();
    for (number, pod) in at_home {
        if let Some(index) = home(pod) {
            residents[index].members.push(*number);
        }
    }
    for pod in problem.refusals.keys().filter(|pod| settled.pods.contains(pod)) {
        if let Some(index) = problem.snapshot.pods.get(pod).and_then(|pod| home(pod)) {
            residents[index].refused.push(pod.clone());
        }
    }
    if problem.topology.is_empty() {
        return residents;
    }
    let carried: FxHashMap<&PodKey, &[GroupId]> = problem
        .members
        .iter()
        .filter_map(|member| {
            let variant = problem.classes.all[member.class].variants.first()?;
            let repels = &variant.carried.repels[..];
            (!repels.is_empty()).then_some((&member.pod.key, repels))
        })
        .collect();
    let mut selecting: FxHashMap<(&str, *const PodShape), Vec<GroupId>> = FxHashMap::default();
    // Pods of machines that leave in any case are not counted where they are.
    let staying = machines
        .all
        .iter()
        .enumerate()
        .filter(|(_, machine)| !machine.state.is_leaving());
    for (index, machine) in staying {
        let look = &machines.looks[machine.look];
        for pod in problem.snapshot.pods_of(machine.state).filter(|pod| pod.is_active()) {
            let counted = selecting
                .entry((&pod.key.namespace, Arc::as_ptr(&pod.shape)))
                .or_insert_with(|| problem.topology.ties(pod).counted);
            let repels = carried.get(&pod.key).copied().unwrap_or_default();
            for number in counted.iter().chain(repels) {
                let identity = &problem.topology.groups[*number].identity;
                let filter = identity.filter.as_ref().filter(|filter| !filter.admits_all());
                if filter.is_some_and(|filter| !filter.admits(&look.raw_taints, look.labels.requirements())) {
                    continue;
                }
                let spot = match identity.axis {
                    Axis::Host => Some(Spot::Host(index)),
                    Axis::Key(key) => look.domains[key].map(Spot::Domain),
                };
                residents[index].counted.extend(spot.map(|spot| (*number, spot)));
            }
        }
    }
    residents
}
