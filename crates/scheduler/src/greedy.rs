//! First fit, pod by pod: what is there, then what is being opened, then something new.
//!
//! The largest pods go first. A pod that finds no place is tried again after the others, as long as anything else was
//! placed in between: it may have waited for a neighbour.

mod admit;
mod choose;
mod fill;
mod journal;
mod there;

use std::collections::BTreeMap;

use model::{Requirements, requirements::AllowUndefined};
use rustc_hash::FxHashMap;

pub(crate) use self::{
    choose::Domains,
    journal::{Spot, Step},
};
use crate::{
    amounts,
    bits::{Bits, members},
    dra::HostView,
    open::{Admission, Open, Rejection, Seat},
    problem::Problem,
    states::{State, States},
    template::Template,
    topology::{Answer, Axis, Filter, GroupId, Rule},
};

/// A problem in the course of being solved.
pub(crate) struct Greedy<'a> {
    pub problem: Problem<'a>,
    pub opens: Vec<Open>,
    /// Pods without a place, with the number of pods that had one when they failed.
    pub unplaced: Vec<usize>,
    /// Pods that wait for reserved capacity.
    pub awaiting: Vec<usize>,
    /// Open machines by their number of pods.
    queue: BTreeMap<usize, Bits>,
    /// For each label and domain, the open machines that may still be there.
    by_domain: Vec<Vec<Bits>>,
    /// Open machines are hosts from this number on; the ones below are machines that are there.
    first_host: usize,
    placed: usize,
    domains: Domains,
    /// Which rows of planned machines in a state take part in a spread.
    taking_part: FxHashMap<(GroupId, usize, State), Bits>,
    /// Which looks of machines meet a demand.
    looks: Vec<Option<Bits>>,
    /// Machines that are taken away for the time being: nothing is put there.
    pub gone: Bits,
    /// How often machines came back, or the room on them.
    pub(super) ebbs: u64,
    /// Nothing new is opened.
    pub closed: bool,
    /// What is done is noted here, so that it can be undone.
    pub journal: Option<Vec<Step>>,
}

pub(crate) enum Outcome {
    Placed,
    Failed,
    /// Nothing but reserved capacity will do, and that is promised to others in this round.
    Awaits,
}

impl<'a> Greedy<'a> {
    pub fn new(mut problem: Problem<'a>) -> Self {
        let first_host = problem.machines.all.len().next_multiple_of(u64::BITS as usize);
        let domains = Domains::new(&problem.topology.keys, &mut problem.states);
        let by_domain = problem
            .topology
            .keys
            .iter()
            .map(|key| vec![Bits::default(); key.values.len()]);
        let by_domain = by_domain.collect();
        Self {
            problem,
            opens: Vec::new(),
            unplaced: Vec::new(),
            awaiting: Vec::new(),
            queue: BTreeMap::new(),
            by_domain,
            first_host,
            placed: 0,
            domains,
            taking_part: FxHashMap::default(),
            looks: Vec::new(),
            gone: Bits::default(),
            ebbs: 0,
            closed: false,
            journal: None,
        }
    }

    /// Places what can be placed.
    pub fn run(&mut self) {
        let mut waiting: Vec<usize> = (0..self.problem.members.len()).collect();
        loop {
            let before = self.placed;
            let mut failed = Vec::new();
            self.awaiting.clear();
            for member in waiting {
                match self.place(member) {
                    Outcome::Placed => {}
                    Outcome::Failed => failed.push(member),
                    Outcome::Awaits => {
                        failed.push(member);
                        self.awaiting.push(member);
                    }
                }
            }
            if self.placed == before || failed.is_empty() {
                self.unplaced = failed;
                return;
            }
            waiting = failed;
        }
    }

    pub fn place(&mut self, member: usize) -> Outcome {
        let number = self.problem.members[member].class;
        let class = &self.problem.classes.all[number];
        if class.hopeless || class.failed_at == Some(self.placed) {
            return Outcome::Failed;
        }
        for variant in 0..class.variants.len() {
            match self.attempt(member, variant) {
                Outcome::Placed => {
                    self.placed += 1;
                    return Outcome::Placed;
                }
                Outcome::Failed => {}
                Outcome::Awaits => return Outcome::Awaits,
            }
        }
        let class = &mut self.problem.classes.all[number];
        class.failed_at = Some(self.placed);
        let member = &self.problem.members[member];
        class.hopeless = !class.is_social() && member.attached.is_empty() && member.devices.is_none();
        Outcome::Failed
    }

