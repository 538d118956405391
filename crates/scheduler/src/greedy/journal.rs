//! What a search has changed, in a form that can be taken back.
//!
//! A question about moving a few pods must not cost what preparing the whole cluster costs. So the search runs on the
//! prepared problem itself, notes each change, and undoes them one by one when the question is answered.

use super::Greedy;
use crate::{
    machine::{Attachments, Machines},
    topology::{Group, GroupId},
};

/// Where a pod is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    Domain(usize),
    Host(usize),
}

/// One change.
#[derive(Debug)]
pub(crate) enum Step {
    /// A pod with these needs was put onto a machine. There are hundreds of thousands of these steps, so only what cannot be
    /// worked out backwards is remembered of the machine.
    Filled {
        index: usize,
        core: usize,
        volumes: Option<Box<Attachments>>,
    },
    Counted {
        group: GroupId,
        spot: Spot,
        /// The group had not heard of the domain before.
        new: bool,
    },
    Uncounted {
        group: GroupId,
        spot: Spot,
    },
}

impl Step {
    pub fn filling(index: usize, core: usize, machines: &Machines<'_>) -> Self {
        let volumes = machines.all[index].volumes.clone().map(Box::new);
        Step::Filled { index, core, volumes }
    }
}

pub(super) fn count(journal: &mut Option<Vec<Step>>, group: &mut Group, number: GroupId, spot: Spot) {
    if let Some(journal) = journal {
        let new = matches!(spot, Spot::Domain(domain) if !group.known.contains(domain));
        journal.push(Step::Counted {
            group: number,
            spot,
            new,
        });
    }
    match spot {
        Spot::Domain(domain) => group.count(domain),
        Spot::Host(host) => group.count_host(host),
    }
}

fn uncount(group: &mut Group, spot: Spot) {
    match spot {
        Spot::Domain(domain) => group.uncount(domain),
        Spot::Host(host) => group.uncount_host(host),
    }
}

impl Greedy<'_> {
    /// A pod that was counted leaves the spot where it was.
    pub fn leave(&mut self, group: GroupId, spot: Spot) {
        uncount(&mut self.problem.topology.groups[group], spot);
        if let Some(journal) = &mut self.journal {
            journal.push(Step::Uncounted { group, spot });
        }
    }

    /// A machine that was gone takes pods again.
    pub fn bring_back(&mut self, machine: usize) {
        self.ebbs += 1;
        self.gone.remove(machine);
    }

    /// Takes everything back that was noted, the last first.
    pub fn undo(&mut self) {
        self.ebbs += 1;
        let mut journal = self.journal.take();
        for step in journal.iter_mut().flat_map(|steps| steps.drain(..).rev()) {
            match step {
                Step::Filled { index, core, volumes } => {
                    let needs = &self.problem.classes.cores[core].needs;
                    let machine = &mut self.problem.machines.all[index];
                    machine.ports.truncate(machine.ports.len() - needs.ports.len());
                    machine.pods.pop();
                    if let Some(volumes) = volumes {
                        machine.volumes = Some(*volumes);
                    }
                    if machine.pods.is_empty() {
                        self.problem.machines.visited.remove(index);
                    }
                    self.problem.machines.free.give(index, &needs.amounts);
                }
                Step::Counted { group, spot, new } => {
                    let group = &mut self.problem.topology.groups[group];
                    uncount(group, spot);
                    if let (Spot::Domain(domain), true) = (spot, new) {
                        group.known.remove(domain);
                    }
                }
                Step::Uncounted { group, spot } => {
                    let group = &mut self.problem.topology.groups[group];
                    match spot {
                        Spot::Domain(domain) => group.count(domain),
                        Spot::Host(host) => group.count_host(host),
                    }
                }
            }
        }
        // Emptied, not given back: the next question is about as long.
        self.journal = journal;
        self.forget_opens();
    }

    /// Machines that pods were put onto, in the order of their numbers.
    pub fn filled(&self) -> Vec<usize> {
        let steps = self.journal.iter().flatten();
        let filled = steps.filter_map(|step| match step {
            Step::Filled { index, .. } => Some(*index),
            Step::Counted { .. } | Step::Uncounted { .. } => None,
        });
        let mut filled: Vec<usize> = filled.collect();
        filled.sort_unstable();
        filled.dedup();
        filled
    }

    /// Makes what was noted final, and says which machines were filled. Machines that are only planned are no hosts for anybody later.
    pub fn keep(&mut self) -> Vec<usize> {
        let filled = self.filled();
        for step in self.journal.iter_mut().flat_map(|steps| steps.drain(..)) {
            if let Step::Counted {
                group,
                spot: spot @ Spot::Host(host),
                ..
            } = step
                && host >= self.first_host
            {
                uncount(&mut self.problem.topology.groups[group], spot);
            }
        }
        for index in &filled {
            self.problem.machines.all[*index].pods.clear();
        }
        self.forget_opens();
        filled
    }

    fn forget_opens(&mut self) {
        if !self.opens.is_empty() {
            self.opens.clear();
            for opens in self.by_domain.iter_mut().flatten() {
                *opens = crate::bits::Bits::default();
            }
        }
        self.queue.clear();
    }
}
