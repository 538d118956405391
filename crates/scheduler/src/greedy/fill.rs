//! Machine by machine: each takes the pods that make the most of what is left of it.
//!
//! First fit looks at one pod at a time, so that machines run out of processors while they have memory to spare, or the
//! other way round. Here each machine in turn chooses among all the pods that wait. Pods of about the same size and
//! proportions are one choice, so that a choice costs the same however many deployments there are.

use std::collections::{BTreeMap, VecDeque};

use model::ResourceName;

use super::Greedy;
use crate::{
    amounts::{self, Amounts},
    rules::ports_clash,
};

/// How many classes of one choice are tried on a machine before the choice is given up there.
const LOOK: usize = 8;

/// How much an uneven rest counts beside a large one.
const EVENNESS: f64 = 0.5;

/// Size and proportions of pods, in half powers of two.
type Proportions = (i32, i32);

/// Lines of pods that are about alike in what they ask for.
type Choices = BTreeMap<Proportions, VecDeque<Line>>;

/// The pods of one class that wait: a range of all that wait.
#[derive(Clone, Copy, Debug)]
struct Line {
    class: usize,
    first: usize,
    end: usize,
}

impl Greedy<'_> {
    /// Fills the machines that are there, in their order, with these pods; of equal ones the first come first. Answers with
    /// the pods that are left.
    pub fn fill(&mut self, waiting: &[usize]) -> Vec<usize> {
        let Some(priced) = self.priced() else {
            return waiting.to_vec();
        };
        let mut members = waiting.to_vec();
        let class_of = |member: &usize| self.problem.members[*member].class;
        members.sort_by_key(class_of);
        let all: [f64; 2] = priced.map(|dim| {
            let machines = &self.problem.machines;
            let open = machines.all.iter().enumerate().filter(|(_, machine)| machine.open);
            let free = open.map(|(index, _)| machines.free.along(dim, index).max(0));
            free.sum::<i64>().max(1) as f64
        });
        let mut choices = Choices::new();
        let mut left = Vec::new();
        // A machine without room for this has room for nobody. Most machines are full most of the time.
        let mut least: Option<Amounts> = None;
        let mut end = 0;
        for alike in members.chunk_by(|a, b| class_of(a) == class_of(b)) {
            let (class, first) = (class_of(&alike[0]), end);
            end += alike.len();
            // A class without a variant can be placed nowhere.
            if self.problem.classes.all[class].variants.is_empty() {
                left.extend_from_slice(alike);
                continue;
            }
            let needs = &self.needs_of(class).amounts;
            let least = least.get_or_insert_with(|| needs.clone());
            least
                .iter_mut()
                .zip(needs)
                .for_each(|(least, need)| *least = (*least).min(*need));
            let proportions = proportions(priced.map(|dim| needs[dim]), all);
            let line = Line { class, first, end };
            choices.entry(proportions).or_default().push_back(line);
        }
        for index in 0..self.problem.machines.all.len() {
            let machines = &self.problem.machines;
            let roomy = |least: &Amounts| machines.free.hold(index, least);
            if machines.all[index].open && !self.gone.contains(index) && least.as_ref().is_some_and(roomy) {
                self.fill_one(index, priced, &mut choices, &members);
            }
        }
        let lines = choices.values().flatten();
        left.extend(lines.flat_map(|line| &members[line.first..line.end]));
        left.sort_unstable();
        left
    }

    /// The resources that machines are priced by, where anybody asks for them.
    fn priced(&self) -> Option<[usize; 2]> {
        let names = self.problem.dims.names();
        let dim = |wanted: &ResourceName| names.iter().position(|name| name == wanted);
        Some([dim(&ResourceName::CPU)?, dim(&ResourceName::MEMORY)?])
    }

    /// What pods of a class need while all of their preferences are kept.
    fn needs_of(&self, class: usize) -> &crate::class::Needs {
        let core = self.problem.classes.all[class].variants[0].core;
        &self.problem.classes.cores[core].needs
    }

    fn fill_one(&mut self, index: usize, priced: [usize; 2], choices: &mut Choices, members: &[usize]) {
        let allocatable = self
            .problem
            .dims
            .supply(&self.problem.machines.all[index].state.allocatable());
        let whole = priced.map(|dim| allocatable[dim].max(1) as f64);
        // Classes that were refused here stand behind the others of their choice; this many of them.
        let mut refused: BTreeMap<Proportions, usize> = BTreeMap::new();
        loop {
            let mut best: Option<(f64, Proportions, usize)> = None;
            let free = self.problem.machines.free.of(index);
            for (proportions, lines) in choices.iter() {
                let behind = refused.get(proportions).copied().unwrap_or(0);
                let ahead = lines.iter().take(LOOK.min(lines.len()).saturating_sub(behind));
                let fits = |line: &Line| amounts::fits(&self.needs_of(line.class).amounts, &free);
                let Some((at, line)) = ahead.enumerate().find(|(_, line)| fits(line)) else {
                    continue;
                };
                let needs = &self.needs_of(line.class).amounts;
                let rest: [f64; 2] =
                    std::array::from_fn(|at| (free[priced[at]] - needs[priced[at]]) as f64 / whole[at]);
                let waste = EVENNESS * (rest[0] - rest[1]).abs() + rest[0].max(rest[1]);
                if best.is_none_or(|(least, ..)| waste < least) {
                    best = Some((waste, *proportions, at));
                }
            }
            let Some((_, proportions, at)) = best else { return };
            let lines = choices.get_mut(&proportions).expect("it was chosen");
            if !self.put_on(members[lines[at].first], 0, index) {
                let refusing = lines.remove(at);
                lines.extend(refusing);
                *refused.entry(proportions).or_default() += 1;
                continue;
            }
            lines[at].first += 1;
            if lines[at].first == lines[at].end {
                lines.remove(at);
                if lines.is_empty() {
                    choices.remove(&proportions);
                }
            }
        }
    }

    /// Puts a pod onto one machine, if every rule allows it there.
    pub fn put_on(&mut self, member: usize, variant: usize, index: usize) -> bool {
        let Some((core, answer)) = self.neighbours(member, variant) else {
            return false;
        };
        let suiting = match self.problem.classes.cores[core].machines.take() {
            Some(known) => known,
            None => self.suiting_machines(core),
        };
        let suits = suiting.contains(index);
        self.problem.classes.cores[core].machines = Some(suiting);
        let welcome = answer.hosts.admit(&self.problem.topology, index);
        if !suits || !welcome || self.gone.contains(index) {
            return false;
        }
        let stores = self.stores(core);
        let needs = &self.problem.classes.cores[core].needs;
        let machines = &self.problem.machines;
        let takes = machines.free.hold(index, &needs.amounts);
        if !takes || ports_clash(&needs.ports, &machines.all[index].ports) {
            return false;
        }
        let Some(devices) = self.settled_on(index, member, &answer, &stores) else {
            return false;
        };
        self.put(index, member, variant, devices);
        self.placed += 1;
        true
    }
}

fn proportions(needs: [i64; 2], all: [f64; 2]) -> Proportions {
    // A pod that asks for nothing of one resource is as good as one that asks for next to nothing.
    let shares: [f64; 2] = std::array::from_fn(|at| (needs[at] as f64 / all[at]).max(1e-9));
    let half_powers = |number: f64| (2.0 * number.log2()).round() as i32;
    (
        half_powers(shares[0].max(shares[1])),
        half_powers(shares[0] / shares[1]),
    )
}