    fn attempt(&mut self, member: usize, variant: usize) -> Outcome {
        let Some((core, answer)) = self.neighbours(member, variant) else {
            return Outcome::Failed;
        };
        if let Some((machine, devices)) = self.find_machine(core, member, &answer) {
            self.put(machine, member, variant, devices);
            return Outcome::Placed;
        }
        if let Some((open, admission)) = self.find_open(core, member, &answer) {
            self.join(open, member, variant, admission);
            return Outcome::Placed;
        }
        if answer.hosts.are_known() || self.closed {
            return Outcome::Failed;
        }
        match self.find_new(core, member, &answer) {
            Ok((open, admission)) => {
                let host = self.open(open);
                self.join(host, member, variant, admission);
                Outcome::Placed
            }
            Err(Rejection::Reserved) => Outcome::Awaits,
            Err(Rejection::Closed | Rejection::NotNow) => Outcome::Failed,
        }
    }

    /// What a pod needs by itself, and where its neighbours want it; nothing when they want it nowhere.
    fn neighbours(&self, member: usize, variant: usize) -> Option<(usize, Answer)> {
        let class = &self.problem.classes.all[self.problem.members[member].class];
        let chosen = &class.variants[variant];
        let own = |key: usize| {
            let own = chosen.own.iter().find(|(number, _)| *number == key);
            own.map(|(_, domains)| domains.clone())
        };
        let answer = self.problem.topology.ask(&class.ties, &chosen.carried, own).ok()?;
        Some((chosen.core, answer))
    }

    /// The open machine with the fewest pods that takes the pod.
    fn find_open(&mut self, core: usize, member: usize, answer: &Answer) -> Option<(usize, Admission)> {
        if self.opens.is_empty() {
            return None;
        }
        let mut closed = std::mem::take(&mut self.problem.classes.cores[core].closed);
        let found = self.first_open(core, member, answer, &mut closed);
        self.problem.classes.cores[core].closed = closed;
        found
    }

    fn first_open(
        &mut self,
        core: usize,
        member: usize,
        answer: &Answer,
        closed: &mut Bits,
    ) -> Option<(usize, Admission)> {
        let offset = self.first_host / u64::BITS as usize;
        let there = self.opens_in(answer);
        // Asking changes neither; both are put back.
        let (queue, opens) = (std::mem::take(&mut self.queue), std::mem::take(&mut self.opens));
        let mut found = None;
        'search: for equal in queue.values() {
            for (word, with) in equal.words().iter().enumerate() {
                let mut candidates = with & !closed.word(word);
                if let Some(there) = &there {
                    candidates &= there.word(word);
                }
                if candidates == 0 {
                    continue;
                }
                candidates &= answer.hosts.word(&self.problem.topology, offset + word);
                for index in members(word, candidates) {
                    match self.admit(&opens[index], core, member, answer) {
                        Ok(admission) => {
                            found = Some((index, admission));
                            break 'search;
                        }
                        Err(Rejection::Closed) => closed.insert(index),
                        Err(Rejection::NotNow | Rejection::Reserved) => {}
                    }
                }
            }
        }
        (self.queue, self.opens) = (queue, opens);
        found
    }

    /// The open machines that may still be in an allowed domain of every label; nothing when no label restricts them.
    fn opens_in(&self, answer: &Answer) -> Option<Bits> {
        let mut there: Option<Bits> = None;
        for allowed in answer.keys.iter().filter(|allowed| allowed.binding) {
            let mut along = Bits::default();
            for domain in allowed.domains.iter() {
                along.unite_with(&self.by_domain[allowed.key][domain]);
            }
            match &mut there {
                Some(there) => there.intersect_with(&along),
                None => there = Some(along),
            }
        }
        there
    }

    /// A new machine from the first pool that launches one for the pod.
    fn find_new(&mut self, core: usize, member: usize, answer: &Answer) -> Result<(Open, Admission), Rejection> {
        let dims = self.problem.dims.len();
        for index in 0..self.problem.templates.len() {
            let template = &self.problem.templates[index];
            if template.barred.is_some() || self.problem.classes.cores[core].barred.contains(index) {
                continue;
            }
            let mut rows = template.market.seen(template.base).rows.clone();
            if let Some(limits) = &template.limits {
                if limits.nodes_exhausted().is_some() {
                    continue;
                }
                limits.keep_within(&mut rows);
            }
            let limited = rows != template.market.seen(template.base).rows;
            let open = Open::new(self.opens.len(), index, template.base, rows, dims);
            match self.admit(&open, core, member, answer) {
                Ok(admission) => return Ok((open, admission)),
                Err(Rejection::Reserved) => return Err(Rejection::Reserved),
                // What limits keep out may come in again when a launch turns out to be smaller.
                Err(Rejection::Closed) if !limited => self.problem.classes.cores[core].barred.insert(index),
                Err(_) => {}
            }
        }
        Err(Rejection::NotNow)
    }

    fn open(&mut self, open: Open) -> usize {
        let index = self.opens.len();
        for (number, key) in self.problem.topology.keys.iter().enumerate() {
            for domain in self.domains.of(key, number, &self.problem.states, open.state).iter() {
                self.by_domain[number][domain].insert(index);
            }
        }
        self.opens.push(open);
        self.queue.entry(0).or_default().insert(index);
        index
    }

    /// Puts a pod onto a planned machine.
    fn join(&mut self, index: usize, member: usize, variant: usize, admission: Admission) {
        let class = &self.problem.classes.all[self.problem.members[member].class];
        let chosen = &class.variants[variant];
        let needs = &self.problem.classes.cores[chosen.core].needs;
        let open = &mut self.opens[index];
        let template = &mut self.problem.templates[open.template];
        if let Some(limits) = &mut template.limits
            && (open.pods.is_empty() || open.rows != admission.rows)
        {
            let charge = limits.charge(&admission.rows);
            if open.pods.is_empty() {
                limits.open(&charge);
            } else {
                limits.exchange(&open.charge, &charge);
            }
            open.charge = charge;
        }
        if let Some(devices) = &mut self.problem.devices
            && (admission.devices.is_some() || (open.has_devices && open.rows != admission.rows))
        {
            let kinds: Vec<_> = admission
                .rows
                .iter()
                .map(|row| template.market.rows[row].kind)
                .collect();
            match admission.devices {
                Some(allocation) => {
                    let host = HostView::Claim {
                        id: open.id,
                        kinds: &kinds,
                        requirements: self.problem.states.of_state(admission.state),
                    };
                    devices.commit(host, allocation);
                    open.has_devices = true;
                }
                None => devices.keep_kinds(open.id, &kinds),
            }
        }
        if open.held != admission.reserves {
            self.problem.reservations.exchange(&mut open.held, admission.reserves);
        }
        if open.state != admission.state {
            for (number, key) in self.problem.topology.keys.iter().enumerate() {
                let left = self.domains.of(key, number, &self.problem.states, admission.state);
                for (domain, opens) in self.by_domain[number].iter_mut().enumerate() {
                    if !left.contains(domain) {
                        opens.remove(index);
                    }
                }
            }
        }
        open.state = admission.state;
        open.rows = admission.rows;
        open.lowered = admission.lowered.or(open.lowered.take());
        amounts::add(&mut open.used, &needs.amounts);
        open.ports.extend(needs.ports.iter().cloned());
        let count = open.pods.len();
        open.pods.push(Seat {
            member,
            variant,
            volume: admission.volume,
        });
        if let Some(before) = self.queue.get_mut(&count) {
            before.remove(index);
            if before.is_empty() {
                self.queue.remove(&count);
            }
        }
        self.queue.entry(count + 1).or_default().insert(index);
        let counted: Vec<GroupId> = class
            .ties
            .counted
            .iter()
            .chain(&chosen.carried.repels)
            .copied()
            .collect();
        for group in counted {
            self.count(group, index);
        }
    }

    fn count(&mut self, number: GroupId, index: usize) {
        let (template, state) = (self.opens[index].template, self.opens[index].state);
        let host = self.first_host + index;
        let problem = &mut self.problem;
        let group = &mut problem.topology.groups[number];
        if let Some(filter) = group.identity.filter.as_ref().filter(|filter| !filter.admits_all()) {
            let taking_part = self
                .taking_part
                .entry((number, template, state))
                .or_insert_with(|| taking_part(filter, &mut problem.templates[template], &mut problem.states, state));
            // A machine that may still turn out to be of another kind cannot be relied on.
            if self.opens[index].rows.and(taking_part) != self.opens[index].rows {
                return;
            }
        }
        let (axis, everywhere) = (group.identity.axis, group.identity.rule == Rule::AntiAffinity);
        let mut count = |spot: Spot| journal::count(&mut self.journal, group, number, spot);
        match axis {
            Axis::Host => count(Spot::Host(host)),
            Axis::Key(key) => {
                let domains = self
                    .domains
                    .of(&problem.topology.keys[key], key, &problem.states, state);
                match domains.single() {
                    Some(domain) => count(Spot::Domain(domain)),
                    // The pod may end up in any of them, so none of them is safe.
                    None if everywhere => domains.iter().for_each(|domain| count(Spot::Domain(domain))),
                    None => {}
                }
            }
        }
    }
}

/// What a planned machine has to become to take part in a spread.
fn taking_part(filter: &Filter, template: &mut Template<'_>, states: &mut States<'_>, state: State) -> Bits {
    let mut rows = Bits::default();
    if !filter.tolerates(&template.pool.template.taints) {
        return rows;
    }
    let anyone = Requirements::default();
    let ways = if filter.alternatives.is_empty() {
        std::slice::from_ref(&anyone)
    } else {
        &filter.alternatives
    };
    for way in ways {
        if !states.of_state(state).is_compatible(way, AllowUndefined::Nothing) {
            continue;
        }
        let demand = states.demand(way.clone());
        if let Some(narrowed) = states.narrow(state, demand) {
            rows.unite_with(&template.market.view(states, narrowed).rows);
        }
    }
    rows
}
